//! The contents of Kubernetes once a cluster is at rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::api::ListParams;
use kubernetes_simulator::{Kubernetes, Object};
use serde_json::{Value, json};

use super::operator;
use crate::e2e::capz::objects::api;

const CORE: &str = "cluster.x-k8s.io/v1beta2";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The recorded kinds, owners first.
const KINDS: [&str; 16] = [
    "AzureClusterIdentity",
    "AzureClusterTemplate",
    "Cluster",
    "AzureCluster",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureMachineTemplate",
    "Machine",
    "MachinePool",
    "AzureMachine",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
    "AzureManagedMachinePool",
    "AzureASOManagedMachinePool",
];
/// The kinds among them with a ready status of the provider.
const READY: [&str; 10] = [
    "AzureCluster",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureMachine",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
    "AzureManagedMachinePool",
    "AzureASOManagedMachinePool",
];
/// The kinds for clusters that Azure manages begin so.
const MANAGED: [&str; 2] = ["AzureManaged", "AzureASOManaged"];
/// The status of Cluster API's own objects that providers read; for Machines, their conditions, too.
const OF_CORE: [&str; 2] = ["initialization", "nodeRef"];
/// The time that replaces all times.
const TIME: &str = "2026-08-20T10:00:00Z";
/// The placeholder for bootstrap data, in Base64.
const DATA: &str = "I2Nsb3VkLWNvbmZpZw==";

/// The objects of a management cluster, by their kinds.
pub struct Objects(BTreeMap<&'static str, Vec<Value>>);

impl Objects {
    /// Reads the objects.
    ///
    /// # Errors
    /// The server's error.
    pub async fn read(client: &Client) -> anyhow::Result<Self> {
        let mut objects = BTreeMap::new();
        for kind in KINDS {
            let version = if kind.starts_with("Azure") { INFRASTRUCTURE } else { CORE };
            let listed = api(client, version, kind, None).list(&ListParams::default()).await?;
            let listed: Result<Vec<Value>, _> = listed.items.iter().map(serde_json::to_value).collect();
            objects.insert(kind, listed?);
        }
        Ok(Self(objects))
    }

    /// The objects of a kind.
    pub fn of(&self, kind: &str) -> &[Value] {
        self.0.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The state that changes while there is any activity.
    pub fn state(&self) -> Value {
        let all = self.0.iter().flat_map(|(kind, objects)| objects.iter().map(move |object| (kind, object)));
        all.map(|(kind, object)| {
            let metadata = &object["metadata"];
            json!([kind, metadata["name"], metadata["uid"], metadata["resourceVersion"]])
        })
        .collect()
    }

    /// The objects that are not ready yet, one line each.
    pub fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for kind in ["MachinePool", "Machine"] {
            for object in self.of(kind) {
                let phase = &object["status"]["phase"];
                // The stand-in for Cluster API sees only the nodes of machines that it has bootstrapped.
                if phase != "Running" && !is_managed(infrastructure_of(object)) {
                    waiting.push(format!("{kind} {}: phase {phase}", object["metadata"]["name"]));
                }
            }
        }
        for kind in READY {
            for object in self.of(kind) {
                let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let wrong: Vec<&Value> = conditions.iter().filter(|one| one["status"] != "True").collect();
                let operations = &object["status"]["longRunningOperationStates"];
                if object["status"]["ready"] != true || !wrong.is_empty() || !operations.is_null() {
                    let name = &object["metadata"]["name"];
                    waiting.push(format!("{kind} {name}: {} {operations}", json!(wrong)));
                }
            }
        }
        let is_there = |kind: &str| !self.of(kind).is_empty();
        let has_network = ["AzureCluster", "AzureManagedCluster", "AzureASOManagedCluster"];
        let has_machines = ["Machine", "AzureManagedMachinePool", "AzureASOManagedMachinePool"];
        if !has_network.into_iter().any(is_there) || !has_machines.into_iter().any(is_there) {
            waiting.push("there is no cluster".to_owned());
        }
        waiting
    }
}

fn is_managed(kind: &str) -> bool {
    MANAGED.iter().any(|begin| kind.starts_with(begin))
}

/// The kind of a MachinePool's infrastructure.
fn infrastructure_of(pool: &Value) -> &str {
    pool["spec"]["template"]["spec"]["infrastructureRef"]["kind"].as_str().unwrap_or_default()
}

/// One line for each object, with the Secrets of bootstrap data before the objects that refer to them, and with the
/// operator's objects, as they are stored, after their owners.
pub fn lines(kubernetes: &Kubernetes) -> Vec<Value> {
    let mut lines = Vec::new();
    for kind in KINDS.into_iter().chain(operator::kinds()) {
        if kind == "Machine" {
            lines.extend(secrets(kubernetes));
        }
        let mut objects: Vec<Arc<Object>> = kubernetes.list(kind);
        objects.sort_by_key(|object| object.name().to_owned());
        lines.extend(objects.iter().map(|object| json!({ "object": kept(object.value()) })));
    }
    lines
}

fn secrets(kubernetes: &Kubernetes) -> Vec<Value> {
    let mut names = Vec::new();
    for machine in kubernetes.list("Machine") {
        names.push(machine["spec"]["bootstrap"]["dataSecretName"].clone());
    }
    for pool in kubernetes.list("MachinePool") {
        names.push(pool["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"].clone());
    }
    let named = names.iter().filter_map(Value::as_str).filter(|name| !name.is_empty());
    let found = named.filter_map(|name| kubernetes.get("Secret", "default", name));
    found
        .map(|secret| {
            json!({ "object": {
                "apiVersion": "v1", "kind": "Secret", "type": secret["type"], "data": { "value": DATA },
                "metadata": { "name": secret["metadata"]["name"], "namespace": "default",
                    "labels": secret["metadata"]["labels"] } } })
        })
        .collect()
}

/// An object without the server's members, and without unused ones.
fn kept(object: &Value) -> Value {
    let of_core =
        object["apiVersion"].as_str().is_some_and(|version| version.starts_with("cluster.x-k8s.io/"));
    let mut kept =
        json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "spec": object["spec"] });
    let metadata = &object["metadata"];
    for member in ["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"] {
        // The core is absent when a cluster is taken over: its own objects have neither finalizers nor owners.
        let is_cores = of_core && !["name", "namespace", "labels"].contains(&member);
        if !metadata[member].is_null() && !is_cores {
            kept["metadata"][member] = metadata[member].clone();
        }
    }
    let owners = kept.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        owner.as_object_mut().map(|owner| owner.remove("uid"));
    }
    if let Some(status) = object["status"].as_object() {
        let mut status = status.clone();
        status.retain(|member, _| {
            let is_said = member == "conditions" && kept["kind"] == "Machine";
            !of_core || is_said || OF_CORE.contains(&member.as_str())
        });
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            condition["lastTransitionTime"] = TIME.into();
            if let Some(condition) = condition.as_object_mut().filter(|_| of_core) {
                condition.retain(|member, _| ["type", "status", "reason"].contains(&member.as_str()));
            }
        }
        kept["status"] = status.into();
    }
    kept
}
