//! Members of pools by address (`loadBalancerBackendPoolConfigurationType: nodeIP`): they are in the load balancer's
//! own document, and are written with it (6.4, 6.5).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::{
    BackendAddressPoolProperties, BackendAddresses, LoadBalancer, LoadBalancerBackendAddress, ResourceId,
    SubResource,
};

use super::edit::Draft;
use super::parts::pool_in;
use crate::machines::admin_state::{self, EntryKey};
use crate::machines::backend_pool::{self, PoolMembership};
use crate::machines::node_places::NodeShare;
use crate::model::{AdminState, Family};
use crate::outcome::Change;

/// The addresses of a pool's members, with the nodes that have them.
pub(super) type Members<'a> = BTreeMap<IpAddr, &'a str>;

/// The address of a member that was added by address, not by interface.
fn address_of(entry: &LoadBalancerBackendAddress) -> Option<IpAddr> {
    entry.properties.as_ref()?.ip_address.as_deref()?.parse().ok()
}

fn is_by_interface(entry: &LoadBalancerBackendAddress) -> bool {
    let properties = entry.properties.as_ref();
    properties.is_some_and(|p| p.ip_address.is_none() && p.network_interface_ip_configuration.is_some())
}

fn entries(pool: &BackendAddressPoolProperties) -> impl Iterator<Item = LoadBalancerBackendAddress> {
    pool.load_balancer_backend_addresses.iter().flat_map(BackendAddresses::iter)
}

/// Whether interfaces are members of the pool.
pub(super) fn has_interfaces(pool: &BackendAddressPoolProperties) -> bool {
    let mirrored = entries(pool).any(|entry| is_by_interface(&entry));
    mirrored || pool.backend_ip_configurations.as_ref().is_some_and(|members| !members.is_empty())
}

/// Whether interfaces are members of a pool of the load balancer.
pub(super) fn has_interfaces_in(document: &LoadBalancer, pool: &ResourceId) -> bool {
    let pool = pool_in(document, pool.name());
    pool.is_some_and(|pool| pool.properties.as_ref().is_some_and(has_interfaces))
}

fn has_addresses(pool: &BackendAddressPoolProperties) -> bool {
    entries(pool).any(|entry| address_of(&entry).is_some())
}

/// Sets the pool's members to the desired ones; returns the changes. Existing data of a member that stays is kept. A
/// pool is not emptied unless that is intended (`may_empty`: other load balancers have the nodes, or a Service has no
/// endpoints): no node would get any traffic, and the nodes may only be missing from one list.
pub(super) fn fill(
    name: &str,
    pool: &mut BackendAddressPoolProperties,
    wanted: &Members<'_>,
    network: &ResourceId,
    may_empty: bool,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let before = pool.load_balancer_backend_addresses.get_or_insert_default();
    let mut entries = before.to_vec();
    if wanted.is_empty() && !may_empty && entries.iter().any(|entry| address_of(entry).is_some()) {
        return changes;
    }
    let mut missing = wanted.clone();
    let mut gone = BTreeSet::new();
    entries.retain(|entry| match address_of(entry) {
        Some(address) if missing.remove(&address).is_some() => true,
        // A duplicate, or a member that belongs to no node.
        Some(address) => {
            gone.insert(address.to_string());
            false
        }
        // Where an interface is the member, Azure writes the entry itself.
        None => false,
    });
    // If the pool names its network, Azure alone manages the network of each member.
    let moves = pool.virtual_network.is_none() && !wanted.is_empty();
    if moves {
        for properties in entries.iter_mut().filter_map(|entry| entry.properties.as_mut()) {
            properties.virtual_network = None;
        }
    }
    let come: Vec<(String, IpAddr)> =
        missing.iter().map(|(address, node)| ((*node).to_owned(), *address)).collect();
    entries.extend(missing.iter().map(|(address, node)| member(node, *address)));
    *before = entries.into();
    if !gone.is_empty() || !come.is_empty() {
        changes.push(Change::PoolMembers { pool: name.to_owned(), come, gone: gone.into_iter().collect() });
    }
    if moves {
        pool.virtual_network = Some(SubResource::to(network.clone()));
        changes.push(Change::PoolOfAddresses { pool: name.to_owned(), network: network.name().to_owned() });
    }
    changes
}

fn member(node: &str, address: IpAddr) -> LoadBalancerBackendAddress {
    let mut entry = LoadBalancerBackendAddress { name: Some(node.to_owned()), ..Default::default() };
    entry.properties.get_or_insert_default().ip_address = Some(address.to_string());
    entry
}

