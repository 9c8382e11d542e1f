//! Events that are not written.

use prometheus_client::metrics::counter::Counter;

use crate::metrics::registry::Metrics;

/// The metrics of events. Cheap to clone.
#[derive(Clone)]
pub struct EventMetrics(Counter);

impl EventMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        Self(metrics.registry.add(
            "cerulean_events_dropped",
            "Events that were not written, by the limit of an object or because the API server was too slow",
        ))
    }

    /// An event was dropped.
    pub fn dropped(&self) {
        self.0.inc();
    }
}
