//! Options of workload clusters.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::GuestStart;
use azure_simulator::packet::Source;
use stand_ins::Pace;

/// How a machine boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Time until the operating system runs and Azure's agent answers.
    pub system: Duration,
    /// Time that a successful kubeadm takes after that.
    pub bootstrap: Duration,
    /// The outcome of the boot.
    pub outcome: Outcome,
}

/// The outcome of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Success, if the network and the data allow it.
    Works,
    /// The operating system does not start, for this reason.
    SystemFails(String),
    /// kubeadm fails, for this reason.
    BootstrapFails(String),
    /// kubeadm never ends.
    Hangs,
}

impl Default for Boot {
    /// A minute in all: half of it for the system.
    fn default() -> Self {
        let half = Duration::from_secs(30);
        Self { system: half, bootstrap: half, outcome: Outcome::Works }
    }
}

/// Decides how each machine boots.
pub type BootPlan = Arc<dyn Fn(&GuestStart) -> Boot + Send + Sync>;

/// The component that sets the nodes' provider IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloudProvider {
    /// An unseen cloud controller manager, which has done so when a node appears.
    #[default]
    Unseen,
    /// A real one: nodes whose kubelets have `cloud-provider: external` wait for it, with the taint for that.
    Awaited,
}

/// Options of workload clusters.
#[derive(Clone)]
pub struct WorkloadOptions {
    /// Seed of everything random in them, together with a cluster's name.
    pub seed: u64,
    /// How machines boot.
    pub boot: BootPlan,
    /// The intervals of kubelets and of the node monitor.
    pub pace: Pace,
    /// The network location of the programs that manage the clusters.
    pub management: Source,
    /// The component that sets the nodes' provider IDs.
    pub cloud_provider: CloudProvider,
}

impl fmt::Debug for WorkloadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadOptions").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Default for WorkloadOptions {
    /// Seed 1, boots of a minute, managed from somewhere on the internet, an unseen cloud controller manager.
    fn default() -> Self {
        Self {
            seed: 1,
            boot: Arc::new(|_| Boot::default()),
            pace: Pace::default(),
            management: Source::internet(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7))),
            cloud_provider: CloudProvider::default(),
        }
    }
}
