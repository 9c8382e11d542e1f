//! The parts of Cluster API's core that clusters need: it notices ready infrastructure, creates Machines for a pool's
//! instances, and deletes objects in order.

use serde_json::{Value, json};

use super::management::{CORE, Management};
use super::member::{FINALIZER, LABEL};

const INSTANCE: &str = "AzureMachinePoolMachine";

/// Reconciles all objects of a namespace once.
pub(super) fn look(management: &Management, namespace: &str) {
    for cluster in management.list("Cluster", namespace) {
        follow_cluster(management, namespace, &cluster);
    }
    for object in management.list(INSTANCE, namespace) {
        let name = name_of(&object);
        if !is_ending(&object) && management.get("Machine", namespace, &name).is_none() {
            adopt(management, namespace, &object, &name);
        }
    }
    for machine in management.list("Machine", namespace) {
        follow_machine(management, namespace, &machine);
    }
    for pool in management.list("MachinePool", namespace) {
        let name = name_of(&pool);
        if is_ending(&pool) {
            let kind = &pool["spec"]["template"]["spec"]["infrastructureRef"]["kind"];
            end(management, namespace, "MachinePool", kind.as_str().unwrap_or_default(), &name);
        }
    }
}

fn follow_cluster(management: &Management, namespace: &str, cluster: &Value) {
    let name = name_of(cluster);
    let kind = |reference: &str| cluster["spec"][reference]["kind"].as_str().unwrap_or_default();
    if is_ending(cluster) {
        let mine = |it: &Value| it["spec"]["clusterName"] == name.as_str();
        let machines: Vec<Value> = management.list("Machine", namespace).into_iter().filter(mine).collect();
        let pools: Vec<Value> = management.list("MachinePool", namespace).into_iter().filter(mine).collect();
        for (kind, all) in [("MachinePool", &pools), ("Machine", &machines)] {
            for one in all.iter().filter(|one| !one["metadata"]["labels"]["of-pool"].is_string()) {
                management.delete(kind, namespace, &name_of(one));
            }
        }
        if !machines.is_empty() || !pools.is_empty() {
            return;
        }
        if management.get(kind("controlPlaneRef"), namespace, &name).is_some() {
            management.delete(kind("controlPlaneRef"), namespace, &name);
        } else {
            end(management, namespace, "Cluster", kind("infrastructureRef"), &name);
        }
        return;
    }
    let seen = cluster["status"]["initialization"]["infrastructureProvisioned"] == true;
    let infrastructure = management.get(kind("infrastructureRef"), namespace, &name);
    if !seen && infrastructure.is_some_and(|it| it["status"]["ready"] == true) {
        let status = json!({ "initialization": { "infrastructureProvisioned": true } });
        management.merge_status("Cluster", namespace, &name, &status);
    }
}

fn follow_machine(management: &Management, namespace: &str, machine: &Value) {
    let name = name_of(machine);
    let kind = machine["spec"]["infrastructureRef"]["kind"].as_str().unwrap_or_default();
    if is_ending(machine) {
        if kind == INSTANCE && management.get(INSTANCE, namespace, &name).is_some() {
            let said = json!([{ "type": "Deleting", "status": "True", "reason": "WaitingForInfrastructureDeletion" }]);
            if machine["status"]["conditions"] != said {
                management.merge_status("Machine", namespace, &name, &json!({ "conditions": said }));
            }
        }
        end(management, namespace, "Machine", kind, &name);
        return;
    }
    let infrastructure = management.get(kind, namespace, &name);
    let is_ready = infrastructure.as_ref().is_some_and(|it| it["status"]["ready"] == true);
    if machine["status"]["nodeRef"].is_null() && is_ready {
        let status = json!({ "nodeRef": { "name": name },
            "conditions": [{ "type": "NodeReady", "status": "True", "reason": "NodeReady" }] });
        management.merge_status("Machine", namespace, &name, &status);
    }
    // The object of a deleted machine deletes its Machine.
    if kind == INSTANCE && infrastructure.is_none() && !machine["status"]["nodeRef"].is_null() {
        management.delete("Machine", namespace, &name);
    }
}

/// Deletes the infrastructure of an object, and removes the object's finalizer once the infrastructure is deleted.
fn end(management: &Management, namespace: &str, kind: &str, infrastructure: &str, name: &str) {
    if management.get(infrastructure, namespace, name).is_some() {
        management.delete(infrastructure, namespace, name);
    } else {
        management.merge(kind, namespace, name, &json!({ "metadata": { "finalizers": null } }));
    }
}

/// Creates a Machine that owns an instance's object.
fn adopt(management: &Management, namespace: &str, object: &Value, name: &str) {
    let cluster = object["metadata"]["labels"][LABEL].clone();
    let machine = management.create(json!({
        "apiVersion": CORE, "kind": "Machine",
        "metadata": { "name": name, "namespace": namespace, "finalizers": [FINALIZER],
            "labels": { LABEL: cluster, "of-pool": "yes" } },
        "spec": { "clusterName": cluster, "bootstrap": { "dataSecretName": "" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": INSTANCE, "name": name } },
    }));
    let mut owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    owners.push(json!({ "apiVersion": CORE, "kind": "Machine", "name": name, "controller": true,
        "uid": machine["metadata"]["uid"] }));
    management.merge(INSTANCE, namespace, name, &json!({ "metadata": { "ownerReferences": owners } }));
}

pub(super) fn is_ending(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
