//! The manager dies after calls to Azure; a new one reaches the same state.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};
use testkit::{AzureState, KillSwitch};

use super::{CLUSTERS, CONTROL_PLANE, POOL, POOLS, agent_pool, begin_end, flavor, is_down, is_up, pool};
use crate::world::{World, cases};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    /// A cluster with two pools is created.
    Create,
    /// One pool grows, one is added and one is deleted.
    Scale,
    /// The cluster is upgraded with its pools.
    Upgrade,
    /// The cluster is deleted.
    Delete,
}

fn add_pool(world: &World, name: &str) {
    let object = format!("aks-{name}");
    pool(world, "aks", &object, agent_pool("aks", &object, name, json!({ "mode": "User" })));
}

fn begin(world: &World, task: Task) {
    match task {
        Task::Create => flavor(world),
        Task::Scale => {
            world.merge("MachinePool", "aks-pool1", json!({ "spec": { "replicas": 4 } }));
            world.delete(POOL, "aks-pool2");
            add_pool(world, "pool3");
        }
        Task::Upgrade => {
            world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "version": "v1.34.0" } }));
            for pool in ["aks-pool0", "aks-pool1"] {
                let spec = json!({ "template": { "spec": { "version": "v1.34.0" } } });
                world.merge("MachinePool", pool, json!({ "spec": spec }));
            }
        }
        Task::Delete => begin_end(world),
    }
}

/// The pools in Azure with a member of each, by name.
fn pools_with(world: &World, member: &str) -> Vec<(String, Value)> {
    let all = world.azure.documents_of_type(POOLS);
    let pool = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["properties"][member].clone());
    let mut pools: Vec<_> = all.iter().map(pool).collect();
    pools.sort_by(|one, other| one.0.cmp(&other.0));
    pools
}

fn is_scaled(world: &World) -> bool {
    let expected =
        [("pool0", 2), ("pool1", 4), ("pool3", 2)].map(|(name, count)| (name.into(), json!(count)));
    is_up(world) && world.get(POOL, "aks-pool2").is_none() && pools_with(world, "count") == expected
}

fn is_upgraded(world: &World) -> bool {
    let version = |document: &Value| document["properties"]["kubernetesVersion"] == "1.34.0";
    is_up(world)
        && world.azure.documents_of_type(CLUSTERS).iter().all(version)
        && pools_with(world, "currentOrchestratorVersion").iter().all(|(_, version)| version == "1.34.0")
}

async fn pursue(world: &World, task: Task) {
    match task {
        Task::Create => world.until("up", is_up).await,
        Task::Scale => world.until("scaled", is_scaled).await,
        Task::Upgrade => world.until("upgraded", is_upgraded).await,
        Task::Delete => world.until("down", is_down).await,
    };
    // Operations that a dead manager has left behind.
    world.until("at rest", |world| world.azure.running_operations() == 0).await;
}

async fn prepared(task: Task) -> World {
    let mut world = World::with(LatencyProfile::instant().with("*", "*", Duration::from_secs(5)), 1);
    if task != Task::Create {
        flavor(&world);
        if task == Task::Scale {
            add_pool(&world, "pool2");
        }
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
async fn its_pools_come_and_go_although_the_manager_dies() {
    survives(Task::Scale, 5).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_upgraded_although_the_manager_dies() {
    survives(Task::Upgrade, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_the_manager_dies() {
    survives(Task::Delete, 2).await;
}
