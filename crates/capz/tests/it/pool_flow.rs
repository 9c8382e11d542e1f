//! Machine pools, from a user's manifests to ready nodes and back: scaled, upgraded, deleted. Cluster API's core is a
//! stand-in, which creates a Machine for each instance, finds its node, and drains it.

use std::collections::BTreeSet;
use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};
use simulated_cluster::WorkloadClusters;

use crate::play::{apply, change, objects, ready_nodes, stage};
use crate::pool_world::INSTANCES;
use crate::world::World;

pub const POOL: &str = "AzureMachinePool";
pub const INSTANCE: &str = "AzureMachinePoolMachine";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// A pool as a user applies it.
pub fn pool(replicas: u64, spec: Value) -> Vec<Value> {
    let registration = json!({ "nodeRegistration": { "name": "{{ ds.meta_data[\"local_hostname\"] }}" } });
    let mut infrastructure = json!({ "location": "eastus",
        "template": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 64 } } });
    infrastructure.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    vec![
        json!({ "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig",
            "metadata": { "name": "my-pool" }, "spec": { "joinConfiguration": registration } }),
        json!({ "apiVersion": INFRASTRUCTURE, "kind": POOL, "metadata": { "name": "my-pool" }, "spec": infrastructure }),
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool", "metadata": { "name": "my-pool" },
            "spec": { "clusterName": "my-cluster", "replicas": replicas,
                "template": { "spec": { "clusterName": "my-cluster", "version": "v1.33.2",
                    "bootstrap": { "configRef": { "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                        "kind": "KubeadmConfig", "name": "my-pool" } },
                    "infrastructureRef": { "apiVersion": INFRASTRUCTURE, "kind": POOL, "name": "my-pool" } } } } }),
    ]
}

/// A cluster of one control plane with this pool, all of whose nodes are ready.
pub async fn running(replicas: u64, spec: Value) -> (World, WorkloadClusters) {
    running_with(LatencyProfile::instant(), replicas, spec).await
}

/// The same with latency in Azure.
pub async fn running_with(latency: LatencyProfile, replicas: u64, spec: Value) -> (World, WorkloadClusters) {
    let (mut world, workloads) = stage(latency).await;
    world.start();
    apply(&world, &objects(1, 0)).await;
    apply(&world, &pool(replicas, spec)).await;
    settled(&world, &workloads, replicas).await;
    (world, workloads)
}

pub fn status(world: &World) -> Value {
    world.get(POOL, "my-pool").map_or(Value::Null, |pool| pool["status"].clone())
}

/// Instances of the pool in Azure, of either kind.
pub fn instances(world: &World) -> Vec<Value> {
    let uniform = world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
    let machines = world.azure.documents_of_type("Microsoft.Compute/virtualMachines");
    let flexible = machines.into_iter().filter(|one| !one["properties"]["virtualMachineScaleSet"].is_null());
    uniform.into_iter().chain(flexible).collect()
}

/// Waits until the pool has this many machines, all ready, and nothing is under way.
pub async fn settled(world: &World, workloads: &WorkloadClusters, replicas: u64) {
    world
        .until(&format!("{replicas} machines are ready"), |world| {
            let count = |kind: &str| world.kubernetes.list(kind).len();
            let status = status(world);
            let replicas = usize::try_from(replicas).unwrap();
            ready_nodes(workloads) == replicas + 1
                && instances(world).len() == replicas
                && count(INSTANCE) == replicas
                && status["ready"] == true
                && status["replicas"] == replicas
                && status["provisioningState"] == "Succeeded"
                && status["longRunningOperationStates"].is_null()
        })
        .await;
}

