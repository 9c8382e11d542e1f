//! How often kubelets report and how soon the node monitor misses them.

use std::time::Duration;

/// The intervals of kubelets and of the controller that monitors them. `Default` is those of a real cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How often a kubelet renews its Lease (a quarter of `nodeLeaseDurationSeconds`).
    pub heartbeat: Duration,
    /// How often all nodes are checked (`--node-monitor-period`).
    pub monitor_period: Duration,
    /// After this silence a node is Ready=Unknown (`--node-monitor-grace-period`).
    pub grace: Duration,
    /// The same for a node that never reported (`--node-startup-grace-period`).
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
    /// A pace at which a silent node is missed after `grace`, so that tests need not wait.
    pub fn missed_after(grace: Duration) -> Self {
        Self { heartbeat: grace / 4, monitor_period: grace / 8, grace, startup_grace: grace * 2 }
    }
}
