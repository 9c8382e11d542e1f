//! Actions that a program needs at a place, and the features that need them.

use crate::{Feature, Program};

/// Where an action is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The subscription of network resources.
    Subscription,
    /// The resource group of load balancers.
    LoadBalancers,
    /// The cluster's resource group, and those that Services name for public IPs.
    PublicIps,
    /// Prefixes that Services name.
    Prefixes,
    /// The resource group of the security group.
    SecurityGroup,
    /// The resource group of the virtual network.
    VirtualNetwork,
    /// The resource group of private link services, and those that Services name.
    PrivateLinks,
    /// The cluster's resource group, and those with scale sets of nodes.
    ScaleSets,
    /// The cluster's resource group, and those with virtual machines that are nodes.
    VirtualMachines,
    /// The resource group of the route table.
    RouteTable,
    /// The registry.
    Registry,
    /// The resource groups of clusters, or the subscription.
    Clusters,
    /// The subscription of machines and disks.
    MachineSubscription,
    /// The cluster's resource group, and those that classes and static volumes name.
    Disks,
    /// The encryption sets that classes and disks name.
    EncryptionSets,
    /// The disk accesses that classes name.
    DiskAccesses,
    /// The cluster's resource group, and those of storage accounts that classes and static volumes name.
    Accounts,
    /// The resource group of the virtual network, and those that classes name.
    ShareNetworks,
    /// The resource groups of private zones of DNS.
    DnsZones,
}

impl Place {
    /// Whether it is a whole subscription.
    pub fn is_subscription(self) -> bool {
        matches!(self, Self::Subscription | Self::MachineSubscription)
    }

    /// The place in words, with the key of azure.json that names it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Subscription => "the network's subscription",
            Self::LoadBalancers => "`loadBalancerResourceGroup`",
            Self::PublicIps => "`resourceGroup`, and the groups that Services name",
            Self::Prefixes => "the prefix",
            Self::SecurityGroup => "`securityGroupResourceGroup`",
            Self::VirtualNetwork => "`vnetResourceGroup`",
            Self::PrivateLinks => "`privateLinkServiceResourceGroup`, and the groups that Services name",
            Self::ScaleSets => "groups of scale sets",
            Self::VirtualMachines => "groups of virtual machines",
            Self::RouteTable => "`routeTableResourceGroup`",
            Self::Registry => "the registry",
            Self::Clusters => "the subscription, or the groups of clusters",
            Self::MachineSubscription => "the cluster's subscription",
            Self::Disks => "`resourceGroup`, and the groups that classes and volumes name",
            Self::EncryptionSets => "the encryption sets",
            Self::DiskAccesses => "the disk accesses",
            Self::Accounts => "`resourceGroup`, and the groups of accounts that classes and volumes name",
            Self::ShareNetworks => "`vnetResourceGroup`, and the groups of networks that classes name",
            Self::DnsZones => "the network's group, and `privateDNSZoneResourceGroup` of classes",
        }
    }
}

/// Actions that are needed for one purpose at one place.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// The program.
    pub program: Program,
    /// The actions, in Azure's spelling.
    pub actions: &'static [&'static str],
    /// Where.
    pub place: Place,
    /// The features that need it: one of these sets, of which all are in use. The role of the last feature of a set
    /// has the actions; the roles of the others are there, too.
    pub features: &'static [&'static [Feature]],
    /// What for.
    pub purpose: &'static str,
    /// Whether Azure checks it beside a call, because the written document refers to the resource.
    pub is_join: bool,
}

impl Grant {
    /// Whether a configuration with these features needs it.
    pub fn is_needed(&self, has: impl Fn(Feature) -> bool) -> bool {
        self.features.iter().any(|all| all.iter().all(|feature| has(*feature)))
    }
}
