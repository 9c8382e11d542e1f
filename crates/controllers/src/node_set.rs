//! The nodes that carry load balancers' traffic, and the changes of them that matter (NODE-087, NODE-088).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use cloud::LoadBalancers;
use k8s::{Node, is_deleting, names};
use parking_lot::Mutex;

/// Whether a node belongs behind load balancers, by the rules of the generic service controller: not being deleted, not
/// excluded by label, not about to be removed by the autoscaler. Readiness does not matter, because probes check it.
pub(crate) fn is_member(node: &Node) -> bool {
    !is_deleting(&node.metadata)
        && !node.is_excluded_from_load_balancers()
        && !node.has_taint(names::TAINT_TO_BE_DELETED)
}

/// Why no node carries load balancers' traffic, as far as the cloud knows; `None` if at least one does.
pub(crate) fn no_available_nodes(cloud: &dyn LoadBalancers, nodes: &[Arc<Node>]) -> Option<String> {
    const MESSAGE: &str = "There are no available nodes for LoadBalancer";
    let why = cloud.why_no_nodes();
    if why.is_none() && nodes.iter().any(|node| is_member(node)) {
        return None;
    }
    Some(why.map_or_else(|| MESSAGE.to_owned(), |why| format!("{MESSAGE}: {why}")))
}

/// The properties of a node that decide about its place in pools.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Member<'a> {
    provider_id: &'a str,
    managed: bool,
    control_plane: bool,
    resource_group: Option<String>,
    addresses: Vec<IpAddr>,
}

impl<'a> Member<'a> {
    fn of(node: &'a Node) -> Self {
        let mut addresses: Vec<IpAddr> = node.internal_addresses().collect();
        addresses.sort_unstable();
        Self {
            provider_id: &node.spec.provider_id,
            managed: node.is_managed(),
            control_plane: node.is_control_plane(),
            resource_group: node.label(names::LABEL_RESOURCE_GROUP).map(str::to_lowercase),
            addresses,
        }
    }
}

/// Whether the change of a node requires an update of all load balancers.
///
/// Upstream compares the exclusion label and the provider ID. The other members of [`Member`] decide about pools just
/// as much, and change as rarely. Readiness and the autoscaler's taint do not trigger (NODE-087).
pub(crate) fn membership_changed(old: &Node, new: &Node) -> bool {
    old.metadata.uid != new.metadata.uid
        || old.is_excluded_from_load_balancers() != new.is_excluded_from_load_balancers()
        || Member::of(old) != Member::of(new)
}

/// A fingerprint of the nodes behind load balancers at one time; equal sets need no update. It does not contain the
/// nodes: several sets are remembered, and there are thousands of nodes. The cost of adding a node does not depend on
/// their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NodeSet {
    len: usize,
    /// The sum of the hashes of all members, so that a member can be replaced without reading the others.
    print: u64,
}

impl NodeSet {
    fn add(&mut self, name: &str, member: &Member<'_>) {
        self.len = self.len.saturating_add(1);
        self.print = self.print.wrapping_add(print(name, member));
    }

    fn remove(&mut self, name: &str, member: &Member<'_>) {
        self.len = self.len.saturating_sub(1);
        self.print = self.print.wrapping_sub(print(name, member));
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

fn print(name: &str, member: &Member<'_>) -> u64 {
    let mut print = DefaultHasher::new();
    name.hash(&mut print);
    member.hash(&mut print);
    print.finish()
}

/// A set of nodes, and the number of changes that led to it. Two equal sets with another one between them are two
/// changes: something may have used the one in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NodeSetVersion {
    /// How often a node has joined, left or changed its place behind load balancers.
    pub changes: u64,
    pub nodes: NodeSet,
}

/// The latest set of nodes behind load balancers, from the watch.
#[derive(Debug, Default)]
pub(crate) struct NodeSetChanges(Mutex<NodeSetVersion>);

impl NodeSetChanges {
    /// Records the change of a node from `old` to `new`.
    pub fn note(&self, old: Option<&Node>, new: Option<&Node>) {
        fn place(node: &Node) -> Option<Member<'_>> {
            is_member(node).then(|| Member::of(node))
        }
        let name = old.or(new).map(Node::name).unwrap_or_default();
        let (old, new) = (old.and_then(place), new.and_then(place));
        if old != new {
            let mut latest = self.0.lock();
            latest.changes += 1;
            old.iter().for_each(|member| latest.nodes.remove(name, member));
            new.iter().for_each(|member| latest.nodes.add(name, member));
        }
    }

    /// Records a change that only the cloud can judge.
    pub fn count_one(&self) {
        self.0.lock().changes += 1;
    }

