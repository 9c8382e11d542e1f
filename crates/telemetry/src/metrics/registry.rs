//! The metrics of a process: its calls to Resource Manager, whether it leads, and what others register.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// Upper bounds, in seconds, of `arm_request_duration_seconds`, which dashboards rely on.
const ARM_BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0, 600.0];

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
    /// Any other error.
    Failed {
        /// The HTTP status; 0 if there was no response.
        status: u16,
        /// Azure's error code; empty if there was no response.
        code: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Named {
    pub(super) name: String,
}

/// The metrics of a process: calls to Resource Manager, leadership, and those that other crates register. Cheap to
/// clone.
#[derive(Clone)]
pub struct Metrics {
    pub(super) registry: SharedRegistry,
    arm_duration: Histograms<ArmRequest>,
    arm_errors: Family<ArmFailure, Counter>,
    arm_throttled: Family<ArmRequest, Counter>,
    leader: Family<Named, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = SharedRegistry::default();
        Self {
            arm_duration: registry.add_histograms(
                "arm_request_duration_seconds",
                "Duration of operations on Resource Manager, with the polls that the write itself waits for",
                || Histogram::new(ARM_BUCKETS),
            ),
            arm_errors: registry
                .add("arm_request_errors_counter", "Operations on Resource Manager that failed"),
            arm_throttled: registry
                .add("arm_request_throttle_counter", "Operations on Resource Manager that were throttled"),
            leader: registry.add("leader_election_master_status", "Whether this replica leads"),
            registry,
        }
    }
}

/// Histograms created with the first use of their labels.
pub(super) type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The registry of all metrics of a process.
#[derive(Clone, Default)]
pub(super) struct SharedRegistry(pub(super) Arc<Mutex<Registry>>);

impl SharedRegistry {
    /// Registers a metric.
    pub(super) fn register<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        self.0.lock().register(name, help, metric.clone());
        metric
    }

    /// Creates and registers a metric.
    pub(super) fn add<M: Metric + Clone + Default>(&self, name: &str, help: &str) -> M {
        self.register(name, help, M::default())
    }

    /// Creates and registers histograms.
    pub(super) fn add_histograms<L>(&self, name: &str, help: &str, new: fn() -> Histogram) -> Histograms<L>
    where
        Histograms<L>: Metric + Clone,
        L: Clone + Eq + std::hash::Hash,
    {
        self.register(name, help, Family::new_with_constructor(new))
    }
}

impl Metrics {
    /// Records an operation on Resource Manager.
    pub fn arm_request(&self, request: &ArmRequest, duration: Duration, outcome: &ArmOutcome) {
        self.arm_duration.get_or_create(request).observe(duration.as_secs_f64());
        match outcome {
            ArmOutcome::Success => {}
            ArmOutcome::Throttled => {
                self.arm_throttled.get_or_create(request).inc();
            }
            ArmOutcome::Failed { status, code } => {
                let (status_code, error_code) = (status.to_string(), code.clone());
                let failure = ArmFailure { request: request.clone(), status_code, error_code };
                self.arm_errors.get_or_create(&failure).inc();
            }
        }
    }

    /// Records whether this replica holds the named lease.
    pub fn leading(&self, lease: &str, leads: bool) {
        self.leader.get_or_create(&Named { name: lease.to_owned() }).set(i64::from(leads));
    }

    /// All metrics as text for Prometheus.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _infallible = text::encode(&mut out, &self.registry.0.lock());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
        let request = ArmRequest {
            subscription_id: "s".into(),
            resource_group: "rg".into(),
            resource: "LoadBalancer".into(),
            method: "create_or_update".into(),
        };
        metrics.arm_request(&request, Duration::from_secs(3), &ArmOutcome::Success);
        metrics.arm_request(&request, Duration::from_secs(1), &ArmOutcome::Throttled);
        let failed = ArmOutcome::Failed { status: 412, code: "PreconditionFailed".into() };
        metrics.arm_request(&request, Duration::from_secs(1), &failed);
        metrics.leading("cloud-controller-manager", true);
        let text = metrics.encode();
        for line in [
            "arm_request_duration_seconds_count{subscription_id=\"s\",resource_group=\"rg\",resource=\"LoadBalancer\",method=\"create_or_update\"} 3",
            "arm_request_throttle_counter_total{subscription_id=\"s\",resource_group=\"rg\",resource=\"LoadBalancer\",method=\"create_or_update\"} 1",
            "status_code=\"412\",error_code=\"PreconditionFailed\"} 1",
            "leader_election_master_status{name=\"cloud-controller-manager\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
