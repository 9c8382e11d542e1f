//! Which replica leads, and which controllers it runs, under the names of client-go and of Kubernetes' components.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics::registry::{Metrics, Named};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Running {
    name: &'static str,
    manager: &'static str,
}

/// The metrics of leadership. Cheap to clone.
#[derive(Clone)]
pub struct LeadershipMetrics {
    leader: Family<Named, Gauge>,
    slow_path: Family<Named, Counter>,
    running: Family<Running, Gauge>,
}

impl LeadershipMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            leader: registry.add("leader_election_master_status", "Whether this replica leads"),
            slow_path: registry
                .add("leader_election_slowpath", "Renewals of the lease that had to read it first"),
            running: registry.add("running_managed_controllers", "Whether a controller runs"),
        }
    }

    /// Records whether this replica holds the named lease.
    pub fn leading(&self, lease: &str, leads: bool) {
        self.leader.get_or_create(&Named { name: lease.to_owned() }).set(i64::from(leads));
    }

    /// A renewal of the named lease had to read it first.
    pub fn slow_path(&self, lease: &str) {
        self.slow_path.get_or_create(&Named { name: lease.to_owned() }).inc();
    }

    /// Records whether a controller of this manager runs.
    pub fn running(&self, manager: &'static str, controller: &'static str, runs: bool) {
        self.running.get_or_create(&Running { name: controller, manager }).set(i64::from(runs));
    }
}
