//! Objects of Cluster API's core, as far as this program reads them. Both v1beta2 and v1beta1 are supported; they name
//! a few members differently.

use std::collections::BTreeMap;

use capz_planner::pool::Node;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, GroupVersionKind};
use serde::{Deserialize, Deserializer, Serialize};

use crate::kubernetes::kinds::{Object, object_kinds, owner_in};

/// The annotation that makes `clusterctl move` wait until an object is paused.
pub(crate) const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";

/// The group of the core's kinds.
pub const GROUP: &str = "cluster.x-k8s.io";
/// The label with the name of the Cluster that an object belongs to.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// The annotation that pauses one object.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// The annotation of objects whose infrastructure an external tool manages.
pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
/// The annotation of a Machine that is deleted before others.
pub const DELETE_FIRST: &str = "cluster.x-k8s.io/delete-machine";
/// The annotation of a Machine whose node is not drained.
const EXCLUDE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";

/// A Cluster.
pub type Cluster = Object<ClusterSpec>;
/// A Machine.
pub type Machine = Object<MachineSpec>;
/// A MachinePool.
pub type MachinePool = Object<MachinePoolSpec>;

object_kinds! {
    ClusterSpec, ClusterStatus, "Cluster", "Clusters";
    MachineSpec, MachineStatus, "Machine", "Machines";
    MachinePoolSpec, NoStatus, "MachinePool", "MachinePools";
}

/// Declares objects of which only these members are read; absent ones are empty.
macro_rules! slim_objects {
    ($($(#[$doc:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$member])* pub $field: $kind,)*
        }
    )*};
}

/// A member that may be null instead of absent.
fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

slim_objects! {
    /// The members of a Cluster's spec that are read.
    ClusterSpec {
        /// Whether everything that belongs to it is paused.
        paused: bool,
        /// Its network.
        cluster_network: ClusterNetwork,
        /// Its infrastructure.
        infrastructure_ref: Reference,
        /// Its control plane.
        #[serde(deserialize_with = "or_default")]
        control_plane_ref: Reference,
    }

    /// The network of a Cluster.
    ClusterNetwork {
        /// The port of the API server.
        api_server_port: Option<i32>,
        /// The addresses of Services.
        services: Ranges,
        /// The addresses of pods.
        pods: Ranges,
    }

    /// Ranges of addresses.
    Ranges {
        /// In CIDR notation.
        cidr_blocks: Vec<String>,
    }

    /// A reference to another object in the same namespace.
    Reference {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    }

    /// The members of a Cluster's status that are read.
    ClusterStatus {
        /// Its initialization, in v1beta2.
        initialization: Initialization,
        /// Whether the infrastructure is ready, in v1beta1.
        infrastructure_ready: bool,
    }

    /// The initialization of a Cluster.
    Initialization {
        /// Whether the infrastructure is provisioned.
        infrastructure_provisioned: Option<bool>,
    }
}

impl ClusterStatus {
    /// Whether the infrastructure is ready, in either version.
    pub fn has_infrastructure(&self) -> bool {
        self.infrastructure_ready || self.initialization.infrastructure_provisioned == Some(true)
    }
}

slim_objects! {
    /// The members of a Machine's spec that are read.
    MachineSpec {
        /// The Cluster.
        cluster_name: String,
        /// The source of its bootstrap data.
        bootstrap: Bootstrap,
        /// The version of Kubernetes.
        version: Option<String>,
        /// The failure domain.
        failure_domain: Option<String>,
        /// Its infrastructure.
        infrastructure_ref: Reference,
    }

    /// The source of bootstrap data.
    Bootstrap {
        /// The Secret that holds it.
        data_secret_name: Option<String>,
    }

    /// The members of a Machine's status that are read.
    MachineStatus {
        /// Its node, once known.
        node_ref: Option<Reference>,
        /// What the node reports about itself.
        node_info: NodeInfo,
        /// Its conditions.
        conditions: Vec<CoreCondition>,
        /// Its conditions of v1beta2, where v1beta1 is served.
        v1beta2: Conditions,
    }

    /// What a node reports about itself.
    NodeInfo {
        /// The version of its kubelet.
        kubelet_version: Option<String>,
    }

    /// Conditions.
    Conditions {
        /// Conditions.
        conditions: Vec<CoreCondition>,
    }

    /// A condition.
    CoreCondition {
        /// The type.
        #[serde(rename = "type")]
        condition: String,
        /// The status.
        status: String,
        /// The reason.
        reason: String,
    }
}

