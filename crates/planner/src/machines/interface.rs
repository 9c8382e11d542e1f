//! Network interfaces of virtual machines (standalone ones, and those of availability sets and flexible scale sets):
//! membership in pools, written on each interface.

use std::collections::HashSet;
use std::sync::Arc;

use azure_types::{LoadBalancer, NetworkInterface, ResourceId};
use cloud_config::VmType;
use k8s::Node;

use super::backend_pool::PoolMembership;
use super::holder::{Wish, changed};
use super::nodes::{NodesByMachine, interfaces_by_machine, machine_of};
use super::obstacle::Reason;
use crate::model::Cluster;
use crate::outcome::{Action, Document, Member, Purpose, Step, proof};

/// The interface by which a virtual machine is a member of pools: its only one, or the one that is marked as primary.
pub(crate) fn primary_interface<'a>(
    interfaces: &[&'a NetworkInterface],
) -> Result<&'a NetworkInterface, Reason> {
    let flag = |interface: &NetworkInterface| interface.properties.as_ref().and_then(|p| p.primary);
    match interfaces {
        [] => Err(Reason::NoMachine),
        // An only interface that is not primary: the machine has others in a resource group that was not read.
        [only] if flag(only) != Some(false) => Ok(only),
        several => {
            let primary = several.iter().find(|interface| flag(interface) == Some(true));
            primary.copied().ok_or(Reason::NoPrimaryInterface)
        }
    }
}

/// What prevents the interface of a virtual machine from joining pools (LB-203, LB-204). A basic load balancer has
/// virtual machines only in clusters without scale sets.
pub(crate) fn obstacle(cluster: &Cluster, interface: &NetworkInterface) -> Option<Reason> {
    let config = &cluster.config;
    let has_scale_sets = matches!(config.vm_type, VmType::Vmss | VmType::VmssFlex);
    if has_scale_sets && !config.uses_standard_load_balancer() {
        return Some(Reason::BasicLoadBalancer);
    }
    let state = interface.properties.as_ref().and_then(|p| p.provisioning_state.as_ref())?;
    if state.is("Failed") {
        return Some(Reason::InterfaceFailed);
    }
    state.is("Deleting").then_some(Reason::NoMachine)
}

/// Whether a pool of this load balancer has interfaces of a resource group among its members.
pub fn has_members_of(load_balancer: &LoadBalancer, group: &ResourceId) -> bool {
    let pools = load_balancer.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
    let mut members = pools.filter_map(|pool| pool.properties.as_ref()?.backend_ip_configurations.as_ref());
    members.any(|members| members.has_some_of(group))
}

/// Plans the interfaces of virtual machines: each at most once, all pools together. `nodes` are all nodes of the
/// cluster, whether eligible or not.
///
/// * The interface of an eligible node's machine joins, unless it serves another load balancer.
/// * The interfaces of a node that is not eligible leave, unless no node of the cluster is eligible: a pool is not
///   emptied by exclusions.
/// * An interface that no machine has any more leaves, even if it is the last one.
/// * The interfaces of a machine without a node stay as they are: it may be about to register.
/// * Where a pool is about to go, or to hold addresses, all interfaces leave.
pub fn plan_interfaces(
    cluster: &Cluster,
    observed: &[Arc<NetworkInterface>],
    memberships: &[PoolMembership],
    nodes: &[Arc<Node>],
) -> Vec<Step> {
    interfaces_of(&NodesByMachine::new(cluster, nodes), observed, memberships)
}

pub(crate) fn interfaces_of(
    nodes: &NodesByMachine<'_>,
    observed: &[Arc<NetworkInterface>],
    memberships: &[PoolMembership],
) -> Vec<Step> {
    let cluster = nodes.cluster;
    let by_machine = interfaces_by_machine(observed);
    let has_nodes = nodes.pools_with_nodes(memberships);
    let mut steps = Vec::new();
    let mut seen = HashSet::new();
    for interface in observed {
        let Some(target) = interface.id.as_ref().filter(|id| seen.insert(*id)) else { continue };
        let machine = machine_of(interface);
        let node = machine.and_then(|machine| nodes.of_machine(machine));
        let of_machine = machine.and_then(|machine| by_machine.get(machine));
        let primary = of_machine.and_then(|interfaces| primary_interface(interfaces).ok());
        let is_primary = primary.is_some_and(|primary| primary.id.as_ref() == Some(target));
        let joins = is_primary && obstacle(cluster, interface).is_none();
        let member = || {
            let unnamed = || Member::Interface(target.name().to_owned());
            node.map_or_else(unnamed, |node| Member::Node(node.name().to_owned()))
        };
        let changed = changed(&**interface, memberships, member, |membership| {
            if !membership.member || machine.is_none() {
                return Some(Wish::Leave);
            }
            let wish = nodes.wish(node?, membership, &has_nodes)?;
            (wish == Wish::Leave || joins).then_some(wish)
        });
        let Some((document, changes)) = changed else { continue };
        steps.push(Step {
            action: Action::Update,
            target: target.clone(),
            if_match: interface.etag.clone(),
            document: Some(Document::NetworkInterface(Box::new(document))),
            ownership: proof::memberships(cluster, &changes),
            changes,
            purpose: Purpose::Change,
            on_behalf_of: Vec::new(),
        });
    }
    steps.sort_by(|a, b| a.target.cmp(&b.target));
    steps
}
