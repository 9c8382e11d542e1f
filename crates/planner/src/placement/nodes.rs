//! The nodes of each of several load balancers (7.5). A machine can be behind only one load balancer of a flavor, so
//! the nodes are divided among the entries; both load balancers of an entry have the same nodes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{BackendAddresses, LoadBalancer};
use cloud_config::MultipleStandardLoadBalancerConfiguration as Entry;
use k8s::Node;

use super::candidates::is_entry_of;
use crate::machines::backend_pool;
use crate::machines::machine_set::{MachineSet, MachineSets};
use crate::machines::node_places::NodePlaces;
use crate::model::{Balancer, Cluster, Family, Labels};
use crate::resources::load_balancer::{ListedLoadBalancer, pool_in};

/// Divides the nodes among the load balancers that exist (`load_balancers`):
///
/// 1. A node of an entry's primary machine set belongs to that entry.
/// 2. Any other node belongs to an entry whose node selector selects it, or else to one without a selector. It stays
///    where it is if that is allowed, and otherwise goes to the entry with the fewest nodes.
///
/// An entry without an existing load balancer has no nodes. The order of nodes does not matter.
pub fn place_nodes(
    cluster: &Cluster,
    nodes: &[Arc<Node>],
    sets: &MachineSets,
    load_balancers: &[(Balancer, ListedLoadBalancer)],
) -> NodePlaces {
    let entries = &cluster.config.multiple_standard_load_balancer_configurations;
    let exists = |entry: &&Entry| load_balancers.iter().any(|(one, _)| is_entry_of(entry, one));
    let open: Vec<&Entry> = entries.iter().filter(exists).collect();
    let mut members: BTreeMap<&str, &Arc<Node>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| backend_pool::is_member_by_address(cluster, node)) {
        members.insert(node.name(), node);
    }
    let present = present(cluster, &members, load_balancers, &open);
    let mut places: Vec<BTreeSet<String>> = vec![BTreeSet::new(); open.len()];
    let mut rest = Vec::new();
    let (mut nowhere, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for (name, node) in members {
        let at = present.get(name);
        match sets.of(node) {
            // Its entry is unknown: it stays where it is.
            MachineSet::Unknown => {
                unknown.insert(name.to_owned());
                if let Some(place) = at.and_then(|at| places.get_mut(*at)) {
                    place.insert(name.to_owned());
                }
                continue;
            }
            MachineSet::Named(set) => {
                let primary = open.iter().position(|entry| entry.primary_vm_set.eq_ignore_ascii_case(&set));
                if let Some(place) = primary.and_then(|at| places.get_mut(at)) {
                    place.insert(name.to_owned());
                    continue;
                }
            }
            MachineSet::Alone => {}
        }
        let eligible = eligible(&open, node);
        match at {
            _ if eligible.is_empty() => drop(nowhere.insert(name.to_owned())),
            Some(at) if eligible.contains(at) => {
                if let Some(place) = places.get_mut(*at) {
                    place.insert(name.to_owned());
                }
            }
            _ => rest.push((name, eligible)),
        }
    }
    for (name, eligible) in rest {
        let fewest = eligible.into_iter().min_by_key(|at| places.get(*at).map_or(0, BTreeSet::len));
        if let Some(place) = fewest.and_then(|at| places.get_mut(at)) {
            place.insert(name.to_owned());
        }
    }
    let by_entry = open.iter().map(|entry| entry.name.to_ascii_lowercase()).zip(places).collect();
    NodePlaces { by_entry, nowhere, unknown }
}

/// The open entries that a node outside of any primary set may belong to: the ones that select it, else the ones
/// without a selector.
fn eligible(open: &[&Entry], node: &Node) -> Vec<usize> {
    let none = Labels::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let selects =
        |entry: &Entry| entry.node_selector.as_ref().is_some_and(|selector| selector.matches(labels));
    let of = |fits: &dyn Fn(&Entry) -> bool| -> Vec<usize> {
        (0..open.len()).filter(|at| open.get(*at).is_some_and(|entry| fits(entry))).collect()
    };
    let selected = of(&selects);
    if selected.is_empty() { of(&|entry| entry.node_selector.is_none()) } else { selected }
}

/// The nodes by their addresses; if two nodes have the same address, the first counts.
pub(super) fn by_address<'a>(nodes: impl IntoIterator<Item = &'a Arc<Node>>) -> HashMap<IpAddr, &'a str> {
    let mut found = HashMap::new();
    for node in nodes {
        for address in node.internal_addresses() {
            found.entry(address).or_insert(node.name());
        }
    }
    found
}

/// The entry on whose load balancers each node is now, found by its addresses in their pools.
fn present<'a>(
    cluster: &Cluster,
    members: &BTreeMap<&'a str, &'a Arc<Node>>,
    load_balancers: &[(Balancer, ListedLoadBalancer)],
    open: &[&Entry],
) -> HashMap<&'a str, usize> {
    let by_address = by_address(members.values().copied());
    let mut found: HashMap<&str, usize> = HashMap::new();
    for (balancer, document) in load_balancers {
        let Some(at) = open.iter().position(|entry| is_entry_of(entry, balancer)) else { continue };
        for address in addresses_in(cluster, document) {
            if let Some(name) = by_address.get(&address) {
                let place = found.entry(name).or_insert(at);
                *place = at.min(*place);
            }
        }
    }
    found
}

/// The addresses in the cluster's pools of a load balancer.
pub(super) fn addresses_in(cluster: &Cluster, document: &LoadBalancer) -> Vec<IpAddr> {
    let pools = Family::BOTH.into_iter().filter_map(|family| pool_in(document, &cluster.pool_name(family)));
    let entries = pools.filter_map(|pool| pool.properties.as_ref()?.load_balancer_backend_addresses.as_ref());
    let entries = entries.flat_map(BackendAddresses::iter);
    entries.filter_map(|entry| entry.properties.as_ref()?.ip_address.as_deref()?.parse().ok()).collect()
}
