//! Nodes: the members that decide about pools, addresses and taints.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Time};
use crate::names;
use crate::term::Term;
use crate::text::parse_bool;

/// A Node, with the members that are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Name, UID, labels, annotations, creation.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// Provider id, taints and the ranges of pods.
    pub spec: NodeSpec,
    /// Addresses and conditions.
    pub status: NodeStatus,
    /// The annotation of this name, if it was removed from the metadata ([`Node::slim`]).
    #[serde(skip)]
    provided_node_ip: Option<Box<str>>,
}

/// Provider id, taints and the ranges of pods of a Node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSpec {
    /// `azure://` and the machine's resource id; empty until initialised.
    #[serde(rename = "providerID", skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    /// The taints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// The ranges of the node's pods, one of each family.
    #[serde(rename = "podCIDRs", skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<String>,
    /// The first of them, as clients older than dual-stack write it.
    #[serde(rename = "podCIDR", skip_serializing_if = "String::is_empty")]
    pub pod_cidr: String,
}

/// A taint of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    /// The taint's key.
    pub key: String,
    /// The taint's value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: Term,
    /// When a `NoExecute` taint was added; kept so that patches do not lose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// Addresses and conditions of a Node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// The node's addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// The node's conditions that are used, such as `Ready`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "slim_conditions")]
    pub conditions: Vec<NodeCondition>,
    /// The system UUID in the firmware of the node's machine; absent if the kubelet does not find it.
    #[serde(rename = "nodeInfo", skip_serializing, deserialize_with = "system_uuid")]
    pub system_uuid: Option<Uuid>,
}

fn system_uuid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Info {
        #[serde(rename = "systemUUID")]
        system_uuid: String,
    }
    Ok(Info::deserialize(deserializer)?.system_uuid.parse().ok())
}

/// One address of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `InternalIP`, `ExternalIP`, `Hostname`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub kind: Term,
    /// The address or name.
    pub address: String,
}

/// One condition of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    /// The condition's name.
    #[serde(rename = "type")]
    pub kind: Term,
    /// `True`, `False` or `Unknown`.
    pub status: Term,
    /// The reason, in one word; only of [`names::CONDITION_NETWORK_UNAVAILABLE`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The conditions that are used.
const USED_CONDITIONS: [&str; 3] =
    [names::CONDITION_READY, names::CONDITION_NETWORK_UNAVAILABLE, names::CONDITION_VM_EVENT_SCHEDULED];

/// Deserializes the conditions that are used, and their reasons: each of five thousand nodes has five or more.
fn slim_conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeCondition>, D::Error> {
    let mut conditions = Vec::<NodeCondition>::deserialize(deserializer)?;
    conditions.retain(|condition| USED_CONDITIONS.contains(&condition.kind.as_str()));
    for condition in conditions.iter_mut().filter(|c| c.kind != names::CONDITION_NETWORK_UNAVAILABLE) {
        condition.reason = String::new();
    }
    conditions.shrink_to_fit();
    Ok(conditions)
}

/// The labels that are used, or that are written if they are missing, whatever their values.
const USED_LABELS: [&str; 7] = [
    names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS,
    names::LABEL_MANAGED,
    names::LABEL_RESOURCE_GROUP,
    names::LABEL_CONTROL_PLANE,
    names::LABEL_MASTER,
    names::LABEL_SUB_FAULT_DOMAIN,
    names::LABEL_INTERCONNECT_GROUP,
];

/// The labels that are used. `is_described` is whether the node has been initialised, so that its labels are not
/// written again.
fn used_labels(labels: BTreeMap<String, String>, is_described: bool) -> BTreeMap<String, String> {
    let pair_of = |key: &str| names::LABEL_PAIRS.iter().find(|(old, new)| [*old, *new].contains(&key));
    let is_whole =
        |(old, new): &(&str, &str)| labels.contains_key(*old) && labels.get(*old) == labels.get(*new);
    let is_used = |key: &str, value: &str| {
        USED_LABELS.contains(&key)
            || (key == names::LABEL_ROLE && value == names::ROLE_MASTER)
            || pair_of(key).is_some_and(|pair| !(is_described && is_whole(pair)))
    };
    let used: Vec<String> =
        labels.iter().filter(|(key, value)| is_used(key, value)).map(|(key, _)| key.clone()).collect();
    labels.into_iter().filter(|(key, _)| used.contains(key)).collect()
}

impl Node {
    /// The node's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// The ranges of the node's pods as texts, one of each family; empty until they are assigned.
    pub fn pod_ranges(&self) -> Vec<&str> {
        if self.spec.pod_cidrs.is_empty() {
            return Some(self.spec.pod_cidr.as_str()).into_iter().filter(|range| !range.is_empty()).collect();
        }
        self.spec.pod_cidrs.iter().map(String::as_str).collect()
    }

