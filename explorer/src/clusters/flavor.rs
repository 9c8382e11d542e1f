//! How a cluster is declared: which kinds its objects have.

use rand::Rng as _;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

/// The declaration of a cluster, named as the templates are with which users begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Flavor {
    /// Machines, a network and a load balancer of its own.
    #[default]
    SelfManaged,
    /// A cluster that Azure manages.
    Aks,
    /// A cluster that Azure manages, declared as whole resources of Azure.
    AksAso,
}

impl Flavor {
    /// A random one.
    pub(super) fn draw(random: &mut SmallRng) -> Self {
        match random.random_range(0..10) {
            0..5 => Self::SelfManaged,
            5..8 => Self::Aks,
            _ => Self::AksAso,
        }
    }

    /// Whether it is the default, which is left out of the text of a trial.
    pub(super) fn is_self_managed(&self) -> bool {
        *self == Self::SelfManaged
    }

    /// The kind of the infrastructure of a Cluster.
    pub(super) fn infrastructure(self) -> &'static str {
        match self {
            Self::SelfManaged => "AzureCluster",
            Self::Aks => "AzureManagedCluster",
            Self::AksAso => "AzureASOManagedCluster",
        }
    }

    /// The kind of the control plane of a Cluster, if it has one of ours.
    pub(super) fn control_plane(self) -> Option<&'static str> {
        match self {
            Self::SelfManaged => None,
            Self::Aks => Some("AzureManagedControlPlane"),
            Self::AksAso => Some("AzureASOManagedControlPlane"),
        }
    }

    /// The kind of the infrastructure of a MachinePool.
    pub(super) fn pool(self) -> &'static str {
        match self {
            Self::SelfManaged => "AzureMachinePool",
            Self::Aks => "AzureManagedMachinePool",
            Self::AksAso => "AzureASOManagedMachinePool",
        }
    }

    /// The kind of the object that is ready once Azure serves the cluster.
    pub(super) fn served(self) -> &'static str {
        self.control_plane().unwrap_or(self.infrastructure())
    }

    /// The kind of the parts by which a cluster grows.
    pub(super) fn part(self) -> &'static str {
        match self {
            Self::SelfManaged => "Machine",
            Self::Aks | Self::AksAso => "MachinePool",
        }
    }
}
