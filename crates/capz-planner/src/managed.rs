//! Clusters that Azure manages (AKS), for self-managed machines that join one: their location and outbound
//! connectivity. Azure creates all of that; here it is only named.
//!
//! No controller uses this yet: it belongs to the managed clusters, which are not served. It shows that a pool that
//! joins one only needs another spec of the cluster, which a controller would derive from an AzureManagedControlPlane.

use capz_api::azure_cluster::{AzureClusterSpec, NetworkSpec};
use capz_api::network::{BackendPool, LoadBalancer, Subnet, VirtualNetwork, roles};
use capz_api::{ObjectReference, Tags};

/// The load balancer that Azure creates for the nodes of a managed cluster.
const BALANCER: &str = "kubernetes";
/// Its backend pool for the nodes' outbound traffic.
const OUTBOUND_POOL: &str = "aksOutboundBackendPool";

/// A managed cluster.
#[derive(Debug, Clone, Default)]
pub struct ManagedCluster {
    /// The subscription, if it is declared.
    pub subscription: Option<String>,
    /// The region.
    pub location: String,
    /// The cloud.
    pub environment: Option<String>,
    /// The identity with which resources are created.
    pub identity: Option<ObjectReference>,
    /// The resource group in which Azure creates the nodes' resources.
    pub node_group: String,
    /// The virtual network.
    pub network: String,
    /// The resource group of the network.
    pub network_group: String,
    /// The subnet of the nodes.
    pub subnet: String,
    /// Tags of all resources that are created for the cluster.
    pub additional_tags: Option<Tags>,
}

impl ManagedCluster {
    /// The cluster in the form that goals of machine pools need: with a declared network and without a control plane.
    pub fn as_cluster(&self) -> AzureClusterSpec {
        let subnet = Subnet {
            name: Some(self.subnet.clone()),
            role: Some(roles::NODE.to_owned()),
            ..Subnet::default()
        };
        let network = VirtualNetwork {
            name: Some(self.network.clone()),
            resource_group: Some(self.network_group.clone()),
            ..VirtualNetwork::default()
        };
        let balancer = LoadBalancer {
            name: Some(BALANCER.to_owned()),
            backend_pool: Some(BackendPool {
                name: Some(OUTBOUND_POOL.to_owned()),
                ..BackendPool::default()
            }),
            ..LoadBalancer::default()
        };
        AzureClusterSpec {
            subscription_id: self.subscription.clone(),
            location: Some(self.location.clone()),
            azure_environment: self.environment.clone(),
            identity_ref: self.identity.clone(),
            resource_group: Some(self.node_group.clone()),
            additional_tags: self.additional_tags.clone(),
            control_plane_enabled: Some(false),
            network_spec: Some(NetworkSpec {
                vnet: Some(network),
                subnets: Some(vec![subnet]),
                node_outbound_lb: Some(balancer),
                ..NetworkSpec::default()
            }),
            ..AzureClusterSpec::default()
        }
    }
}
