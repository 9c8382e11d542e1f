//! The nodes of machines, and the interfaces of virtual machines.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, ScaleSetInstance};
use k8s::Node;
use machine::{self as instance, InstanceName, ProviderId};

use super::backend_pool::{PoolMembership, is_eligible};
use super::holder::Wish;
use crate::model::Cluster;

/// The ID by which a node's provider ID names an instance of a uniform scale set.
pub(crate) fn instance_id(scale_set: &ResourceId, instance: &ScaleSetInstance) -> Option<ResourceId> {
    let number = instance.instance_id.clone();
    let name = number.map(|instance_id| InstanceName { scale_set: scale_set.clone(), instance_id });
    name.map(|name| name.id()).or_else(|| instance.id.clone())
}

/// The virtual machine that an interface belongs to.
pub(crate) fn machine_of(interface: &NetworkInterface) -> Option<&ResourceId> {
    interface.properties.as_ref()?.virtual_machine.as_ref()?.id.as_ref()
}

/// The interfaces of each virtual machine.
pub(crate) fn interfaces_by_machine(
    interfaces: &[Arc<NetworkInterface>],
) -> BTreeMap<&ResourceId, Vec<&NetworkInterface>> {
    let mut by_machine: BTreeMap<&ResourceId, Vec<&NetworkInterface>> = BTreeMap::new();
    for interface in interfaces {
        if let Some(machine) = machine_of(interface) {
            by_machine.entry(machine).or_default().push(interface);
        }
    }
    by_machine
}

/// The ID of a node's machine, from its provider ID.
pub(crate) fn machine_id(node: &Node) -> Option<ResourceId> {
    match instance::parse_provider_id(&node.spec.provider_id) {
        ProviderId::Instance(name) => Some(name.id()),
        ProviderId::Machine(id) => Some(id),
        ProviderId::Unreadable | ProviderId::Other => None,
    }
}

/// All nodes by their machines.
pub(crate) struct NodesByMachine<'a> {
    pub(crate) cluster: &'a Cluster,
    by_id: HashMap<ResourceId, &'a Node>,
    /// The names of nodes whose machines are known, in lower case; filled lazily.
    named: OnceCell<HashSet<String>>,
    nodes: &'a [Arc<Node>],
}

impl<'a> NodesByMachine<'a> {
    pub(crate) fn new(cluster: &'a Cluster, nodes: &'a [Arc<Node>]) -> Self {
        let by_id = nodes.iter().filter_map(|node| Some((machine_id(node)?, &**node))).collect();
        Self { cluster, by_id, named: OnceCell::new(), nodes }
    }

    /// The node of an instance of a uniform scale set, by provider ID. A node without a provider ID has no machine yet:
    /// two instances may have the same computer name.
    pub(crate) fn of_instance(&self, set: &ResourceId, instance: &ScaleSetInstance) -> Option<&'a Node> {
        self.by_id.get(&instance_id(set, instance)?).copied()
    }

    /// Whether an instance without a node has the name of a node that is another machine. Such an instance is not a
    /// node of the cluster, whatever pool it joined under that name.
    pub(crate) fn is_namesake(&self, instance: &ScaleSetInstance) -> bool {
        let profile = instance.properties.as_ref().and_then(|p| p.os_profile.as_ref());
        let Some(computer) = profile.and_then(|profile| profile.computer_name.as_deref()) else {
            return false;
        };
        let named = self.named.get_or_init(|| {
            let known = self.nodes.iter().filter(|node| machine_id(node).is_some());
            known.map(|node| node.name().to_ascii_lowercase()).collect()
        });
        named.contains(&computer.to_ascii_lowercase())
    }

    /// The node of a virtual machine.
    pub(crate) fn of_machine(&self, machine: &ResourceId) -> Option<&'a Node> {
        self.by_id.get(machine).copied()
    }

    /// The pools among these that any node belongs in.
    pub(crate) fn pools_with_nodes<'b>(&self, memberships: &'b [PoolMembership]) -> HashSet<&'b ResourceId> {
        let has_nodes = |membership: &&PoolMembership| {
            let mut nodes = self.nodes.iter().filter(|node| membership.is_for(node));
            nodes.any(|node| is_eligible(self.cluster, node))
        };
        memberships.iter().filter(has_nodes).map(|membership| &membership.pool).collect()
    }

    /// The desired membership of a node's machine in a pool to be filled; `fillable` are the pools [with
    /// nodes](Self::pools_with_nodes).
    ///
    /// A machine that is not eligible leaves, whichever nodes the pool is for, because the set of a deleted node's
    /// machine is unknown. But a pool is not emptied by exclusions.
    pub(crate) fn wish(
        &self,
        node: &Node,
        membership: &PoolMembership,
        fillable: &HashSet<&ResourceId>,
    ) -> Option<Wish> {
        if !is_eligible(self.cluster, node) {
            return fillable.contains(&membership.pool).then_some(Wish::Leave);
        }
        membership.is_for(node).then_some(Wish::Join)
    }
}
