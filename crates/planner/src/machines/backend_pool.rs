//! Backend pools: which nodes belong in them, and which pools scale sets join or leave.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId};
use k8s::Node;
use machine as instance;

use super::exclusion;
use super::node_places::NodePlaces;
use crate::model::{Balancer, Cluster, Family};

/// The desired membership in one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolMembership {
    /// The pool's id.
    pub pool: ResourceId,
    /// The address family of its members.
    pub family: Family,
    /// Whether eligible nodes join. Otherwise all members leave, because the pool is to be deleted.
    pub member: bool,
    /// The names of the nodes that join; absent where all do. A load balancer of SKU Basic serves one set of machines.
    pub of_nodes: Option<Arc<BTreeSet<String>>>,
}

impl PoolMembership {
    /// Whether the pool is for this node.
    pub(crate) fn is_for(&self, node: &Node) -> bool {
        self.of_nodes.as_ref().is_none_or(|nodes| nodes.contains(node.name()))
    }
}

/// Whether a node belongs in pools. Every step uses this one test.
///
/// The node is not being deleted, not excluded by label (`false` keeps it in, as in Kubernetes), not about to be
/// removed by the autoscaler, managed by Azure, and not a control-plane node where those are excluded. Where interfaces
/// are the members, it must be in the cluster's resource group, because machines elsewhere are never written. Where
/// addresses are the members, control-plane nodes never belong, as in the replaced program (6.1). Readiness does not
/// matter: health probes handle it.
pub fn is_eligible(cluster: &Cluster, node: &Node) -> bool {
    exclusion::of(cluster, node).next().is_none()
}

/// Whether a node's address can be relied on. A node without a provider ID is not initialised yet, or never will be: it
/// is unknown whether its machine still exists, and its address may belong to another machine by now (LB-450). A node
/// with a foreign provider ID is in no pool of interfaces.
fn is_at_its_address(cluster: &Cluster, node: &Node) -> bool {
    let provider_id = &node.spec.provider_id;
    instance::names_machine(provider_id) || cluster.has_pools_of_addresses() && !provider_id.is_empty()
}

/// The addresses of the nodes in pools, of the given families: the destinations of packets if nodes do not see the
/// frontend's address.
///
/// A node that is not initialised yet is added when it is.
pub fn node_addresses(cluster: &Cluster, nodes: &[Arc<Node>], families: &[Family]) -> Vec<IpAddr> {
    if families.is_empty() {
        return Vec::new();
    }
    let nodes = nodes.iter().filter(|node| is_member_by_address(cluster, node));
    let addresses: BTreeSet<IpAddr> = nodes
        .flat_map(|node| node.internal_addresses())
        .filter(|address| families.contains(&Family::of(*address)))
        .collect();
    addresses.into_iter().collect()
}

/// Whether a node may be a member of pools that hold addresses.
pub(crate) fn is_member_by_address(cluster: &Cluster, node: &Node) -> bool {
    is_eligible(cluster, node) && is_at_its_address(cluster, node)
}

/// The members of a pool that holds addresses: each node's first address of the family, with the node's name. If two
/// nodes have the same address, the first counts. A node that is not initialised yet is added when it is.
pub fn members_by_address<'a>(
    cluster: &Cluster,
    nodes: &'a [Arc<Node>],
    family: Family,
) -> BTreeMap<IpAddr, &'a str> {
    let mut members = BTreeMap::new();
    for node in nodes.iter().filter(|node| is_member_by_address(cluster, node)) {
        if let Some(address) = node.internal_addresses().find(|address| Family::of(*address) == family) {
            members.entry(address).or_insert(node.name());
        }
    }
    members
}

/// The cluster's pools of a load balancer, with their families.
fn pools(cluster: &Cluster, balancer: &Balancer, load_balancer: &LoadBalancer) -> Vec<(Family, ResourceId)> {
    let present = load_balancer.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
    let names: Vec<&str> = present.filter_map(|pool| pool.name.as_deref()).collect();
    Family::BOTH
        .into_iter()
        .filter(|family| names.iter().any(|name| name.eq_ignore_ascii_case(&cluster.pool_name(*family))))
        .map(|family| (family, cluster.pool_id(balancer, family)))
        .collect()
}

/// The pools that nodes' interfaces join, once the load balancer is `after`. Pools that are filled by others are left
/// out, unless they were created just now: `before` is the load balancer before it was written. Empty where pools hold
/// addresses. `sets` are the nodes of each load balancer, where load balancers of SKU Basic share them.
pub fn pools_to_fill(
    cluster: &Cluster,
    balancer: &Balancer,
    sets: Option<&NodePlaces>,
    before: Option<&LoadBalancer>,
    after: &LoadBalancer,
) -> Vec<PoolMembership> {
    if cluster.has_pools_of_addresses() {
        return Vec::new();
    }
    let of_nodes = sets.map(|sets| Arc::new(sets.names_on(balancer)));
    let old = before.map(|before| pools(cluster, balancer, before)).unwrap_or_default();
    pools(cluster, balancer, after)
        .into_iter()
        .filter(|pool| !cluster.has_preconfigured_pools(balancer) || !old.contains(pool))
        .map(|(family, pool)| PoolMembership { pool, family, member: true, of_nodes: of_nodes.clone() })
        .collect()
}

/// The pools that all members have to leave before the load balancer can be deleted.
pub fn pools_to_empty(
    cluster: &Cluster,
    balancer: &Balancer,
    load_balancer: &LoadBalancer,
) -> Vec<PoolMembership> {
    pools(cluster, balancer, load_balancer)
        .into_iter()
        .map(|(family, pool)| PoolMembership { pool, family, member: false, of_nodes: None })
        .collect()
}
