//! The manager dies after every single call to Azure; a new one comes to the same end.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::json;
use testkit::{AzureState, KillSwitch};

use crate::world::World;

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    /// A cluster of two machines comes.
    Create,
    /// Both machines go, and then the cluster.
    Delete,
}

fn latency() -> LatencyProfile {
    // All of it takes so long that operations are under way whenever the manager dies.
    LatencyProfile::instant().with("*", "*", Duration::from_secs(5))
}

fn is_up(world: &World) -> bool {
    let ready =
        |kind: &str, name: &str| world.get(kind, name).is_some_and(|it| it["status"]["ready"] == true);
    if ready("AzureCluster", "my-cluster") && world.get("Cluster", "my-cluster").unwrap()["status"].is_null()
    {
        world.provisioned("my-cluster");
    }
    ready("AzureMachine", "cp-0") && ready("AzureMachine", "worker")
}

fn ask(world: &World) {
    world.cluster("my-cluster", json!({ "bastionSpec": { "azureBastion": {} } }));
    world.machine("my-cluster", "cp-0", json!({ (CONTROL_PLANE): "" }), json!({}));
    world.machine("my-cluster", "worker", json!({}), json!({ "allocatePublicIP": true }));
}

/// In somebody else's group, so that everything goes one by one.
fn world() -> World {
    let world = World::with(latency(), 1);
    world.azure.put(&world.group("my-cluster"), json!({ "location": "eastus" })).unwrap();
    world
}

/// What a user sees go, in the order in which the core lets it go.
fn is_down(world: &World) -> bool {
    let there = |kind: &str, name: &str| world.get(kind, name).is_some();
    if !there("AzureMachine", "cp-0")
        && !there("AzureMachine", "worker")
        && world
            .get("AzureCluster", "my-cluster")
            .is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null())
    {
        world.delete("AzureCluster", "my-cluster");
    }
    !there("AzureCluster", "my-cluster")
}

async fn prepared(task: Task) -> World {
    let mut world = world();
    if task == Task::Delete {
        ask(&world);
        world.start();
        world.until("up", is_up).await;
        world.kill().await;
    }
    world
}

async fn pursue(world: &World, task: Task) {
    match task {
        Task::Create => world.until("up", is_up).await,
        Task::Delete => world.until("down", is_down).await,
    };
}

fn begin(world: &World, task: Task) {
    match task {
        Task::Create => ask(world),
        Task::Delete => {
            world.delete("AzureMachine", "cp-0");
            world.delete("AzureMachine", "worker");
        }
    }
}

fn end(world: &World) -> AzureState {
    AzureState::of(&world.azure, &world.kubernetes)
}

/// Comes to the same end as one manager that nothing happens to, for each call of these.
async fn survives(task: Task, every: usize) {
    let mut undisturbed = prepared(task).await;
    let switch = KillSwitch::never();
    undisturbed.start_with(&switch);
    begin(&undisturbed, task);
    pursue(&undisturbed, task).await;
    let (expected, calls) = (end(&undisturbed), switch.calls());
    assert!(calls > 30, "{calls}");
    for number in (0..calls).step_by(every) {
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
    survives(Task::Create, 11).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_the_manager_dies() {
    survives(Task::Delete, 11).await;
}

/// Two minutes without optimisation.
#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn a_cluster_comes_and_goes_although_the_manager_dies_after_any_call() {
    survives(Task::Create, 1).await;
    survives(Task::Delete, 1).await;
}