    /// A condition.
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether the node has a taint with this key, whatever its effect.
    pub fn has_taint(&self, key: &str) -> bool {
        self.spec.taints.iter().any(|taint| taint.key == key)
    }

    /// Whether the node is being drained or has lost its machine, according to its taints: it gets no new connections.
    /// A node that is merely cordoned still does.
    pub fn is_draining(&self) -> bool {
        self.spec.taints.iter().any(|taint| match taint.key.as_str() {
            names::TAINT_OUT_OF_SERVICE | names::TAINT_SHUTDOWN => true,
            names::TAINT_DRAINING => {
                [names::DRAINING_SPOT_EVICTION, names::DRAINING_TERMINATION].contains(&taint.value.as_str())
            }
            _ => false,
        })
    }

    /// Whether the kubelet reports the node as ready; a missing condition means no.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|c| c.kind == names::CONDITION_READY && c.status == "True")
    }

    /// Whether the kubelet has been silent for so long that Kubernetes does not know whether the node is ready.
    pub fn is_silent(&self) -> bool {
        self.status.conditions.iter().any(|c| c.kind == names::CONDITION_READY && c.status == "Unknown")
    }

    /// Whether the node belongs to the control plane, by any of the three labels.
    pub fn is_control_plane(&self) -> bool {
        self.label(names::LABEL_CONTROL_PLANE).is_some()
            || self.label(names::LABEL_MASTER).is_some()
            || self.label(names::LABEL_ROLE) == Some(names::ROLE_MASTER)
    }

    /// Whether the label keeps the node out of load balancers: it exists, and its value is not a form of `false`.
    pub fn is_excluded_from_load_balancers(&self) -> bool {
        self.label(names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS)
            .is_some_and(|value| parse_bool(value) != Some(false))
    }

    /// The node's addresses in the cluster's network, in its own order. Invalid addresses are left out.
    pub fn internal_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let internal = self.status.addresses.iter().filter(|address| address.kind == "InternalIP");
        internal.filter_map(|address| address.address.parse().ok())
    }

    /// The node as one that is being deleted, with only the members that identify its machine. The deletion time is not
    /// used.
    #[must_use]
    pub fn departed(&self) -> Self {
        let metadata = ObjectMeta {
            name: self.metadata.name.clone(),
            deletion_timestamp: Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        let spec = NodeSpec { provider_id: self.spec.provider_id.clone(), ..NodeSpec::default() };
        Self { metadata, spec, ..Self::default() }
    }

    /// The addresses that the kubelet puts first (`--node-ip`), as a text; absent if it names none.
    pub fn provided_node_ip(&self) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|all| all.get(names::ANNOTATION_PROVIDED_NODE_IP));
        annotation.map(String::as_str).or(self.provided_node_ip.as_deref())
    }

    /// Removes the unused parts of a cached node: there are five thousand, and their labels and annotations are most of
    /// them. With `keeps_labels`, all labels stay, because a selector may use any.
    ///
    /// Of the labels for zone, region and size, those of an initialised node are removed that the synchronization of
    /// older and newer forms does not need: both forms exist, and are equal.
    #[must_use]
    pub fn slim(self, keeps_labels: bool) -> Self {
        let provided_node_ip = self.provided_node_ip().map(Box::from);
        let is_described = !self.has_taint(names::TAINT_UNINITIALIZED);
        let Self { metadata, mut spec, mut status, .. } = self;
        let labels = match keeps_labels {
            true => metadata.labels,
            false => metadata.labels.map(|labels| used_labels(labels, is_described)),
        };
        let metadata = ObjectMeta {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: labels.filter(|labels| !labels.is_empty()),
            ..ObjectMeta::default()
        };
        spec.taints.shrink_to_fit();
        spec.pod_cidrs.shrink_to_fit();
        status.addresses.shrink_to_fit();
        Self { metadata, spec, status, provided_node_ip }
    }

    /// Whether Azure manages the node: it is not labelled `kubernetes.azure.com/managed=false`.
    pub fn is_managed(&self) -> bool {
        !self.label(names::LABEL_MANAGED).is_some_and(|value| value.eq_ignore_ascii_case("false"))
    }
}

kind!(Node, "v1", "", "nodes", ClusterResourceScope);

#[cfg(test)]
mod tests {
    use super::*;

