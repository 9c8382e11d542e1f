//! Calls to Resource Manager: under the names of the replaced program, and by their purpose.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds, in seconds, of `arm_request_duration_seconds`, which dashboards rely on.
const ARM_BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0, 600.0];

/// Upper bounds, in seconds, of waits for a budget; no call waits longer than 300 s.
const WAIT_BUCKETS: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0];

/// The target of a call to Resource Manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ArmRequest {
    /// The subscription that pays for the call.
    pub subscription_id: String,
    /// The resource group, in lower case.
    pub resource_group: String,
    /// The kind of resource, such as `LoadBalancer`.
    pub resource: String,
    /// `get`, `list`, `create_or_update` or `delete`.
    pub method: String,
}

/// A failed call to Resource Manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ArmFailure {
    #[prometheus(flatten)]
    request: ArmRequest,
    status_code: String,
    error_code: String,
}

/// How a call to Resource Manager ended. The outcomes exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArmOutcome {
    /// It succeeded.
    Success,
    /// Azure throttled it.
    Throttled,
    /// It was not sent: the process's own budget is closed for longer than calls wait.
    Limited,
    /// Any other error.
    Failed {
        /// The HTTP status; 0 if there was no response.
        status: u16,
        /// Azure's error code; empty if there was no response.
        code: String,
    },
}

/// A call by its purpose.
#[derive(Debug, Clone, Copy)]
pub struct AzureCall<'a> {
    /// The kind of resource, such as `LoadBalancer`.
    pub resource: &'a str,
    /// The purpose, such as `list` or `poll`.
    pub purpose: &'static str,
    /// The class in which it queued for the budget.
    pub class: &'static str,
    /// How long it waited for the budget.
    pub waited: Duration,
    /// Whether Azure gave an answer to the question, such as that a resource does not exist.
    pub is_answer: bool,
    /// Whether Azure accepted a write, a deletion or an action.
    pub is_change: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    purpose: &'static str,
    class: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

/// The metrics of calls to Azure. Cheap to clone.
#[derive(Clone)]
pub struct CallMetrics {
    duration: Histograms<ArmRequest>,
    errors: Family<ArmFailure, Counter>,
    throttled: Family<ArmRequest, Counter>,
    limited: Family<ArmRequest, Counter>,
    calls: Family<CallLabels, Counter>,
    changes: Family<ResourceLabel, Counter>,
    waited: Histograms<ClassLabel>,
}

impl CallMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        let scoped = registry.scoped();
        Self {
            duration: scoped.add_histograms(
                "arm_request_duration_seconds",
                "Duration of requests to Resource Manager",
                || Histogram::new(ARM_BUCKETS),
            ),
            errors: scoped.add("arm_request_errors_counter", "Requests to Resource Manager that failed"),
            throttled: scoped
                .add("arm_request_throttle_counter", "Requests to Resource Manager that Azure throttled"),
            limited: scoped.add(
                "arm_request_rate_limit_counter",
                "Requests to Resource Manager that were not sent, because the budget is closed",
            ),
            calls: registry.add("cerulean_azure_calls", "Calls to Azure by purpose, class and result"),
            changes: registry.add(
                "cerulean_azure_changes",
                "Writes, deletions and actions that Azure accepted, by type of resource",
            ),
            waited: registry.add_histograms(
                "cerulean_azure_call_wait_seconds",
                "How long calls waited for Azure's budget before they were sent",
                || Histogram::new(WAIT_BUCKETS),
            ),
        }
    }

    /// Records a request under the names of the replaced program.
    pub fn request(&self, request: &ArmRequest, duration: Duration, outcome: &ArmOutcome) {
        self.duration.get_or_create(request).observe(duration.as_secs_f64());
        match outcome {
            ArmOutcome::Success => {}
            ArmOutcome::Throttled => {
                self.throttled.get_or_create(request).inc();
            }
            ArmOutcome::Limited => {
                self.limited.get_or_create(request).inc();
            }
            ArmOutcome::Failed { status, code } => {
                let (status_code, error_code) = (status.to_string(), code.clone());
                let failure = ArmFailure { request: request.clone(), status_code, error_code };
                self.errors.get_or_create(&failure).inc();
            }
        }
    }

    /// Records a call by its purpose.
    pub fn call(&self, call: AzureCall<'_>, outcome: &ArmOutcome) {
        let AzureCall { resource, purpose, class, .. } = call;
        let result = match outcome {
            ArmOutcome::Success => "success",
            ArmOutcome::Throttled => "throttled",
            ArmOutcome::Limited => "limited",
            ArmOutcome::Failed { .. } if call.is_answer => "success",
            ArmOutcome::Failed { .. } => "error",
        };
        self.calls.get_or_create(&CallLabels { purpose, class, result }).inc();
        self.waited.get_or_create(&ClassLabel { class }).observe(call.waited.as_secs_f64());
        if call.is_change {
            self.changes.get_or_create(&ResourceLabel { resource: resource.to_owned() }).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
        let calls = CallMetrics::of(&metrics);
        let request = ArmRequest {
            subscription_id: "s".into(),
            resource_group: "rg".into(),
            resource: "LoadBalancer".into(),
            method: "create_or_update".into(),
        };
        calls.request(&request, Duration::from_secs(3), &ArmOutcome::Success);
        calls.request(&request, Duration::from_secs(1), &ArmOutcome::Throttled);
        calls.request(&request, Duration::ZERO, &ArmOutcome::Limited);
        let failed = ArmOutcome::Failed { status: 412, code: "PreconditionFailed".into() };
        calls.request(&request, Duration::from_secs(1), &failed);
        let call = AzureCall {
            resource: "LoadBalancer",
            purpose: "write",
            class: "create",
            waited: Duration::from_millis(20),
            is_answer: false,
            is_change: true,
        };
        calls.call(call, &ArmOutcome::Success);
        calls.call(AzureCall { is_change: false, ..call }, &failed);
        let read = AzureCall { purpose: "read", is_answer: true, is_change: false, ..call };
        calls.call(read, &ArmOutcome::Failed { status: 404, code: "ResourceNotFound".into() });
        let text = metrics.encode();
        let labels = "otel_scope_name=\"cloud-provider-azure\",subscription_id=\"s\",resource_group=\"rg\",\
                      resource=\"LoadBalancer\",method=\"create_or_update\"";
        for line in [
            format!("arm_request_duration_seconds_count{{{labels}}} 4"),
            format!("arm_request_throttle_counter_total{{{labels}}} 1"),
            format!("arm_request_rate_limit_counter_total{{{labels}}} 1"),
            format!(
                "arm_request_errors_counter_total{{{labels},status_code=\"412\",error_code=\"PreconditionFailed\"}} 1"
            ),
            "cerulean_azure_calls_total{purpose=\"write\",class=\"create\",result=\"success\"} 1".to_owned(),
            "cerulean_azure_calls_total{purpose=\"write\",class=\"create\",result=\"error\"} 1".to_owned(),
            "cerulean_azure_calls_total{purpose=\"read\",class=\"create\",result=\"success\"} 1".to_owned(),
            "cerulean_azure_changes_total{resource=\"LoadBalancer\"} 1".to_owned(),
            "cerulean_azure_call_wait_seconds_bucket{le=\"0.1\",class=\"create\"} 3".to_owned(),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
    }
}
