//! The common inputs of all goals of a cluster: the places and names of its resources.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::network::{LoadBalancer, NatGateway, Peering, Subnet, VirtualNetwork, roles};
use capz_api::{Gates, Tags};
use serde_json::{Value, json};

use crate::claimant::Claimant;
use crate::document::text;
use crate::tags;

/// The default port of an API server.
pub const API_SERVER_PORT: i32 = 6443;

/// A cluster: its AzureCluster after defaulting, and the facts about it from other sources.
#[derive(Debug, Clone, Copy)]
pub struct ClusterScope<'a> {
    /// The name of the Cluster, which the tags of its resources contain.
    pub cluster: &'a str,
    /// The ID of the cluster: names are not unique. Empty if it has none, `None` if it is unknown.
    pub id: Option<&'a str>,
    /// Whether another cluster that claims the same resources takes precedence: then only resources with the ID are
    /// this cluster's.
    pub marked_only: bool,
    /// Resources that are foreign, whatever their tags say ([`crate::operator::KEPT`]).
    pub kept: &'a BTreeSet<ResourceId>,
    /// The namespace of the AzureCluster.
    pub namespace: &'a str,
    /// The name of the AzureCluster.
    pub name: &'a str,
    /// Its specification.
    pub spec: &'a AzureClusterSpec,
    /// The subscription in effect.
    pub subscription: &'a str,
    /// `clusterNetwork.apiServerPort` of the Cluster.
    pub api_server_port: Option<i32>,
    /// The zones of its region, by `status.failureDomains`.
    pub zones: &'a [String],
    /// The suffix of public names in the cloud, such as `cloudapp.azure.com`.
    pub dns_suffix: &'a str,
    /// The feature gates.
    pub gates: Gates,
}

impl<'a> From<ClusterScope<'a>> for Claimant<'a> {
    fn from(scope: ClusterScope<'a>) -> Self {
        scope.claimant()
    }
}

