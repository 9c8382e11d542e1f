//! The cluster: its configuration, its name, and the IDs that follow from both.

use azure_types::ResourceId;
use cloud_config::{BackendPoolType, CloudConfig};

use super::balancer::{Balancer, Flavor, INTERNAL_SUFFIX};
use super::family::Family;

/// The provider namespace of load balancers, addresses and networks.
const NETWORK: &str = "Microsoft.Network";

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

    fn network_resource(&self, group: &str, kind: &str, name: &str) -> ResourceId {
        self.network_group(group).resource(NETWORK, kind, name)
    }

    /// The id of a load balancer.
    pub fn load_balancer_id(&self, balancer: &Balancer) -> ResourceId {
        self.network_resource(self.config.load_balancer_resource_group(), "loadBalancers", &balancer.name)
    }

    /// The id of a frontend.
    pub fn frontend_id(&self, balancer: &Balancer, name: &str) -> ResourceId {
        self.load_balancer_id(balancer).child("frontendIPConfigurations", name)
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
        self.network_resource(group, "publicIPAddresses", name)
    }

    /// The id of a private link service in a resource group.
    pub fn private_link_id(&self, group: &str, name: &str) -> ResourceId {
        self.network_resource(group, "privateLinkServices", name)
    }

    /// The id of the one security group that is managed; absent where none is configured.
    pub fn security_group_id(&self) -> Option<ResourceId> {
        let name = &self.config.security_group_name;
        let group = self.config.security_group_resource_group();
        (!name.is_empty()).then(|| self.network_resource(group, "networkSecurityGroups", name))
    }

    /// The id of the one route table that is managed; absent where none is configured.
    pub fn route_table_id(&self) -> Option<ResourceId> {
        let (name, group) = (&self.config.route_table_name, self.config.route_table_resource_group());
        (!name.is_empty()).then(|| self.network_resource(group, "routeTables", name))
    }

    /// The id of the configured virtual network.
    pub fn virtual_network_id(&self) -> ResourceId {
        self.network_resource(self.config.vnet_resource_group(), "virtualNetworks", &self.config.vnet_name)
    }

    /// The id of a subnet of the configured virtual network.
    pub fn subnet_id(&self, name: &str) -> ResourceId {
        self.virtual_network_id().child("subnets", name)
    }

    /// The id of a resource group in the subscription of network resources.
    pub fn network_group(&self, group: &str) -> ResourceId {
        ResourceId::group(self.config.network_subscription_id(), group)
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

    /// Whether Services with traffic policy `Local` have pools of their own ([`crate::service::local_pool`]): only where several
    /// load balancers share the Services, and pools hold addresses.
    pub fn has_local_pools(&self) -> bool {
        self.config.uses_multiple_standard_load_balancers() && self.has_pools_of_addresses()
    }

    /// Whether the pools of this load balancer are filled by others.
    pub fn has_preconfigured_pools(&self, balancer: &Balancer) -> bool {
        self.config.pre_configured_backend_pool_load_balancer_types.covers(balancer.flavor.is_internal())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::order::tests::cluster_with;

    #[test]
    fn resources_that_are_not_configured_have_no_id() {
        let configured = cluster_with(json!({
            "securityGroupName": "nsg", "securityGroupResourceGroup": "a",
            "routeTableName": "routes", "routeTableResourceGroup": "b",
        }));
        let id = |group: &str, kind: &str, name: &str| {
            Some(configured.network_group(group).resource("Microsoft.Network", kind, name))
        };
        assert_eq!(configured.security_group_id(), id("a", "networkSecurityGroups", "nsg"));
        assert_eq!(configured.route_table_id(), id("b", "routeTables", "routes"));
        let empty = cluster_with(json!({"securityGroupName": "", "routeTableName": ""}));
        assert_eq!((empty.security_group_id(), empty.route_table_id()), (None, None));
    }
}