/// Reasons of a Machine that is being deleted once its node is drained.
const DRAINED: [&str; 4] =
    ["WaitingForInfrastructureDeletion", "WaitingForBootstrapDeletion", "DeletingNode", "DeletionCompleted"];

impl MachineStatus {
    fn conditions_of<'a>(&'a self, condition: &'a str) -> impl Iterator<Item = &'a CoreCondition> {
        self.v1beta2
            .conditions
            .iter()
            .chain(&self.conditions)
            .filter(move |known| known.condition == condition)
    }

    /// Its node.
    pub fn node(&self) -> Node<'_> {
        let ready = self.conditions_of("NodeReady").chain(self.conditions_of("NodeHealthy")).next();
        let lost = |known: &CoreCondition| matches!(known.reason.as_str(), "NodeDeleted" | "NodeNotFound");
        Node {
            name: self.node_ref.as_ref().map(|node| node.name.as_str()).filter(|name| !name.is_empty()),
            ready: ready.and_then(|known| match known.status.as_str() {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            }),
            lost: self.conditions_of("NodeReady").chain(self.conditions_of("NodeHealthy")).any(lost),
        }
    }
}

/// Whether a Machine that is being deleted waits only for its infrastructure: its node is drained, or need not be.
pub fn is_drained(machine: &Machine) -> bool {
    let Some(status) = &machine.status else { return true };
    let excluded =
        machine.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(EXCLUDE_DRAINING));
    match status.conditions_of("Deleting").next() {
        Some(deleting) => DRAINED.contains(&deleting.reason.as_str()),
        // Older versions report it in another condition.
        None => {
            excluded
                || status.node().name.is_none()
                || status.conditions_of("DrainingSucceeded").any(|drained| drained.status == "True")
        }
    }
}

slim_objects! {
    /// The members of a MachinePool's spec that are read.
    MachinePoolSpec {
        /// The Cluster.
        cluster_name: String,
        /// The desired number of machines.
        replicas: Option<u32>,
        /// The failure domains of the machines.
        failure_domains: Vec<String>,
        /// The template of the machines.
        template: MachineTemplate,
    }

    /// The template of a MachinePool's machines.
    MachineTemplate {
        /// The spec of one Machine.
        spec: MachineSpec,
    }
}

/// A status of which no member is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoStatus {}

/// The API resource of a core kind in one version.
pub fn resource(version: &str, kind: &str) -> ApiResource {
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, version, kind), &plural)
}

/// The name of the owner of this kind in Cluster API's core group.
pub fn owner<'a>(object: &'a ObjectMeta, kind: &str) -> Option<&'a str> {
    owner_in(GROUP, object, kind)
}

/// The name of the Cluster that an object belongs to.
pub fn cluster_name(object: &ObjectMeta) -> Option<&str> {
    let labelled = object.labels.as_ref().and_then(|labels| labels.get(CLUSTER_NAME));
    labelled.map(String::as_str).or_else(|| owner(object, "Cluster"))
}

/// Whether an external tool manages the infrastructure of an object: such infrastructure is never ours, whatever its
/// tags say.
pub fn is_managed_elsewhere(object: &ObjectMeta) -> bool {
    let says =
        |all: &Option<BTreeMap<String, String>>| all.as_ref().is_some_and(|all| all.contains_key(MANAGED_BY));
    says(&object.annotations) || says(&object.labels)
}

/// Whether an object, or the Cluster that it belongs to, is paused.
pub fn is_paused(cluster: &Cluster, annotations: Option<&BTreeMap<String, String>>) -> bool {
    cluster.spec.paused || annotations.is_some_and(|annotations| annotations.contains_key(PAUSED))
}
