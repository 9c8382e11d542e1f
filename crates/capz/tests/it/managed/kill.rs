//! The manager dies after every single call to Azure; a new one reaches the same state.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};
use testkit::{AzureState, KillSwitch};

use super::{
    CONTROL_PLANE, POOL, ask, begin_end, change, in_azure, is_down, is_up, pool, pools_of, upgrade_pool,
};
use crate::world::{NAMESPACE, World, cases};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    /// A cluster with two pools is created.
    Create,
    /// One pool grows, one is added and one is deleted.
    Scale,
    /// The control plane gets another version, and then its pools; an extension is added.
    Upgrade,
    /// The cluster is deleted.
    Delete,
}

const TASKS: [Task; 4] = [Task::Create, Task::Scale, Task::Upgrade, Task::Delete];

fn spec() -> Value {
    json!({ "extensions": [{ "name": "flux", "extensionType": "microsoft.flux" }] })
}

/// A world whose group exists already, so that resources are deleted one by one, or one whose group is the cluster's.
fn world(has_group: bool) -> World {
    // All operations take so long that some are running whenever the manager dies.
    let world = World::with(LatencyProfile::instant().with("*", "*", Duration::from_secs(5)), 1);
    if has_group {
        world.azure.put(&world.group("aks"), json!({ "location": "eastus" })).unwrap();
    }
    world
}

async fn prepared(task: Task, has_group: bool) -> World {
    let mut world = world(has_group);
    if task != Task::Create {
        ask(&world, spec());
        if task == Task::Scale {
            pool(&world, "aks", "pool2", json!({}));
        }
        world.start();
        world.until("up", |world| is_up(world, NAMESPACE, "aks")).await;
        world.kill().await;
    }
    world
}

fn begin(world: &World, task: Task) {
    match task {
        Task::Create => ask(world, spec()),
        Task::Scale => {
            change(world, "MachinePool", "pool1", json!({ "replicas": 4 }));
            world.delete(POOL, "pool2");
            pool(world, "aks", "pool3", json!({}));
        }
        Task::Upgrade => {
            let extension = json!({ "name": "dapr", "extensionType": "microsoft.dapr" });
            change(world, CONTROL_PLANE, "aks", json!({ "version": "v1.34.1", "extensions": [extension] }));
            for pool in ["pool0", "pool1"] {
                upgrade_pool(world, pool, "v1.34.1");
            }
        }
        Task::Delete => begin_end(world, NAMESPACE, "aks"),
    }
}

fn is_done(world: &World, task: Task) -> bool {
    let machines = |pool: &str| {
        let object = world.get(POOL, pool);
        object.map_or(0, |it| it["spec"]["providerIDList"].as_array().map_or(0, Vec::len))
    };
    match task {
        Task::Create => is_up(world, NAMESPACE, "aks") && pools_of(world, NAMESPACE, "aks").len() == 2,
        Task::Scale => {
            is_up(world, NAMESPACE, "aks")
                && world.get(POOL, "pool2").is_none()
                && (machines("pool1"), machines("pool3")) == (4, 2)
        }
        Task::Upgrade => {
            let upgraded =
                |pool: &&str| in_azure(world, "aks", pool)["currentOrchestratorVersion"] == "1.34.1";
            let extensions = world.azure.documents_of_type("Microsoft.KubernetesConfiguration/extensions");
            is_up(world, NAMESPACE, "aks")
                && world.get(CONTROL_PLANE, "aks").unwrap()["status"]["version"] == "v1.34.1"
                && ["pool0", "pool1"].iter().all(upgraded)
                && extensions.iter().map(|it| it["name"].clone()).eq([json!("dapr")])
        }
        Task::Delete => is_down(world, NAMESPACE, "aks"),
    }
}

async fn pursue(world: &World, task: Task) {
    world.until("done", |world| is_done(world, task)).await;
    // Operations that a dead manager has left behind.
    world.until("at rest", |world| world.azure.running_operations() == 0).await;
}

fn end(world: &World) -> AzureState {
    AzureState::of(&world.azure, &world.kubernetes)
}

/// Reaches the same state as an undisturbed manager, for each call of these. Returns their number.
async fn survives(task: Task, has_group: bool, every: usize) {
    let mut undisturbed = prepared(task, has_group).await;
    let switch = KillSwitch::never();
    undisturbed.start_with(&switch);
    begin(&undisturbed, task);
    pursue(&undisturbed, task).await;
    let (expected, calls) = (end(&undisturbed), switch.calls());
    assert!(calls > 5, "{calls}");
    if task == Task::Delete {
        let left = expected.differences(&end(&world(has_group)));
        assert!(left.is_empty(), "{}", left.join("\n"));
    }
    for number in cases(calls, every) {
        let mut world = prepared(task, has_group).await;
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
async fn a_managed_cluster_comes_although_the_manager_dies() {
    survives(Task::Create, false, 5).await;
}

#[tokio::test(start_paused = true)]
async fn node_pools_come_and_go_although_the_manager_dies() {
    survives(Task::Scale, false, 7).await;
}

#[tokio::test(start_paused = true)]
async fn a_managed_cluster_is_upgraded_although_the_manager_dies() {
    survives(Task::Upgrade, false, 9).await;
}

#[tokio::test(start_paused = true)]
async fn a_managed_cluster_goes_although_the_manager_dies() {
    survives(Task::Delete, false, 3).await;
    survives(Task::Delete, true, 3).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn managed_clusters_survive_the_death_of_the_manager_after_any_call() {
    for task in TASKS {
        for has_group in [false, true] {
            survives(task, has_group, 1).await;
        }
    }
}
