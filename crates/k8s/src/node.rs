//! Nodes: the members that decide about pools, addresses and taints.

use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::meta::{self, ObjectMeta, Time};
use crate::{names, parse_bool};

/// A Node, as far as the cloud cares.
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
    /// The ranges of the node's pods, one a family.
    #[serde(rename = "podCIDRs", skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<String>,
    /// The first of them, as clients before two families write it.
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
    pub effect: String,
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
    /// The node's conditions, such as `Ready`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "slim_conditions")]
    pub conditions: Vec<NodeCondition>,
}

/// One address of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `InternalIP`, `ExternalIP`, `Hostname`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address or name.
    pub address: String,
}

/// One condition of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    /// The condition's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word; of [`names::CONDITION_NETWORK_UNAVAILABLE`] alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Reads conditions without the reasons that nobody asks for: five conditions of each of five thousand nodes have one.
fn slim_conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NodeCondition>, D::Error> {
    let mut conditions = Vec::<NodeCondition>::deserialize(deserializer)?;
    for condition in conditions.iter_mut().filter(|c| c.kind != names::CONDITION_NETWORK_UNAVAILABLE) {
        condition.reason = String::new();
    }
    Ok(conditions)
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

    /// The ranges of the node's pods as they stand there, one a family; none until somebody gave them.
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

    /// Whether a taint with this key is there, whatever its effect.
    pub fn has_taint(&self, key: &str) -> bool {
        self.spec.taints.iter().any(|taint| taint.key == key)
    }

    /// Whether the node is being emptied or has lost its machine, by a taint that says so: new connections are for
    /// others. A node that is merely cordoned still takes them.
    pub fn is_draining(&self) -> bool {
        self.spec.taints.iter().any(|taint| match taint.key.as_str() {
            names::TAINT_OUT_OF_SERVICE | names::TAINT_SHUTDOWN => true,
            names::TAINT_DRAINING => {
                [names::DRAINING_SPOT_EVICTION, names::DRAINING_TERMINATION].contains(&taint.value.as_str())
            }
            _ => false,
        })
    }

    /// Whether the kubelet says that the node is ready; a missing condition means no.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|c| c.kind == "Ready" && c.status == "True")
    }

    /// Whether the node belongs to the control plane, by any of the three labels that say so.
    pub fn is_control_plane(&self) -> bool {
        self.label(names::LABEL_CONTROL_PLANE).is_some()
            || self.label(names::LABEL_MASTER).is_some()
            || self.label(names::LABEL_ROLE) == Some("master")
    }

    /// Whether the label keeps the node out of load balancers: it is there, and its value is no form of `false`.
    pub fn is_excluded_from_load_balancers(&self) -> bool {
        self.label(names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS)
            .is_some_and(|value| parse_bool(value) != Some(false))
    }

    /// The node's addresses within the cluster's network, in its own order. What is no address is left out.
    pub fn internal_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let internal = self.status.addresses.iter().filter(|address| address.kind == "InternalIP");
        internal.filter_map(|address| address.address.parse().ok())
    }

    /// The node as one that is being deleted, with nothing but what names its machine. Nobody asks since when.
    #[must_use]
    pub fn departed(&self) -> Self {
        let metadata = ObjectMeta {
            name: self.metadata.name.clone(),
            deletion_timestamp: Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        let spec = NodeSpec { provider_id: self.spec.provider_id.clone(), ..NodeSpec::default() };
        Self { metadata, spec, status: NodeStatus::default() }
    }

    /// Whether Azure manages the node: not labelled `kubernetes.azure.com/managed=false`.
    pub fn is_managed(&self) -> bool {
        !self.label(names::LABEL_MANAGED).is_some_and(|value| value.eq_ignore_ascii_case("false"))
    }
}

impl k8s_openapi::Resource for Node {
    const API_VERSION: &'static str = "v1";
    const GROUP: &'static str = "";
    const KIND: &'static str = "Node";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "nodes";
    type Scope = k8s_openapi::ClusterResourceScope;
}

impl k8s_openapi::Metadata for Node {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
