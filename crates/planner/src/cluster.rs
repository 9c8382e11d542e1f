//! The cluster: its configuration, its name, and the IDs that follow from both.

use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId, Sku};
use cloud_config::{BackendPoolType, CloudConfig};
use k8s::Service;

use crate::listed::ListedLoadBalancer;
use crate::load_balancer::pool_in;
use crate::local_pool;
use crate::placement::without_suffix;

/// The provider namespace of load balancers, addresses and networks.
const NETWORK: &str = "Microsoft.Network";

/// The suffix by which the name of an internal load balancer differs from that of the external one.
pub(crate) const INTERNAL_SUFFIX: &str = "-internal";

/// The cluster that the plan is for.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// azure.json.
    pub config: CloudConfig,
    /// The value of `--cluster-name`.
    pub name: String,
    /// The zones of the configured region, such as `1`, `2`, `3`; empty where it has none.
    pub region_zones: Vec<String>,
}

/// Where a load balancer's addresses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flavor {
    /// Public addresses.
    External,
    /// Addresses of the virtual network.
    Internal,
}

/// One load balancer of the cluster. The key of IDs, writers and plans.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Balancer {
    /// The name of the Azure resource, such as `kubernetes` or `kubernetes-internal`.
    pub name: String,
    /// Where its addresses come from.
    pub flavor: Flavor,
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
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::External, Self::Internal];

    /// Whether the addresses are those of the virtual network.
    pub fn is_internal(self) -> bool {
        self == Self::Internal
    }
}