impl<'a> ClusterScope<'a> {
    /// The cluster, for judging ownership.
    pub fn claimant(&self) -> Claimant<'a> {
        Claimant {
            kind: "AzureCluster",
            namespace: self.namespace,
            name: self.name,
            cluster: self.cluster,
            id: self.id,
            marked_only: self.marked_only,
            kept: self.kept,
        }
    }

    /// The region.
    pub fn location(&self) -> &'a str {
        self.spec.location.as_deref().unwrap_or_default()
    }

    /// The resource group of the cluster.
    pub fn group(&self) -> ResourceId {
        ResourceId::group(self.subscription, self.group_name())
    }

    /// Its name.
    pub fn group_name(&self) -> &'a str {
        self.spec.resource_group.as_deref().unwrap_or(self.name)
    }

    /// The declared network.
    pub(crate) fn vnet(&self) -> Option<&'a VirtualNetwork> {
        self.spec.network_spec.as_ref()?.vnet.as_ref()
    }

    /// The declared peerings of the network.
    pub(crate) fn peerings(&self) -> &'a [Peering] {
        self.vnet().and_then(|vnet| vnet.peerings.as_deref()).unwrap_or_default()
    }

    /// The name of the resource group of the network, its security groups and route tables.
    pub fn network_group_name(&self) -> &'a str {
        self.vnet().and_then(|vnet| text(&vnet.resource_group)).unwrap_or_else(|| self.group_name())
    }

    /// The resource group of the network.
    pub fn network_group(&self) -> ResourceId {
        ResourceId::group(self.subscription, self.network_group_name())
    }

    /// The name of the network.
    pub fn network_name(&self) -> &'a str {
        self.vnet().and_then(|vnet| vnet.name.as_deref()).unwrap_or_default()
    }

    /// The network.
    pub fn network(&self) -> ResourceId {
        self.network_group().resource("Microsoft.Network", "virtualNetworks", self.network_name())
    }

    /// A subnet of the network.
    pub fn subnet(&self, name: &str) -> ResourceId {
        self.network().child("subnets", name)
    }

    /// A resource of Microsoft.Network in the cluster's group.
    pub fn in_group(&self, kind: &str, name: &str) -> ResourceId {
        self.group().resource("Microsoft.Network", kind, name)
    }

    /// A resource of Microsoft.Network in the network's group.
    pub fn in_network_group(&self, kind: &str, name: &str) -> ResourceId {
        self.network_group().resource("Microsoft.Network", kind, name)
    }

    /// A resource of Microsoft.Compute in the cluster's group.
    pub(crate) fn compute(&self, kind: &str, name: &str) -> ResourceId {
        self.group().resource("Microsoft.Compute", kind, name)
    }

    /// A public IP of the cluster.
    pub fn public_ip(&self, name: &str) -> ResourceId {
        self.in_group("publicIPAddresses", name)
    }

    /// The declared subnets.
    pub fn subnets(&self) -> &'a [Subnet] {
        let network = self.spec.network_spec.as_ref();
        network.and_then(|network| network.subnets.as_deref()).unwrap_or_default()
    }

    /// The NAT gateway by which the machines of a subnet reach the internet; `None` for a subnet of a foreign network,
    /// whose owner has arranged that.
    pub fn way_out(&self, subnet: &str) -> Option<&'a NatGateway> {
        let subnet = self.subnets().iter().find(|known| known.name.as_deref() == Some(subnet))?;
        let gateway = subnet.nat_gateway.as_ref()?;
        // The observed state is in the spec: who owns the network, and which gateway the subnet has.
        let is_there = text(&gateway.id).is_some() || !self.is_network_foreign();
        (is_there && text(&gateway.name).is_some()).then_some(gateway)
    }

    /// Whether the network was read, and is foreign.
    fn is_network_foreign(&self) -> bool {
        self.vnet()
            .is_some_and(|vnet| vnet.id.is_some() && !self.claimant().owns(&json!({ "tags": vnet.tags })))
    }

    /// Subnets for machines of this role: those of the role, otherwise those for all roles.
    pub fn subnets_for(&self, role: &str) -> Vec<&'a Subnet> {
        let of = |role: &str| -> Vec<&'a Subnet> {
            self.subnets().iter().filter(|subnet| subnet.role.as_deref() == Some(role)).collect()
        };
        let own = of(role);
        if own.is_empty() { of(roles::CLUSTER) } else { own }
    }

    /// Whether the control plane runs on machines of this cluster.
    pub fn has_control_plane(&self) -> bool {
        self.spec.control_plane_enabled != Some(false)
    }

    /// The load balancer of the API server, if the cluster has one.
    pub fn api_server_balancer(&self) -> Option<&'a LoadBalancer> {
        let network = self.spec.network_spec.as_ref()?;
        network.api_server_lb.as_ref().filter(|_| self.has_control_plane())
    }

    /// The load balancer for the nodes' outbound traffic.
    pub fn node_outbound_balancer(&self) -> Option<&'a LoadBalancer> {
        self.spec.network_spec.as_ref()?.node_outbound_lb.as_ref()
    }

    /// The load balancer for the outbound traffic of a private control plane.
    pub fn control_plane_outbound_balancer(&self) -> Option<&'a LoadBalancer> {
        let network = self.spec.network_spec.as_ref()?;
        network.control_plane_outbound_lb.as_ref().filter(|_| {
            self.has_control_plane() && self.api_server_balancer().is_some_and(LoadBalancer::is_internal)
        })
    }

    /// Whether the API server has an internal load balancer beside the public one.
    pub fn has_internal_twin(&self) -> bool {
        self.gates.api_server_ilb
            && self.api_server_balancer().is_some_and(|balancer| !balancer.is_internal())
    }

    /// The port of the API servers.
    pub fn port(&self) -> i32 {
        self.api_server_port.filter(|port| *port != 0).unwrap_or(API_SERVER_PORT)
    }

    /// A load balancer of the cluster.
    pub fn balancer(&self, name: &str) -> ResourceId {
        self.in_group("loadBalancers", name)
    }

    /// A backend pool of a load balancer of the cluster.
    pub fn pool(&self, balancer: &str, pool: &str) -> ResourceId {
        self.balancer(balancer).child("backendAddressPools", pool)
    }

    /// The tags of a resource: additional tags of the cluster, owner, role and name.
    pub fn tags(&self, role: Option<&str>, name: Option<&str>) -> Tags {
        self.tags_with(self.spec.additional_tags.clone().unwrap_or_default(), role, name)
    }

    /// The tags of a resource without additional tags: owner, role and name.
    pub fn plain_tags(&self, role: Option<&str>, name: Option<&str>) -> Tags {
        self.tags_with(Tags::new(), role, name)
    }

    /// The tags of a resource with these additional tags: owner, role and name.
    pub(crate) fn tags_with(&self, additional: Tags, role: Option<&str>, name: Option<&str>) -> Tags {
        tags::build(self.cluster, self.id.unwrap_or_default(), &additional, role, name)
    }

    /// The user's tags for a machine or a scale set with tags of its `own`: the cluster's as well, and the one by which
    /// the cloud controller manager recognizes it.
    pub(crate) fn additional_tags(&self, own: Option<&Tags>) -> Tags {
        let mut tags = self.spec.additional_tags.clone().unwrap_or_default();
        tags.extend(own.cloned().unwrap_or_default());
        tags.insert(tags::cloud_provider_key(self.cluster), tags::OWNED.to_owned());
        tags
    }

    /// The edge zone of the cluster, in the form of documents.
    pub fn extended_location(&self) -> Option<Value> {
        let edge = self.spec.extended_location.as_ref()?;
        Some(json!({ "name": edge.name, "type": edge.kind }))
    }

    /// Whether the cluster, or a resource that it names, also uses IPv6.
    pub fn has_ipv6(&self) -> bool {
        let mut ranges = self.vnet().and_then(|vnet| vnet.cidr_blocks.as_ref()).into_iter().flatten();
        ranges.any(|range| range.contains(':'))
    }
}

/// `{"id": …}`, the form of references in documents.
pub fn reference(id: &ResourceId) -> Value {
    json!({ "id": id.as_str() })
}
