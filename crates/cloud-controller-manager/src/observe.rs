//! Connects internal observers to the served metrics.

use std::time::Duration;

use arm::{CallObserver, CallRecord};
use clock::Clock;
use cloud::Looked;
use manager::Calls;
use telemetry::metrics::{CloudMetrics, ConfigMetrics, Metrics};

/// Counts calls to Azure and the reports of the controllers.
pub struct Meter {
    /// All served metrics.
    pub metrics: Metrics,
    /// The configuration in force.
    pub configuration: ConfigMetrics,
    cloud: CloudMetrics,
    clock: Clock,
}

impl Default for Meter {
    fn default() -> Self {
        let metrics = Metrics::default();
        let (cloud, configuration) = (CloudMetrics::of(&metrics), ConfigMetrics::of(&metrics));
        Self { cloud, configuration, metrics, clock: Clock::system() }
    }
}

impl CallObserver for Meter {
    fn on_call(&self, call: &CallRecord<'_>) {
        Calls(self.metrics.clone()).on_call(call);
    }
}

impl controllers::Observer for Meter {
    fn nodes_synced(&self, took: Duration, succeeded: bool) {
        self.cloud.reconcile("UpdateLoadBalancer", took, !succeeded);
    }

    fn looked_again(&self, took: Duration, looked: &Looked) {
        let now = self.clock.now().as_millisecond() as f64 / 1000.0;
        self.cloud.resynced(now, took, looked.failure.is_some(), &looked.differences);
    }

    fn draining_updated(&self, took: Duration, succeeded: bool) {
        self.cloud.reconcile("UpdateLoadBalancerAdminState", took, !succeeded);
    }

    fn local_pools_updated(&self, took: Duration, succeeded: bool) {
        self.cloud.reconcile("UpdateLocalBackendPool", took, !succeeded);
    }

    fn routes_synced(&self) {
        self.cloud.routes_synced();
    }

    fn ranges_changed(&self, change: &controllers::RangeTurnover) {
        let controllers::RangeTurnover { cluster, allocated, released, skipped, used } = change;
        self.cloud.ranges(&cluster.to_string(), *allocated, *released, skipped, *used);
    }

    fn leading(&self, lease: &str, leads: bool) {
        self.metrics.leading(lease, leads);
    }
}