    pub fn latest(&self) -> NodeSetVersion {
        *self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(labels: Value, more: Value) -> Node {
        let mut object = json!({
            "metadata": {"name": "n1", "uid": "1", "labels": labels},
            "spec": {"providerID": "azure:///a"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                       "addresses": [{"type": "InternalIP", "address": "10.0.0.4"}]},
        });
        for (section, members) in more.as_object().unwrap() {
            for (member, value) in members.as_object().unwrap() {
                object[section][member] = value.clone();
            }
        }
        serde_json::from_value(object).unwrap()
    }

    const EXCLUDE: &str = names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS;

    /// NODE-088.
    #[test]
    fn node_088_members_of_load_balancers() {
        let rows = [
            ("plain", node(json!({}), json!({})), true),
            ("excluded", node(json!({EXCLUDE: "true"}), json!({})), false),
            ("excluded by a word", node(json!({EXCLUDE: "maybe"}), json!({})), false),
            ("excluded by nothing", node(json!({EXCLUDE: ""}), json!({})), false),
            ("false", node(json!({EXCLUDE: "false"}), json!({})), true),
            ("False", node(json!({EXCLUDE: "False"}), json!({})), true),
            ("0", node(json!({EXCLUDE: "0"}), json!({})), true),
            ("fALSE", node(json!({EXCLUDE: "fALSE"}), json!({})), false),
            (
                "autoscaler",
                node(
                    json!({}),
                    json!({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}}),
                ),
                false,
            ),
            (
                "deleting",
                node(json!({}), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
                false,
            ),
            (
                "not ready",
                node(json!({}), json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})),
                true,
            ),
        ];
        for (name, node, expected) in rows {
            assert_eq!(is_member(&node), expected, "{name}");
        }
    }

    /// NODE-087.
    #[test]
    fn node_087_changes_that_call_for_a_look_at_all_load_balancers() {
        let old = node(json!({}), json!({}));
        let rows = [
            (
                "readiness",
                node(json!({}), json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})),
                false,
            ),
            (
                "autoscaler",
                node(
                    json!({}),
                    json!({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}}),
                ),
                false,
            ),
            ("other label", node(json!({"zone": "1"}), json!({})), false),
            ("exclusion false", node(json!({EXCLUDE: "false"}), json!({})), false),
            ("exclusion", node(json!({EXCLUDE: "true"}), json!({})), true),
            ("provider id", node(json!({}), json!({"spec": {"providerID": "azure:///b"}})), true),
            ("unmanaged", node(json!({names::LABEL_MANAGED: "False"}), json!({})), true),
            ("resource group", node(json!({names::LABEL_RESOURCE_GROUP: "other"}), json!({})), true),
            (
                "address",
                node(
                    json!({}),
                    json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]}}),
                ),
                true,
            ),
            ("another machine of that name", node(json!({}), json!({"metadata": {"uid": "2"}})), true),
        ];
        for (name, new, expected) in rows {
            assert_eq!(membership_changed(&old, &new), expected, "{name}");
            assert_eq!(membership_changed(&new, &old), expected, "{name}, the other way");
        }
    }

    proptest::proptest! {
        /// Whatever the order of changes: the same nodes are the same set, and other nodes are another one.
        #[test]
        fn a_set_depends_on_its_nodes_and_not_on_the_way_to_it(
            ways in proptest::collection::vec((0..5_usize, 0..4_usize), 0..30),
        ) {
            let forms = [
                None,
                Some(node(json!({}), json!({}))),
                Some(node(json!({EXCLUDE: "true"}), json!({}))),
                Some(node(json!({}), json!({"spec": {"providerID": "azure:///b"}}))),
            ];
            let form = |name: usize, form: usize| {
                let mut node = forms[form].clone()?;
                node.metadata.name = Some(format!("n{name}"));
                Some(node)
            };
            let changes = NodeSetChanges::default();
            let mut now = [0; 5];
            let mut seen = std::collections::BTreeMap::new();
            for (name, to) in ways {
                changes.note(form(name, now[name]).as_ref(), form(name, to).as_ref());
                now[name] = to;
                // An excluded node equals a missing one.
                let members = now.map(|form| if form == 2 { 0 } else { form });
                let set = changes.latest().nodes;
                proptest::prop_assert_eq!(set.len(), members.iter().filter(|form| **form > 0).count());
                proptest::prop_assert_eq!(*seen.entry(members).or_insert(set), set);
            }
            let different: std::collections::BTreeSet<u64> = seen.values().map(|set| set.print).collect();
            proptest::prop_assert_eq!(different.len(), seen.len());
        }
    }
}