impl std::fmt::Display for Balancer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
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
    /// The load balancer of a Service of this flavor where there is one of each: `loadBalancerName` or else the
    /// cluster's name, with the suffix `-internal` for the internal one.
    pub fn placement(&self, flavor: Flavor) -> Balancer {
        let configured = &self.config.load_balancer_name;
        self.balancer(if configured.is_empty() { &self.name } else { configured }, flavor)
    }

    /// The load balancer of this name, with the suffix `-internal` for the internal one.
    pub(crate) fn balancer(&self, name: &str, flavor: Flavor) -> Balancer {
        let name = match flavor {
            Flavor::External => name.to_owned(),
            Flavor::Internal => format!("{name}{INTERNAL_SUFFIX}"),
        };
        Balancer { name, flavor }
    }

    /// Whether Services are spread over several load balancers of one flavor.
    pub fn has_several_load_balancers(&self) -> bool {
        self.config.uses_multiple_standard_load_balancers()
    }

    /// The SKU of new load balancers and public IPs.
    pub(crate) fn sku(&self) -> Sku {
        let name = if self.config.uses_basic_load_balancer() { "Basic" } else { "Standard" };
        Sku { name: Some(name.to_owned()), ..Default::default() }
    }

    /// All load balancers on which the cluster's Services may be placed.
    pub fn balancers(&self) -> Vec<Balancer> {
        if !self.has_several_load_balancers() {
            return Flavor::BOTH.into_iter().map(|flavor| self.placement(flavor)).collect();
        }
        let entries = self.config.multiple_standard_load_balancer_configurations.iter();
        entries.flat_map(|entry| Flavor::BOTH.map(|flavor| self.balancer(&entry.name, flavor))).collect()
    }

    /// Whether Services may be placed on a load balancer.
    pub(crate) fn is_configured(&self, balancer: &Balancer) -> bool {
        self.balancers().contains(balancer)
    }

    /// The load balancer of the cluster that a document describes: one on which Services may be placed, or one on which
    /// they were placed under an earlier configuration (LB-261). The latter has a pool of the cluster's name, or only
    /// pools of single Services; a load balancer of another name without them would be another cluster's.
    pub(crate) fn balancer_of(&self, document: &LoadBalancer, services: &[Arc<Service>]) -> Option<Balancer> {
        let id = document.id.as_ref()?;
        let known = self.balancers().into_iter().find(|one| self.load_balancer_id(one) == *id);
        known.or_else(|| self.former_balancer(id, document, services))
    }

    fn former_balancer(
        &self,
        id: &ResourceId,
        document: &LoadBalancer,
        services: &[Arc<Service>],
    ) -> Option<Balancer> {
        // Where an operator chooses the name, a load balancer of another name may be the operator's as well.
        let may_be_named_otherwise = !self.config.load_balancer_name.is_empty();
        let is_ours = || {
            let group = self.network_group(self.config.load_balancer_resource_group());
            let has_pool = |family| pool_in(document, &self.pool_name(family)).is_some();
            id.parent() == Some(group)
                && (Family::BOTH.into_iter().any(has_pool)
                    || local_pool::are_all_pools_of(document, services))
        };
        let has_one_name = !self.has_several_load_balancers() && !self.config.uses_basic_load_balancer();
        if may_be_named_otherwise && has_one_name || !is_ours() {
            return None;
        }
        let is_internal = without_suffix(id.name()) != id.name();
        let flavor = if is_internal { Flavor::Internal } else { Flavor::External };
        Some(Balancer { name: id.name().to_owned(), flavor })
    }

    /// The id of a load balancer.
    pub fn load_balancer_id(&self, balancer: &Balancer) -> ResourceId {
        self.network_group(self.config.load_balancer_resource_group()).resource(
            NETWORK,
            "loadBalancers",
            &balancer.name,
        )
    }

    /// The id of a frontend.
    pub fn frontend_id(&self, balancer: &Balancer, name: &str) -> ResourceId {
        self.load_balancer_id(balancer).child("frontendIPConfigurations", name)
    }

    /// The id of a probe.
    pub fn probe_id(&self, balancer: &Balancer, name: &str) -> ResourceId {
        self.load_balancer_id(balancer).child("probes", name)
    }

    /// The name of the pool that holds the cluster's nodes; always derived from the cluster's name.
    pub fn pool_name(&self, family: Family) -> String {
        match family {
            Family::V4 => self.name.clone(),
            Family::V6 => format!("{}-IPv6", self.name),
        }
    }

    /// The id of the pool that holds the cluster's nodes.
    pub fn pool_id(&self, balancer: &Balancer, family: Family) -> ResourceId {
        self.load_balancer_id(balancer).child("backendAddressPools", &self.pool_name(family))
    }

    /// The id of a public IP in a resource group.
    pub fn public_ip_id(&self, group: &str, name: &str) -> ResourceId {
        self.network_group(group).resource(NETWORK, "publicIPAddresses", name)
    }

    /// The id of a private link service in a resource group.
    pub fn private_link_id(&self, group: &str, name: &str) -> ResourceId {
        self.network_group(group).resource(NETWORK, "privateLinkServices", name)
    }

    /// The id of the one security group that is managed; absent where none is configured.
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

    /// The id of the one route table that is managed; absent where none is configured.
    pub fn route_table_id(&self) -> Option<ResourceId> {
        let (name, group) = (&self.config.route_table_name, self.config.route_table_resource_group());
        (!name.is_empty()).then(|| self.network_group(group).resource(NETWORK, "routeTables", name))
    }

    /// The id of the configured virtual network.
    pub fn virtual_network_id(&self) -> ResourceId {
        self.network_group(self.config.vnet_resource_group()).resource(
            NETWORK,
            "virtualNetworks",
            &self.config.vnet_name,
        )
    }

    /// The id of a subnet of the configured virtual network.
    pub fn subnet_id(&self, name: &str) -> ResourceId {
        self.virtual_network_id().child("subnets", name)
    }

    /// The id of a resource group in the subscription of network resources.
    pub fn network_group(&self, group: &str) -> ResourceId {
        ResourceId::group(self.config.network_subscription_id(), group)
    }

    /// The cluster's own load balancers among these. `services` are all known Services of the cluster.
    pub fn own_load_balancers(
        &self,
        all: impl IntoIterator<Item = Arc<LoadBalancer>>,
        services: &[Arc<Service>],
    ) -> Vec<(Balancer, ListedLoadBalancer)> {
        all.into_iter()
            .filter_map(|document| Some((self.balancer_of(&document, services)?, document.into())))
            .collect()
    }

    /// The load balancers on which the cluster's Services were placed before, among these.
    pub fn former_load_balancers(
        &self,
        all: impl IntoIterator<Item = Arc<LoadBalancer>>,
        services: &[Arc<Service>],
    ) -> Vec<(Balancer, ListedLoadBalancer)> {
        let own = self.own_load_balancers(all, services).into_iter();
        own.filter(|(balancer, _)| !self.is_configured(balancer)).collect()
    }

    /// Whether nodes are members of pools by address (`nodeIP`), not by network interface.
    pub fn has_pools_of_addresses(&self) -> bool {
        self.config.load_balancer_backend_pool_configuration_type == BackendPoolType::NodeIp
    }

    /// Whether lists of machines come without their instance views.
    pub(crate) fn lists_machines_without_views(&self) -> bool {
        self.config.list_vmss_virtual_machines_without_instance_view
    }

    /// Whether a name is that of a pool that holds the cluster's nodes.
    pub(crate) fn is_pool_of_nodes(&self, name: &str) -> bool {
        Family::BOTH.iter().any(|family| self.pool_name(*family).eq_ignore_ascii_case(name))
    }

    /// Whether Services with traffic policy `Local` have pools of their own ([`crate::local_pool`]): only where several
    /// load balancers share the Services, and pools hold addresses.
    pub fn has_local_pools(&self) -> bool {
        self.config.uses_multiple_standard_load_balancers() && self.has_pools_of_addresses()
    }

    /// Whether the pools of this load balancer are filled by others.
    pub fn has_preconfigured_pools(&self, balancer: &Balancer) -> bool {
        self.config.pre_configured_backend_pool_load_balancer_types.covers(balancer.flavor.is_internal())
    }
}