pub fn names(world: &World) -> BTreeSet<String> {
    world
        .kubernetes
        .list(INSTANCE)
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn scale(world: &World, replicas: u64) {
    change(world, "cluster.x-k8s.io", "MachinePool", "my-pool", json!({ "spec": { "replicas": replicas } }))
        .await;
}

pub async fn upgrade(world: &World, version: &str) {
    let patch = json!({ "spec": { "template": { "spec": { "version": version } } } });
    change(world, "cluster.x-k8s.io", "MachinePool", "my-pool", patch).await;
}

/// CAPZ-137, CAPZ-151, CAPZ-155: a user's manifests become nodes; the pool grows, shrinks, and is deleted without a
/// trace.
#[tokio::test(start_paused = true)]
async fn a_pool_comes_grows_shrinks_and_goes() {
    let (world, workloads) = running(3, json!({})).await;
    let pool = world.get(POOL, "my-pool").unwrap();
    assert_eq!(pool["spec"]["providerIDList"].as_array().unwrap().len(), 3);
    assert_eq!(pool["status"]["infrastructureMachineKind"], INSTANCE);
    assert!(pool["status"]["image"].is_object());
    scale(&world, 5).await;
    settled(&world, &workloads, 5).await;
    scale(&world, 2).await;
    settled(&world, &workloads, 2).await;
    world.delete("MachinePool", "my-pool");
    world.until("the pool is gone", |world| world.get("MachinePool", "my-pool").is_none()).await;
    assert!(instances(&world).is_empty() && names(&world).is_empty());
    assert!(world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets").is_empty());
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.delete("Cluster", "my-cluster");
    world.until("the cluster is gone", |world| world.get("Cluster", "my-cluster").is_none()).await;
}

/// CAPZ-139: another version replaces all machines, with a surge of one.
#[tokio::test(start_paused = true)]
async fn another_version_replaces_all_machines() {
    let (world, workloads) = running(3, json!({})).await;
    let before = names(&world);
    upgrade(&world, "v1.34.0").await;
    world.until("none is left", |world| names(world).is_disjoint(&before) && names(world).len() == 3).await;
    settled(&world, &workloads, 3).await;
    let versions: Vec<Value> =
        world.kubernetes.list(INSTANCE).iter().map(|it| it["status"]["version"].clone()).collect();
    assert!(versions.iter().all(|version| version == "v1.34.0"), "{versions:?}");
}

/// CAPZ-139: within max unavailable, without a surge.
#[tokio::test(start_paused = true)]
async fn machines_are_replaced_within_what_may_be_unavailable() {
    let update = json!({ "maxSurge": 0, "maxUnavailable": 1 });
    let (world, workloads) =
        running(3, json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": update } })).await;
    let before = names(&world);
    upgrade(&world, "v1.34.0").await;
    world
        .until("none is left", |world| {
            assert!(instances(world).len() <= 3);
            names(world).is_disjoint(&before) && names(world).len() == 3
        })
        .await;
    settled(&world, &workloads, 3).await;
}

/// CAPZ-151: instances of a flexible set are virtual machines, with the IDs of virtual machines.
#[tokio::test(start_paused = true)]
async fn a_flexible_pool_comes_changes_and_goes() {
    let (world, workloads) = running(2, json!({ "orchestrationMode": "Flexible" })).await;
    let before = names(&world);
    for object in world.kubernetes.list(INSTANCE) {
        let id = object["spec"]["providerID"].as_str().unwrap();
        assert!(
            id.contains("/resourceGroups/my-cluster/providers/Microsoft.Compute/virtualMachines/"),
            "{id}"
        );
    }
    upgrade(&world, "v1.34.0").await;
    world.until("none is left", |world| names(world).is_disjoint(&before) && names(world).len() == 2).await;
    settled(&world, &workloads, 2).await;
    scale(&world, 1).await;
    settled(&world, &workloads, 1).await;
    world.delete("MachinePool", "my-pool");
    world.until("the pool is gone", |world| world.get("MachinePool", "my-pool").is_none()).await;
    assert!(instances(&world).is_empty() && names(&world).is_empty());
}

/// CAPZ-153: a Machine that a user deletes is drained and deleted with its instance, and replaced. The same holds for
/// the object that represents the instance: the node is drained first.
#[tokio::test(start_paused = true)]
async fn whoever_is_deleted_is_drained_first() {
    let (world, workloads) = running(2, json!({})).await;
    // The deletion of an instance, and of its node, takes a while.
    let latency = LatencyProfile::instant().with("DELETE", INSTANCES, Duration::from_secs(60));
    world.azure.set_latency(latency);
    for kind in ["Machine", INSTANCE] {
        let name = names(&world).into_iter().next().unwrap();
        let node =
            world.get("Machine", &name).unwrap()["status"]["nodeRef"]["name"].as_str().unwrap().to_owned();
        let kubernetes = workloads.cluster("my-cluster").unwrap().kubernetes;
        let sequence = world.sequence();
        world.delete(kind, &name);
        world
            .until("its instance goes", |world| {
                world.azure.journal_after(sequence).entries.iter().any(|entry| entry.method == "DELETE")
            })
            .await;
        let node = kubernetes.get("Node", "", &node).unwrap();
        assert_eq!(node["spec"]["unschedulable"], true, "{kind} {name} goes, and its node is not drained");
        world
            .until("it is gone", |world| {
                !names(world).contains(&name) && world.get("Machine", &name).is_none()
            })
            .await;
        settled(&world, &workloads, 2).await;
        assert!(!names(&world).contains(&name));
    }
}
