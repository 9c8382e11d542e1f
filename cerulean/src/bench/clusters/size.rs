//! What each measured cluster consists of.

use kubernetes_simulator::Kubernetes;

use super::managed;
use super::objects::{self, Application};

/// What a cluster has beside its base, which comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// A network with machines.
    Machines { control_planes: usize, workers: usize },
    /// A control plane that Azure manages, with node pools of two machines.
    Pools(usize),
}

impl Size {
    /// The number of its members.
    pub fn members(self) -> usize {
        match self {
            Self::Machines { control_planes, workers } => control_planes + workers,
            Self::Pools(pools) => pools,
        }
    }

    /// The kind of the object that becomes ready before its members.
    pub fn base(self) -> &'static str {
        match self {
            Self::Machines { .. } => "AzureCluster",
            Self::Pools(_) => "AzureManagedControlPlane",
        }
    }

    /// The kind of its members.
    pub fn member(self) -> &'static str {
        match self {
            Self::Machines { .. } => "AzureMachine",
            Self::Pools(_) => "AzureManagedMachinePool",
        }
    }

    /// The base and the members in the words of the tables.
    pub fn words(self) -> [&'static str; 2] {
        match self {
            Self::Machines { .. } => ["network", "machines"],
            Self::Pools(_) => ["control plane", "pools"],
        }
    }

    /// The goal for the manager's resident memory with a hundred such clusters.
    pub fn memory_goal(self) -> &'static str {
        match self {
            Self::Machines { .. } => "150 MB",
            Self::Pools(_) => "100 MB",
        }
    }

    /// The goal for the reads of a cluster at rest. A managed cluster and each of its pools have loops of their own, of
    /// four reads.
    pub fn reads_goal(self) -> usize {
        match self {
            Self::Machines { .. } => 12,
            Self::Pools(pools) => 4 * (1 + pools),
        }
    }

    /// Declares a cluster.
    pub fn declare(
        self,
        kubernetes: &Kubernetes,
        application: &Application<'_>,
        name: &str,
    ) -> anyhow::Result<()> {
        match self {
            Self::Machines { .. } => objects::cluster(kubernetes, application, name),
            Self::Pools(pools) => managed::cluster(kubernetes, application, name, pools),
        }
    }

    /// Declares the members that are created after the base, and returns the names of all.
    pub fn declare_members(
        self,
        kubernetes: &Kubernetes,
        application: &Application<'_>,
        cluster: &str,
    ) -> anyhow::Result<Vec<String>> {
        let Self::Machines { control_planes, .. } = self else {
            return Ok((0..self.members()).map(|index| managed::pool_name(cluster, index)).collect());
        };
        let mut names = Vec::new();
        for index in 0..self.members() {
            let is_control_plane = index < control_planes;
            let role = if is_control_plane { "cp" } else { "worker" };
            let name = format!("{cluster}-{role}-{index}");
            objects::machine(kubernetes, application, cluster, &name, is_control_plane)?;
            names.push(name);
        }
        Ok(names)
    }
}
