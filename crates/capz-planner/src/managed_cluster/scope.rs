//! A managed cluster: its AzureManagedControlPlane, and the specification of an AzureCluster that has the same groups and
//! network. So everything that holds for clusters holds for managed ones: ownership, order, memory, deletion.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_api::azure_cluster::{AzureClusterSpec, NetworkSpec};
use capz_api::azure_managed_control_plane::{AzureManagedControlPlaneSpec, ManagedVirtualNetwork};
use capz_api::network::{BackendPool, LoadBalancer, Subnet, VirtualNetwork, roles};

use crate::claimant::{Claimant, MANAGED_CONTROL_PLANE};
use crate::document::text;
use crate::scope::ClusterScope;

/// The load balancer that Azure creates for the nodes of a managed cluster.
const BALANCER: &str = "kubernetes";
/// Its backend pool for the nodes' outbound traffic.
const OUTBOUND_POOL: &str = "aksOutboundBackendPool";

/// A managed cluster: its AzureManagedControlPlane after defaulting, and the facts about it from other sources.
#[derive(Debug, Clone, Copy)]
pub struct ManagedScope<'a> {
    /// Its groups and its network. The specification is that of [`as_cluster`], the name that of the
    /// AzureManagedControlPlane.
    pub cluster: ClusterScope<'a>,
    /// Its specification.
    pub spec: &'a AzureManagedControlPlaneSpec,
    /// `clusterNetwork.services.cidrBlocks` of the Cluster.
    pub service_ranges: &'a [String],
    /// `clusterNetwork.pods.cidrBlocks` of the Cluster.
    pub pod_ranges: &'a [String],
    /// The custom headers of writes to the managed cluster: [`crate::custom_headers::of`] its annotations and those of its
    /// AzureManagedCluster.
    pub headers: &'a BTreeMap<String, String>,
    /// `status.autoUpgradeVersion`.
    pub auto_upgrade_version: Option<&'a str>,
}

impl<'a> From<ManagedScope<'a>> for Claimant<'a> {
    fn from(scope: ManagedScope<'a>) -> Self {
        scope.claimant()
    }
}

impl<'a> ManagedScope<'a> {
    /// The cluster, for judging ownership.
    pub fn claimant(&self) -> Claimant<'a> {
        Claimant { kind: MANAGED_CONTROL_PLANE, ..self.cluster.claimant() }
    }

    /// The managed cluster.
    pub fn managed_cluster(&self) -> ResourceId {
        self.cluster.group().resource("Microsoft.ContainerService", "managedClusters", self.cluster.name)
    }

    /// The resource group in which Azure creates the nodes' resources.
    pub fn node_group(&self) -> ResourceId {
        ResourceId::group(self.cluster.subscription, &node_group_name(self.spec, self.cluster.name))
    }

    /// The subnet with this name in the cluster's network; by default that of the control plane.
    pub fn subnet(&self, name: Option<&str>) -> ResourceId {
        self.cluster.subnet(name.unwrap_or_else(|| self.subnet_name()))
    }

    /// The name of the control plane's subnet.
    pub fn subnet_name(&self) -> &'a str {
        let subnet = self.spec.virtual_network.as_ref().and_then(|network| network.subnet.as_ref());
        subnet.and_then(|subnet| text(&subnet.name)).unwrap_or(self.cluster.name)
    }

    /// Whether features in preview are used.
    pub(crate) fn is_in_preview(&self) -> bool {
        self.spec.enable_preview_features == Some(true)
    }
}

/// The name of the resource group in which Azure creates the nodes' resources of the managed cluster with this name.
pub fn node_group_name(spec: &AzureManagedControlPlaneSpec, name: &str) -> String {
    text(&spec.node_resource_group_name).map_or_else(
        || {
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("MC_{}_{name}_{}", part(&spec.resource_group_name), part(&spec.location))
        },
        str::to_owned,
    )
}

/// The specification of an AzureCluster with the groups and the network of a managed cluster with this name.
pub fn as_cluster(spec: &AzureManagedControlPlaneSpec, name: &str) -> AzureClusterSpec {
    let none = ManagedVirtualNetwork::default();
    let network = spec.virtual_network.as_ref().unwrap_or(&none);
    let ranges = |range: &Option<String>| text(range).map(|range| vec![range.to_owned()]);
    let own_subnet = network.subnet.clone().unwrap_or_default();
    let subnet = Subnet {
        name: Some(text(&own_subnet.name).unwrap_or(name).to_owned()),
        role: Some(roles::NODE.to_owned()),
        cidr_blocks: ranges(&own_subnet.cidr_block),
        service_endpoints: own_subnet.service_endpoints,
        private_endpoints: own_subnet.private_endpoints,
        ..Subnet::default()
    };
    let vnet = VirtualNetwork {
        name: Some(text(&network.name).unwrap_or(name).to_owned()),
        resource_group: text(&network.resource_group)
            .or_else(|| text(&spec.resource_group_name))
            .map(str::to_owned),
        cidr_blocks: ranges(&network.cidr_block),
        ..VirtualNetwork::default()
    };
    AzureClusterSpec {
        subscription_id: spec.subscription_id.clone(),
        location: spec.location.clone(),
        azure_environment: spec.azure_environment.clone(),
        identity_ref: spec.identity_ref.clone(),
        resource_group: spec.resource_group_name.clone(),
        additional_tags: spec.additional_tags.clone(),
        control_plane_enabled: Some(false),
        network_spec: Some(NetworkSpec {
            vnet: Some(vnet),
            subnets: Some(vec![subnet]),
            ..NetworkSpec::default()
        }),
        ..AzureClusterSpec::default()
    }
}

/// The same for self-managed machines that join the managed cluster: their resources are in the nodes' resource group,
/// and their outbound traffic uses the load balancer that Azure has created there.
pub fn joined(spec: &AzureManagedControlPlaneSpec, name: &str) -> AzureClusterSpec {
    let mut cluster = as_cluster(spec, name);
    cluster.resource_group = Some(node_group_name(spec, name));
    if let Some(network) = cluster.network_spec.as_mut() {
        network.node_outbound_lb = Some(LoadBalancer {
            name: Some(BALANCER.to_owned()),
            backend_pool: Some(BackendPool {
                name: Some(OUTBOUND_POOL.to_owned()),
                ..BackendPool::default()
            }),
            ..LoadBalancer::default()
        });
    }
    cluster
}
