//! Clusters that Azure manages, from objects as they are after admission to a cluster in Azure, and back.

mod access;
mod change;
mod drift;
mod flow;
mod joined;
mod kill;
mod moved;
mod neighbours;
mod pace;
mod recorded;
mod scale;

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

const CONTROL_PLANE: &str = "AzureManagedControlPlane";
const INFRASTRUCTURE: &str = "AzureManagedCluster";
const POOL: &str = "AzureManagedMachinePool";
const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";
const GROUP: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const VERSION: &str = "v1.33.2";
/// Longer than the interval between two looks at an object at rest.
const LONG: Duration = Duration::from_secs(1300);

fn extended(mut object: Value, more: &Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// An object in this namespace that the core has given an owner.
fn owned(namespace: &str, kind: &str, name: &str, cluster: &str, owner: &Value, spec: Value) -> Value {
    json!({
        "apiVersion": GROUP, "kind": kind,
        "metadata": {
            "name": name, "namespace": namespace, "labels": { "cluster.x-k8s.io/cluster-name": cluster },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"] }],
        },
        "spec": spec,
    })
}

/// A managed cluster as it is after admission and the core's first reconcile, without pools.
pub fn cluster(world: &World, name: &str, spec: Value) {
    cluster_in(world, NAMESPACE, name, spec);
}

/// The same in this namespace, which is created unless it exists.
pub fn cluster_in(world: &World, namespace: &str, name: &str, spec: Value) {
    if namespace != NAMESPACE && world.kubernetes.get("Namespace", "", namespace).is_none() {
        world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
    }
    let reference =
        |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "clusterNetwork": { "services": { "cidrBlocks": ["192.168.0.0/16"] } },
            "controlPlaneRef": reference(CONTROL_PLANE), "infrastructureRef": reference(INFRASTRUCTURE),
        },
    }));
    let usual = json!({
        "location": "eastus", "resourceGroupName": name, "version": VERSION,
        "identityRef": { "kind": "AzureClusterIdentity", "name": "identity", "namespace": NAMESPACE },
    });
    let whole = extended(usual, &spec);
    world.admit(CONTROL_PLANE, owned(namespace, CONTROL_PLANE, name, name, cluster.value(), whole));
    let object = owned(namespace, INFRASTRUCTURE, name, name, cluster.value(), json!({}));
    world.admit(INFRASTRUCTURE, object);
}

/// A node pool with its MachinePool of two replicas.
pub fn pool(world: &World, cluster: &str, name: &str, spec: Value) {
    pool_in(world, NAMESPACE, cluster, name, spec);
}

/// The same in this namespace.
pub fn pool_in(world: &World, namespace: &str, cluster: &str, name: &str, spec: Value) {
    let owner = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": { "name": name, "namespace": namespace, "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
        "spec": { "clusterName": cluster, "replicas": 2, "template": { "spec": {
            "clusterName": cluster, "version": VERSION, "bootstrap": { "dataSecretName": "" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": POOL, "name": name } } } },
    }));
    let whole = extended(json!({ "sku": "Standard_D2s_v3", "mode": "User" }), &spec);
    world.admit(POOL, owned(namespace, POOL, name, cluster, owner.value(), whole));
}

/// A cluster `aks` with a System pool `pool0` and a User pool `pool1`.
fn ask(world: &World, spec: Value) {
    cluster(world, "aks", spec);
    pool(world, "aks", "pool1", json!({}));
    pool(world, "aks", "pool0", json!({ "mode": "System" }));
}

/// The same in a world, ready.
pub async fn running() -> World {
    running_with(json!({})).await
}

async fn running_with(spec: Value) -> World {
    let mut world = World::new();
    ask(&world, spec);
    world.start();
    ready(&world, "aks").await;
    world
}

async fn ready(world: &World, cluster: &str) -> Duration {
    world.until("the cluster and its pools", |world| is_up(world, NAMESPACE, cluster)).await
}

/// Whether a cluster and its pools are ready.
fn is_up(world: &World, namespace: &str, cluster: &str) -> bool {
    let control_plane = world.kubernetes.get(CONTROL_PLANE, namespace, cluster);
    control_plane.is_some_and(|it| it["status"]["ready"] == true)
        && pools_of(world, namespace, cluster).iter().all(|pool| pool["status"]["ready"] == true)
}

/// The pools of a cluster.
fn pools_of(world: &World, namespace: &str, cluster: &str) -> Vec<Value> {
    let all = world.kubernetes.list(POOL);
    let all = all.iter().map(|pool| pool.value().clone());
    all.filter(|pool| {
        pool["metadata"]["namespace"] == namespace
            && pool["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == cluster
    })
    .collect()
}

/// Begins the deletion of a Cluster.
fn begin_end(world: &World, namespace: &str, cluster: &str) {
    let held = json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } });
    world.kubernetes.merge("Cluster", namespace, cluster, &held).unwrap();
    world.kubernetes.delete("Cluster", namespace, cluster).unwrap();
}

