//! The nodes by holder: the resource whose document makes a node's machine a member of pools. That is its uniform scale
//! set, or the resource group of its network interface.
//!
//! Provider IDs of one holder differ in their last segment only, so that one of them is parsed for thousands of nodes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use azure_types::{ResourceId, ScaleSet};
use k8s::Node;
use planner::instance::{self, ProviderId};
use planner::scale_set;

/// The holder of a node's machine, by provider ID.
pub(super) fn holder_of(node: &Node) -> Option<ResourceId> {
    Some(match instance::parse_provider_id(&node.spec.provider_id) {
        ProviderId::Instance(machine) => machine.scale_set,
        ProviderId::Machine(id) => group_of(&id),
        ProviderId::Unreadable | ProviderId::Other => return None,
    })
}

/// The resource group of a virtual machine.
fn group_of(machine: &ResourceId) -> ResourceId {
    ResourceId::group(machine.subscription_id(), machine.group_name().unwrap_or_default())
}

/// A provider ID without its last segment.
fn without_last(node: &Node) -> &str {
    node.spec.provider_id.rsplit_once('/').map_or("", |(before, _)| before)
}

/// The nodes by provider ID without its last segment.
fn grouped<'a>(nodes: impl IntoIterator<Item = &'a Arc<Node>>) -> HashMap<&'a str, Vec<&'a Arc<Node>>> {
    let mut grouped: HashMap<&str, Vec<&Arc<Node>>> = HashMap::new();
    for node in nodes {
        grouped.entry(without_last(node)).or_default().push(node);
    }
    grouped
}

/// The machine of the first of these nodes that has one.
fn first_machine(nodes: &[&Arc<Node>]) -> Option<ProviderId> {
    let mut ids = nodes.iter().map(|node| instance::parse_provider_id(&node.spec.provider_id));
    ids.find(|id| matches!(id, ProviderId::Instance(_) | ProviderId::Machine(_)))
}

/// The uniform scale sets of these nodes.
pub(super) fn scale_sets_of(nodes: &[Arc<Node>]) -> HashSet<ResourceId> {
    let set = |nodes: &Vec<&Arc<Node>>| match first_machine(nodes)? {
        ProviderId::Instance(machine) => Some(machine.scale_set),
        _ => None,
    };
    grouped(nodes).values().filter_map(set).collect()
}

/// The resource groups of virtual machines among these nodes.
pub(super) fn groups_of(nodes: &[Arc<Node>]) -> BTreeSet<ResourceId> {
    let group = |nodes: &Vec<&Arc<Node>>| match first_machine(nodes)? {
        ProviderId::Machine(id) => Some(group_of(&id)),
        _ => None,
    };
    grouped(nodes).values().filter_map(group).collect()
}

/// The nodes of the holders that `which` selects.
pub(super) fn of_holders<'a>(
    nodes: &'a [Arc<Node>],
    which: impl Fn(&ResourceId) -> bool,
) -> impl Iterator<Item = &'a Arc<Node>> {
    let is_selected = move |nodes: &Vec<&'a Arc<Node>>| {
        nodes.iter().find_map(|node| holder_of(node)).is_some_and(|holder| which(&holder))
    };
    grouped(nodes).into_values().filter(is_selected).flatten()
}

/// The identities of nodes by holder: a hash of their names and provider IDs for each. Pools remember them, for
/// thousands of nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodeIdentities(HashMap<ResourceId, u64>);

impl NodeIdentities {
    /// The identities of nodes that are sorted by name.
    pub(super) fn of<'a>(nodes: impl Iterator<Item = &'a Arc<Node>>) -> Self {
        let mut holders: HashMap<ResourceId, u64> = HashMap::new();
        for nodes in grouped(nodes).into_values() {
            let Some(holder) = nodes.iter().find_map(|node| holder_of(node)) else { continue };
            let mut print = DefaultHasher::new();
            for node in nodes {
                (node.name(), &node.spec.provider_id).hash(&mut print);
            }
            // A sum, because the letter case of provider IDs may differ within a holder.
            let all = holders.entry(holder).or_default();
            *all = all.wrapping_add(print.finish());
        }
        Self(holders)
    }

    /// The holders of nodes.
    pub(super) fn holders(&self) -> impl Iterator<Item = &ResourceId> {
        self.0.keys()
    }

    /// The identities of a holder's nodes; `None` if it has no node.
    pub(super) fn of_holder(&self, holder: &ResourceId) -> Option<u64> {
        self.0.get(holder).copied()
    }
}