    /// NODE-260
    #[test]
    fn node_260_a_node_that_is_kept_answers_as_the_whole_one() {
        let pairs = |older: bool| {
            let labels = names::LABEL_PAIRS.iter().flat_map(|(old, new)| [*new, *old]);
            labels.step_by(if older { 1 } else { 2 })
        };
        let used = [
            (names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "false"),
            (names::LABEL_MANAGED, "False"),
            (names::LABEL_RESOURCE_GROUP, "other"),
            (names::LABEL_ROLE, "master"),
            (names::LABEL_SUB_FAULT_DOMAIN, "2"),
        ];
        let node = |labels: Vec<(&str, &str)>, taint: &str| -> Node {
            serde_json::from_value(serde_json::json!({
                "metadata": {
                    "name": "n1", "uid": "1", "resourceVersion": "7", "labels": labels.into_iter().collect::<BTreeMap<_, _>>(),
                    "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
                    "annotations": {names::ANNOTATION_PROVIDED_NODE_IP: "10.0.0.4", "long": "text"},
                    "ownerReferences": [], "finalizers": ["x"], "generateName": "n",
                },
                "spec": {"providerID": "azure:///a", "taints": [{"key": taint, "effect": "NoSchedule"}], "podCIDR": "10.1.0.0/24"},
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.4"}],
                    "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
                },
            }))
            .unwrap()
        };
        let values =
            |names: &mut dyn Iterator<Item = &'static str>| names.map(|name| (name, "v")).collect::<Vec<_>>();
        let with = |more: Vec<(&'static str, &'static str)>| {
            used.into_iter().chain([("mine", "x")]).chain(more).collect()
        };
        let (new, both) = (values(&mut pairs(false)), values(&mut pairs(true)));
        for (labels, taint, left) in [
            // Missing forms will be filled in.
            (with(new.clone()), "mine", with(new)),
            (with(both.clone()), "mine", with(Vec::new())),
            // Labels that exist when the node is described stay.
            (with(both.clone()), names::TAINT_UNINITIALIZED, with(both)),
        ] {
            let whole = node(labels, taint);
            let slim = whole.clone().slim(false);
            let left: BTreeMap<_, _> = left
                .into_iter()
                .filter(|(key, _)| *key != "mine")
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect();
            assert_eq!(slim.metadata.labels, Some(left));
            assert_eq!((&slim.spec, &slim.status), (&whole.spec, &whole.status));
            assert_eq!(slim.provided_node_ip(), Some("10.0.0.4"));
            assert_eq!(slim.clone().slim(false), slim);
            let answers = |node: &Node| {
                let metadata = node.metadata.clone();
                let said =
                    (node.is_managed(), node.is_control_plane(), node.is_excluded_from_load_balancers());
                let about = (metadata.name, metadata.uid, metadata.resource_version);
                (said, about, metadata.creation_timestamp, metadata.deletion_timestamp)
            };
            assert_eq!(answers(&slim), answers(&whole));
            assert_eq!(whole.clone().slim(true).metadata.labels, whole.metadata.labels);
            assert_eq!(slim.metadata.annotations, None);
        }
        let worker = node(vec![(names::LABEL_ROLE, "agent"), ("a", "b")], "mine").slim(false);
        assert_eq!(worker.metadata.labels, None);
    }

    /// Every label that is used must be kept: the argument of [`Node::label`] is in this list, or in a pair.
    #[test]
    fn node_260_every_label_of_nodes_that_has_a_name_is_used() {
        let text = include_str!("names.rs");
        let names =
            text.lines().filter_map(|line| line.trim().strip_prefix("pub const LABEL_")?.split(':').next());
        let of_nodes = names.filter(|name| !["SERVICE_NAME", "PAIRS", "ROLE"].contains(name));
        let of_pairs = ["ZONE", "REGION", "INSTANCE_TYPE", "ZONE_BETA", "REGION_BETA", "INSTANCE_TYPE_BETA"];
        assert_eq!(of_nodes.filter(|name| !of_pairs.contains(name)).count(), USED_LABELS.len());
    }

    /// LB-350, NODE-222
    #[test]
    fn node_222_nodes_that_lose_their_machine_drain() {
        for (key, value, drains) in [
            (names::TAINT_DRAINING, names::DRAINING_SPOT_EVICTION, true),
            (names::TAINT_DRAINING, names::DRAINING_TERMINATION, true),
            (names::TAINT_DRAINING, "for-fun", false),
            (names::TAINT_SHUTDOWN, "", true),
            (names::TAINT_OUT_OF_SERVICE, "", true),
            ("node.kubernetes.io/unschedulable", "", false),
        ] {
            let taint = Taint { key: key.into(), value: value.into(), ..Taint::default() };
            let node =
                Node { spec: NodeSpec { taints: vec![taint], ..NodeSpec::default() }, ..Node::default() };
            assert_eq!(node.is_draining(), drains, "{key}={value}");
        }
    }
}
