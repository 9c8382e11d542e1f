//! What this process serves: scrapes, under the name of Go's Prometheus library, and health checks, under those of
//! Kubernetes' components.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::registry::Metrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: u16,
}

/// The metrics of scrapes. Cheap to clone.
#[derive(Clone)]
pub struct ScrapeMetrics {
    answered: Family<CodeLabel, Counter>,
    in_flight: Gauge,
}

impl ScrapeMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            answered: registry
                .add("promhttp_metric_handler_requests", "Scrapes by the HTTP status of the answer"),
            in_flight: registry
                .add("promhttp_metric_handler_requests_in_flight", "Scrapes that are not answered yet"),
        }
    }

    /// A scrape began.
    pub fn received(&self) {
        self.in_flight.inc();
    }

    /// A scrape was answered with this HTTP status.
    pub fn answered(&self, code: u16) {
        self.in_flight.dec();
        self.answered.get_or_create(&CodeLabel { code }).inc();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    name: String,
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckedLabels {
    name: String,
    status: &'static str,
    r#type: &'static str,
}

/// The metrics of health checks. Cheap to clone.
#[derive(Clone)]
pub struct HealthMetrics {
    last: Family<CheckLabels, Gauge>,
    checked: Family<CheckedLabels, Counter>,
}

impl HealthMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            last: registry.add("kubernetes_healthcheck", "Whether the last run of a health check succeeded"),
            checked: registry.add("kubernetes_healthchecks", "Health checks by result"),
        }
    }

    /// Records a health check that `endpoint` (`healthz` or `readyz`) ran.
    pub fn checked(&self, endpoint: &'static str, name: &str, succeeded: bool) {
        let name = name.to_owned();
        self.last
            .get_or_create(&CheckLabels { name: name.clone(), r#type: endpoint })
            .set(i64::from(succeeded));
        let status = if succeeded { "success" } else { "error" };
        self.checked.get_or_create(&CheckedLabels { name, status, r#type: endpoint }).inc();
    }
}