/// Removes the addresses that were members while the pool held addresses: interfaces cannot join before.
fn clear(name: &str, pool: &mut BackendAddressPoolProperties) -> Vec<Change> {
    if !has_addresses(pool) {
        return Vec::new();
    }
    if let Some(all) = &mut pool.load_balancer_backend_addresses {
        *all = all.iter().filter(is_by_interface).collect();
    }
    pool.virtual_network = None;
    vec![Change::PoolOfInterfaces { pool: name.to_owned() }]
}

impl Draft<'_> {
    /// Updates the members of the cluster's pools to the current nodes, as far as they are in the load balancer's
    /// document. Does nothing if the nodes are unknown. Returns the pools that interfaces have to leave before.
    pub(super) fn fill_pools(&mut self) -> Vec<PoolMembership> {
        let cluster = self.cluster;
        let share = self.known.share;
        if cluster.has_several_load_balancers() && share.is_none() {
            return Vec::new();
        }
        let may_empty = share.is_some_and(|share: &NodeShare| share.may_be_empty);
        let network = cluster.virtual_network_id();
        let mut leave_first = Vec::new();
        for family in Family::BOTH {
            let name = cluster.pool_name(family);
            let old = self.observed.and_then(|document| pool_in(document, &name));
            if old.is_some() && cluster.has_preconfigured_pools(self.balancer) {
                continue;
            }
            let nodes = self.known.nodes;
            let pools = self.properties().backend_address_pools.iter_mut().flatten();
            let Some(pool) = pools
                .into_iter()
                .find(|pool| crate::resources::load_balancer::parts::is_named(&pool.name, &name))
            else {
                continue;
            };
            let properties = pool.properties.get_or_insert_default();
            let changes = if cluster.has_pools_of_addresses() {
                let Some(nodes) = nodes else { continue };
                let mut wanted = backend_pool::members_by_address(cluster, nodes, family);
                wanted.retain(|_, node| share.is_none_or(|share| share.has(node)));
                // Scale sets that have no instance now would add their interfaces later.
                let may_have_interfaces = old.is_some_and(|old| {
                    let old = old.properties.as_ref();
                    old.is_none_or(|old| has_interfaces(old) || !has_addresses(old))
                });
                let changes = fill(&name, properties, &wanted, &network, may_empty);
                if may_have_interfaces && !changes.is_empty() {
                    let pool = cluster.pool_id(self.balancer, family);
                    leave_first.push(PoolMembership { pool, family, member: false, of_nodes: None });
                }
                changes
            } else {
                clear(&name, properties)
            };
            self.changes.extend(changes);
        }
        leave_first
    }

    /// Sets the administrative state so that draining nodes take no new connections, and nodes that are back take them
    /// again (10.6). Entries whose node is unknown stay as they are.
    pub(super) fn mark_draining(&mut self) {
        let cluster = self.cluster;
        if !cluster.config.enable_load_balancer_admin_state || cluster.has_preconfigured_pools(self.balancer)
        {
            return;
        }
        let Some(nodes) = self.known.nodes else { return };
        let known = self.known;
        let was_up = |key: &EntryKey| known.was_up.is_some_and(|all| all.contains(key));
        let members = admin_state::Members::new(nodes, self.known.interfaces);
        let mut names: Vec<String> = Family::BOTH.map(|family| cluster.pool_name(family)).into();
        names.extend(self.local_pools().into_iter().map(|pool| pool.name));
        let mut changes = Vec::new();
        for pool in self.properties().backend_address_pools.iter_mut().flatten() {
            let Some(name) =
                names.iter().find(|name| crate::resources::load_balancer::parts::is_named(&pool.name, name))
            else {
                continue;
            };
            let mut marked: BTreeMap<AdminState, Vec<&str>> = BTreeMap::new();
            let all = pool.properties.as_mut().and_then(|p| p.load_balancer_backend_addresses.as_mut());
            let Some(all) = all else { continue };
            let mut entries = all.to_vec();
            for entry in &mut entries {
                let Some(node) = members.node(entry) else { continue };
                let key = admin_state::key_in(name, entry);
                let now = AdminState::of(entry);
                let next = now.next(node.is_draining(), key.is_some_and(|key| was_up(&key)));
                if next != now {
                    admin_state::set(entry, next);
                    marked.entry(next).or_default().push(node.name());
                }
            }
            if !marked.is_empty() {
                *all = entries.into();
            }
            for (state, nodes) in marked {
                let nodes = nodes.into_iter().map(str::to_owned).collect();
                changes.push(Change::AdminState { pool: name.clone(), state, nodes });
            }
        }
        self.changes.extend(changes);
    }
}