/// Plays the core: deletes the pools of a Cluster that is being deleted, then its control plane and infrastructure.
/// Returns whether they are gone.
fn is_down(world: &World, namespace: &str, cluster: &str) -> bool {
    let delete = |kind: &str, object: &Value| {
        if object["metadata"]["deletionTimestamp"].is_null() {
            let name = object["metadata"]["name"].as_str().unwrap();
            world.kubernetes.delete(kind, namespace, name).unwrap();
        }
    };
    let pools = pools_of(world, namespace, cluster);
    pools.iter().for_each(|pool| delete(POOL, pool));
    if !pools.is_empty() {
        return false;
    }
    let Some(control_plane) = world.kubernetes.get(CONTROL_PLANE, namespace, cluster) else {
        if let Some(infrastructure) = world.kubernetes.get(INFRASTRUCTURE, namespace, cluster) {
            delete(INFRASTRUCTURE, infrastructure.value());
        }
        return true;
    };
    delete(CONTROL_PLANE, control_plane.value());
    false
}

/// Deletes a Cluster, and waits until nothing of it is left.
pub async fn end(world: &World, namespace: &str, cluster: &str) {
    begin_end(world, namespace, cluster);
    world.until("the end", |world| is_down(world, namespace, cluster)).await;
}

/// The managed cluster in Azure.
fn aks(world: &World, name: &str) -> ResourceId {
    world.group(name).resource("Microsoft.ContainerService", "managedClusters", name)
}

/// The properties of a node pool in Azure.
fn in_azure(world: &World, cluster: &str, pool: &str) -> Value {
    let document = world.azure.document(&aks(world, cluster).child("agentPools", pool));
    document.map(|document| document["properties"].clone()).unwrap_or_default()
}

/// Changes the specification of an object.
fn change(world: &World, kind: &str, name: &str, spec: Value) {
    world.merge(kind, name, json!({ "spec": spec }));
}

/// Brings a MachinePool to another version of Kubernetes.
fn upgrade_pool(world: &World, name: &str, version: &str) {
    change(world, "MachinePool", name, json!({ "template": { "spec": { "version": version } } }));
}

/// The message of a condition.
fn message(world: &World, kind: &str, namespace: &str, name: &str, condition: &str) -> String {
    let object = world.kubernetes.get(kind, namespace, name).map(|it| it.value().clone()).unwrap_or_default();
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|it| it["type"] == condition);
    found.map(|it| format!("{} {}", it["status"].as_str().unwrap(), it["message"])).unwrap_or_default()
}

/// What a control plane says of its cluster.
pub fn says(world: &World, namespace: &str, name: &str) -> String {
    message(world, CONTROL_PLANE, namespace, name, "ManagedClusterRunning")
}

/// The lower-case IDs of all resources in Azure.
fn ids(world: &World) -> Vec<String> {
    crate::cluster_change::ids(&world.azure.documents())
}