/// The nodes as scale sets look for them.
pub(super) struct NodesBySet<'a> {
    /// The names of nodes that are instances of uniform scale sets.
    names: Vec<&'a str>,
    sets: HashSet<ResourceId>,
    /// The resource groups of virtual machines.
    groups: BTreeSet<ResourceId>,
}

impl<'a> NodesBySet<'a> {
    pub(super) fn new(nodes: &'a [Arc<Node>]) -> Self {
        let is_instances =
            |nodes: &Vec<&Arc<Node>>| matches!(first_machine(nodes), Some(ProviderId::Instance(_)));
        let of_sets = grouped(nodes).into_values().filter(is_instances).flatten();
        Self {
            names: of_sets.map(|node| node.name()).collect(),
            sets: scale_sets_of(nodes),
            groups: groups_of(nodes),
        }
    }

    /// Whether any node is a machine of the scale set, by provider ID or by name: a machine that joined by its name has
    /// to leave. For a flexible scale set only the machines' own documents tell: any virtual machine in its resource
    /// group may belong to it.
    pub(super) fn has_any_of(&self, set: &ScaleSet) -> bool {
        let Some(id) = &set.id else { return false };
        if scale_set::is_flexible(set) {
            return self.sets.contains(id) || id.parent().is_some_and(|group| self.groups.contains(&group));
        }
        self.sets.contains(id)
            || self.names.iter().any(|name| instance::instance_id_of_node_name(name, set).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETS: &str =
        "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets";
    const MACHINES: &str =
        "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines";

    fn nodes(all: &[(&str, String)]) -> Vec<Arc<Node>> {
        let node = |(name, id): &(&str, String)| {
            let mut node = Node::default();
            node.metadata.name = Some((*name).to_owned());
            node.spec.provider_id = id.clone();
            Arc::new(node)
        };
        all.iter().map(node).collect()
    }

    fn set(name: &str) -> ResourceId {
        ResourceId::group("s", "g").resource("Microsoft.Compute", "virtualMachineScaleSets", name)
    }

    #[test]
    fn identities_change_only_for_the_holder_whose_nodes_change() {
        let (a, b) = (set("a"), set("b"));
        let before = [
            ("a0", format!("{SETS}/a/virtualMachines/0")),
            ("a1", format!("{}/A/virtualMachines/1", SETS.to_lowercase())),
            ("b0", format!("{SETS}/b/virtualMachines/0")),
            ("vm", format!("{MACHINES}/vm")),
            ("none", String::new()),
            ("odd", format!("{SETS}/c/virtualMachines/")),
        ];
        let known = NodeIdentities::of(nodes(&before).iter());
        let group = ResourceId::group("s", "g");
        assert_eq!(known.holders().collect::<BTreeSet<_>>(), BTreeSet::from([&a, &b, &group]));
        for (changed, now) in [
            (&a, [&before[1..], &[]].concat()),
            (&a, [&before[..], &[("a2", format!("{SETS}/a/virtualMachines/2"))]].concat()),
            (&b, [&before[..2], &[("b0", format!("{SETS}/b/virtualMachines/7"))], &before[3..]].concat()),
            (&b, [&before[..2], &[("bX", format!("{SETS}/b/virtualMachines/0"))], &before[3..]].concat()),
            (&group, [&before[..3], &before[4..]].concat()),
        ] {
            let now = NodeIdentities::of(nodes(&now).iter());
            for holder in [&a, &b, &group] {
                assert_eq!(
                    known.of_holder(holder) != now.of_holder(holder),
                    holder == changed,
                    "{holder} {now:?}"
                );
            }
        }
        assert_eq!(known, NodeIdentities::of(nodes(&before).iter()));
    }

    #[test]
    fn nodes_are_found_by_their_holder() {
        let all = nodes(&[
            ("a0", format!("{SETS}/a/virtualMachines/0")),
            ("b0", format!("{SETS}/b/virtualMachines/0")),
            ("vm", format!("{MACHINES}/vm")),
            ("none", String::new()),
        ]);
        let names = |which: &ResourceId| -> Vec<String> {
            of_holders(&all, |holder| holder == which).map(|node| node.name().to_owned()).collect()
        };
        let group = ResourceId::group("s", "g");
        for (holder, expected) in [(set("a"), vec!["a0"]), (group.clone(), vec!["vm"]), (set("c"), vec![])] {
            assert_eq!(names(&holder), expected);
        }
        assert_eq!(scale_sets_of(&all), HashSet::from([set("a"), set("b")]));
        assert_eq!(groups_of(&all), BTreeSet::from([group]));
    }
}
