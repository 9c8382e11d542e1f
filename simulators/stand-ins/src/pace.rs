//! How fast kubelets speak and how soon they are missed.

use std::time::Duration;

/// The times of kubelets and of the controller that watches over them. `Default` is a real cluster's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How often a kubelet renews its Lease (a quarter of `nodeLeaseDurationSeconds`).
    pub heartbeat: Duration,
    /// How often all nodes are judged (`--node-monitor-period`).
    pub monitor_period: Duration,
    /// A node that is silent for longer is not known to be ready (`--node-monitor-grace-period`).
    pub grace: Duration,
    /// The same for a node that never spoke (`--node-startup-grace-period`).
    pub startup_grace: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(10),
            monitor_period: Duration::from_secs(5),
            grace: Duration::from_secs(40),
            startup_grace: Duration::from_secs(60),
        }
    }
}

impl Pace {
    /// A pace at which a node that falls silent is missed after `grace`, so that nobody has to wait for it.
    pub fn missed_after(grace: Duration) -> Self {
        Self { heartbeat: grace / 4, monitor_period: grace / 8, grace, startup_grace: grace * 2 }
    }
}
