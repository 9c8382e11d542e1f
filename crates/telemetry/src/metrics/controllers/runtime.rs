//! Reconciles, under the names of controller-runtime.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds, in seconds, of `controller_runtime_reconcile_time_seconds`, which dashboards rely on.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: &'static str,
    result: &'static str,
}

/// The metrics of controllers. Cheap to clone.
#[derive(Clone)]
pub struct ControllerMetrics {
    reconciled: Family<ResultLabels, Counter>,
    failed: Family<ControllerLabel, Counter>,
    took: Histograms<ControllerLabel>,
    active: Family<ControllerLabel, Gauge>,
    most: Family<ControllerLabel, Gauge>,
}

impl ControllerMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            reconciled: registry.add("controller_runtime_reconcile", "Reconciles by result"),
            failed: registry.add("controller_runtime_reconcile_errors", "Reconciles that failed"),
            took: registry.add_histograms(
                "controller_runtime_reconcile_time_seconds",
                "Duration of reconciles",
                || Histogram::new(RECONCILE_BUCKETS),
            ),
            active: registry.add("controller_runtime_active_workers", "Running reconciles"),
            most: registry
                .add("controller_runtime_max_concurrent_reconciles", "Maximum number of parallel reconciles"),
        }
    }

    /// A controller starts, with at most so many workers.
    pub fn opened(&self, controller: &'static str, workers: usize) {
        let label = ControllerLabel { controller };
        self.most.get_or_create(&label).set(i64::try_from(workers).unwrap_or(i64::MAX));
        self.active.get_or_create(&label).set(0);
        drop(self.failed.get_or_create(&label));
    }

    /// A worker took a key.
    pub fn taken(&self, controller: &'static str) {
        self.active.get_or_create(&ControllerLabel { controller }).inc();
    }

    /// A worker is done with its key.
    pub fn worked(&self, controller: &'static str, worked: Duration) {
        let label = ControllerLabel { controller };
        self.took.get_or_create(&label).observe(worked.as_secs_f64());
        self.active.get_or_create(&label).dec();
    }

    /// A reconcile ended: `success`, `requeue_after` or `error`.
    pub fn reconciled(&self, controller: &'static str, result: &'static str) {
        self.reconciled.get_or_create(&ResultLabels { controller, result }).inc();
        if result == "error" {
            self.failed.get_or_create(&ControllerLabel { controller }).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_carry_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
        let controllers = ControllerMetrics::of(&metrics);
        const NAME: &str = "azurecluster";
        controllers.opened(NAME, 10);
        controllers.taken(NAME);
        controllers.taken(NAME);
        let running = metrics.encode();
        controllers.worked(NAME, Duration::from_secs(6));
        controllers.reconciled(NAME, "error");
        controllers.reconciled(NAME, "success");
        let ended = metrics.encode();
        let of = "{controller=\"azurecluster\"}";
        for (text, line) in [
            (&running, format!("controller_runtime_max_concurrent_reconciles{of} 10")),
            (&running, format!("controller_runtime_active_workers{of} 2")),
            (&running, format!("controller_runtime_reconcile_errors_total{of} 0")),
            (&ended, format!("controller_runtime_active_workers{of} 1")),
            (&ended, format!("controller_runtime_reconcile_time_seconds_sum{of} 6.0")),
            (&ended, format!("controller_runtime_reconcile_errors_total{of} 1")),
            (
                &ended,
                "controller_runtime_reconcile_total{controller=\"azurecluster\",result=\"success\"} 1".into(),
            ),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
    }
}
