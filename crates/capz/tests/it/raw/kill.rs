//! The manager dies after calls to Azure; a new one reaches the same state.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::json;
use testkit::{AzureState, KillSwitch};

use super::{CLUSTER, CLUSTERS, CONTROL_PLANE, POOL, POOLS, flavor, is_up};
use crate::world::{World, cases};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    Create,
    /// A pool is scaled, and the cluster is upgraded with its pools.
    Change,
    Delete,
}

fn begin(world: &World, task: Task) {
    match task {
        Task::Create => flavor(world),
        Task::Change => {
            world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "version": "v1.34.0" } }));
            for (pool, replicas) in [("aks-pool0", 2), ("aks-pool1", 3)] {
                let spec = json!({ "replicas": replicas, "template": { "spec": { "version": "v1.34.0" } } });
                world.merge("MachinePool", pool, json!({ "spec": spec }));
            }
        }
        Task::Delete => {
            world.delete_cluster("aks");
            world.delete(POOL, "aks-pool0");
            world.delete(POOL, "aks-pool1");
        }
    }
}

fn is_changed(world: &World) -> bool {
    let version = |document: &serde_json::Value, member: &str| document["properties"][member] == "1.34.0";
    let pools = world.azure.documents_of_type(POOLS);
    is_up(world)
        && world.azure.documents_of_type(CLUSTERS).iter().all(|it| version(it, "kubernetesVersion"))
        && pools.iter().all(|it| version(it, "orchestratorVersion"))
        && pools.iter().any(|it| it["properties"]["count"] == 3)
}

/// Deletes the objects in the order in which the core does. Returns whether they are gone.
fn is_down(world: &World) -> bool {
    let asked =
        |kind: &str| world.get(kind, "aks").is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null());
    if !world.kubernetes.list(POOL).is_empty() {
        return false;
    }
    for kind in [CONTROL_PLANE, CLUSTER] {
        if world.get(kind, "aks").is_some() {
            if !asked(kind) {
                world.delete(kind, "aks");
            }
            return false;
        }
    }
    true
}

async fn pursue(world: &World, task: Task) {
    match task {
        Task::Create => world.until("up", is_up).await,
        Task::Change => world.until("changed", is_changed).await,
        Task::Delete => world.until("down", is_down).await,
    };
}

async fn prepared(task: Task) -> World {
    let mut world = World::with(LatencyProfile::instant().with("*", "*", Duration::from_secs(5)), 1);
    if task != Task::Create {
        flavor(&world);
        world.start();
        world.until("up", is_up).await;
        world.kill().await;
    }
    world
}

async fn survives(task: Task, every: usize) {
    let end = |world: &World| AzureState::of(&world.azure, &world.kubernetes);
    let mut undisturbed = prepared(task).await;
    let switch = KillSwitch::never();
    undisturbed.start_with(&switch);
    begin(&undisturbed, task);
    pursue(&undisturbed, task).await;
    let (expected, calls) = (end(&undisturbed), switch.calls());
    assert!(calls > 8, "{calls}");
    if task == Task::Delete {
        assert!(undisturbed.azure.documents_of_type(CLUSTERS).is_empty());
        assert!(undisturbed.azure.document(&undisturbed.group("aks")).is_none());
    }
    for number in cases(calls, every) {
        let mut world = prepared(task).await;
        let switch = KillSwitch::after_call(number);
        world.start_with(&switch);
        begin(&world, task);
        tokio::select! {
            () = switch.tripped() => {}
            () = pursue(&world, task) => {}
        }
        world.kill().await;
        world.start();
        pursue(&world, task).await;
        let differences = end(&world).differences(&expected);
        assert!(differences.is_empty(), "after call {number} of {task:?}:\n{}", differences.join("\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_although_the_manager_dies() {
    survives(Task::Create, 3).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_scaled_and_upgraded_although_the_manager_dies() {
    survives(Task::Change, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_the_manager_dies() {
    survives(Task::Delete, 2).await;
}
