//! The cluster that is planned for: its configuration, its name, and the ids that follow from both.

use std::net::IpAddr;

use azure_types::ResourceId;
use cloud_config::CloudConfig;

/// The provider namespace of load balancers, addresses and networks.
const NETWORK: &str = "Microsoft.Network";

/// The cluster that is planned for.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// azure.json.
    pub config: CloudConfig,
    /// The value of `--cluster-name`.
    pub name: String,
    /// The zones of the configured region, such as `1`, `2`, `3`; empty where it has none.
    pub region_zones: Vec<String>,
}

/// Which of the two load balancers of a cluster: `<cluster>` or `<cluster>-internal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flavor {
    /// The one with public addresses.
    External,
    /// The one with addresses of the virtual network.
    Internal,
}

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Flavor {
    /// Both load balancers.
    pub const BOTH: [Self; 2] = [Self::External, Self::Internal];

    /// Whether this is the internal load balancer.
    pub fn is_internal(self) -> bool {
        self == Self::Internal
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::External => Self::Internal,
            Self::Internal => Self::External,
        }
    }
}

impl Family {
    /// Both families.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family's name in Kubernetes and Azure.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Cluster {
    /// The name of a load balancer: `loadBalancerName` or else the cluster's name, the internal one with
    /// `-internal` behind it (3.1).
    pub fn load_balancer_name(&self, flavor: Flavor) -> String {
        let configured = &self.config.load_balancer_name;
        let base = if configured.is_empty() { &self.name } else { configured };
        match flavor {
            Flavor::External => base.clone(),
            Flavor::Internal => format!("{base}-internal"),
        }
    }

    /// The id of a load balancer.
    pub fn load_balancer_id(&self, flavor: Flavor) -> ResourceId {
        self.network_group(self.config.load_balancer_resource_group()).resource(
            NETWORK,
            "loadBalancers",
            &self.load_balancer_name(flavor),
        )
    }

    /// The id of a frontend.
    pub fn frontend_id(&self, flavor: Flavor, name: &str) -> ResourceId {
        self.load_balancer_id(flavor).child("frontendIPConfigurations", name)
    }

    /// The id of a probe.
    pub fn probe_id(&self, flavor: Flavor, name: &str) -> ResourceId {
        self.load_balancer_id(flavor).child("probes", name)
    }

    /// The name of the pool that holds the cluster's nodes: always made of the cluster's name (3.1).
    pub fn pool_name(&self, family: Family) -> String {
        match family {
            Family::V4 => self.name.clone(),
            Family::V6 => format!("{}-IPv6", self.name),
        }
    }

    /// The id of the pool that holds the cluster's nodes.
    pub fn pool_id(&self, flavor: Flavor, family: Family) -> ResourceId {
        self.load_balancer_id(flavor).child("backendAddressPools", &self.pool_name(family))
    }

    /// The id of a public IP in a resource group.
    pub fn public_ip_id(&self, group: &str, name: &str) -> ResourceId {
        self.network_group(group).resource(NETWORK, "publicIPAddresses", name)
    }

    /// The id of the one security group that is managed; absent where none is configured (8.1).
    pub fn security_group_id(&self) -> Option<ResourceId> {
        let name = &self.config.security_group_name;
        (!name.is_empty()).then(|| {
            self.network_group(self.config.security_group_resource_group()).resource(
                NETWORK,
                "networkSecurityGroups",
                name,
            )
        })
    }

    /// The id of a subnet of the configured virtual network.
    pub fn subnet_id(&self, name: &str) -> ResourceId {
        self.network_group(self.config.vnet_resource_group())
            .resource(NETWORK, "virtualNetworks", &self.config.vnet_name)
            .child("subnets", name)
    }

    /// The id of a resource group in the subscription of network resources.
    pub fn network_group(&self, group: &str) -> ResourceId {
        ResourceId::group(self.config.network_subscription_id(), group)
    }

    /// Whether somebody else fills the pools of this load balancer (6.8).
    pub fn has_preconfigured_pools(&self, flavor: Flavor) -> bool {
        self.config.pre_configured_backend_pool_load_balancer_types.covers(flavor.is_internal())
    }
}
