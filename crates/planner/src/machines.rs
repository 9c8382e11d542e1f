//! The machines of a cluster, of every kind, and which nodes they are.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine};
use k8s::Node;

use crate::backend_pool::{PoolMembership, is_eligible};
use crate::cluster::Cluster;
use crate::holder::Wish;
use crate::instance::{self, InstanceName, ProviderId};
use crate::plan::{Document, Step};
use crate::{interface, scale_set};

/// The machines that Azure shows, of every kind.
///
/// An instance of a uniform scale set is a member of pools by its own document and its set's model. Every other
/// machine (standalone, of an availability set, of a flexible scale set) is one by its network interface.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    /// The scale sets, each with its instances; flexible ones have none.
    pub scale_sets: Vec<(Arc<ScaleSet>, Vec<Arc<ScaleSetInstance>>)>,
    /// The network interfaces in the resource groups of virtual machines that are nodes.
    pub interfaces: Vec<Arc<NetworkInterface>>,
    /// The virtual machines beside flexible scale sets: they say which set is theirs.
    pub virtual_machines: Vec<Arc<VirtualMachine>>,
}

impl Machines {
    /// Plans everybody's membership in these pools: models, then instances, then interfaces. `nodes` are all nodes.
    pub fn plan(&self, cluster: &Cluster, memberships: &[PoolMembership], nodes: &[Arc<Node>]) -> Vec<Step> {
        let mut steps = Vec::new();
        let by_machine = NodesByMachine::new(cluster, nodes);
        for (set, instances) in &self.scale_sets {
            let virtual_machines = &self.virtual_machines;
            steps.extend(scale_set::plan_model(cluster, set, virtual_machines, memberships, nodes));
            steps.extend(scale_set::instances_of(&by_machine, set, instances, memberships));
        }
        steps.extend(interface::interfaces_of(&by_machine, &self.interfaces, memberships));
        steps
    }

    /// The machines after steps that write their documents; versions stay as they were.
    pub(crate) fn apply(&mut self, steps: &[Step]) {
        let written = steps.iter().filter_map(|step| Some((&step.target, step.document.as_ref()?)));
        let written: HashMap<&ResourceId, &Document> = written.collect();
        let of = |id: &Option<ResourceId>| id.as_ref().and_then(|id| written.get(id)).copied();
        for (set, instances) in &mut self.scale_sets {
            if let Some(Document::ScaleSet(part)) = of(&set.id) {
                let profile = part.properties.as_ref().and_then(|p| p.virtual_machine_profile.clone());
                let properties = Arc::make_mut(set).properties.as_mut();
                let own = properties.and_then(|p| p.virtual_machine_profile.as_mut());
                if let (Some(own), Some(profile)) = (own, profile) {
                    own.network_profile = profile.network_profile;
                }
            }
            for instance in instances {
                if let Some(Document::ScaleSetInstance(part)) = of(&instance.id) {
                    let profile =
                        part.properties.as_ref().and_then(|p| p.network_profile_configuration.clone());
                    if let Some(properties) = Arc::make_mut(instance).properties.as_mut() {
                        properties.network_profile_configuration = profile;
                    }
                }
            }
        }
        for interface in &mut self.interfaces {
            if let Some(Document::NetworkInterface(document)) = of(&interface.id) {
                *interface = Arc::new(NetworkInterface::clone(document));
            }
        }
    }
}

/// The id by which a node's provider id names an instance of a uniform scale set.
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

/// The id of the machine that a node is, as its provider id names it.
pub(crate) fn machine_id(node: &Node) -> Option<ResourceId> {
    match instance::parse_provider_id(&node.spec.provider_id) {
        ProviderId::Instance(name) => Some(name.id()),
        ProviderId::Machine(id) => Some(id),
        ProviderId::Unreadable | ProviderId::Other => None,
    }
}

/// All nodes by the machine that they are.
pub(crate) struct NodesByMachine<'a> {
    pub(crate) cluster: &'a Cluster,
    by_id: HashMap<ResourceId, &'a Node>,
    /// The names of nodes whose machines are known, in lower case; made when it is first asked for.
    named: OnceCell<HashSet<String>>,
    nodes: &'a [Arc<Node>],
}

impl<'a> NodesByMachine<'a> {
    pub(crate) fn new(cluster: &'a Cluster, nodes: &'a [Arc<Node>]) -> Self {
        let by_id = nodes.iter().filter_map(|node| Some((machine_id(node)?, &**node))).collect();
        Self { cluster, by_id, named: OnceCell::new(), nodes }
    }

    /// The node of an instance of a uniform scale set, by its provider ID. A node without one is no machine yet: two
    /// instances may have one computer name.
    pub(crate) fn of_instance(&self, set: &ResourceId, instance: &ScaleSetInstance) -> Option<&'a Node> {
        self.by_id.get(&instance_id(set, instance)?).copied()
    }

    /// Whether an instance without a node has the name of a node that is another machine: it is no node of the cluster,
    /// whatever pool it joined by that name.
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

    /// The pools of these in which any node belongs.
    pub(crate) fn pools_with_nodes<'b>(&self, memberships: &'b [PoolMembership]) -> HashSet<&'b ResourceId> {
        let has_nodes = |membership: &&PoolMembership| {
            let mut nodes = self.nodes.iter().filter(|node| membership.is_for(node));
            nodes.any(|node| is_eligible(self.cluster, node))
        };
        memberships.iter().filter(has_nodes).map(|membership| &membership.pool).collect()
    }

    /// What the machine of a node should do about a pool that has to be filled; `fillable` are the pools
    /// [with nodes](Self::pools_with_nodes).
    ///
    /// Who is not eligible leaves, whatever the pool is for: of a node that was deleted nobody knows any more in which
    /// set its machine is. But a pool is not emptied by exclusions.
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
