//! The manager dies after every single call to Azure while it reconciles a pool; a new one reaches the same state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};
use testkit::KillSwitch;

use crate::pool_world::{Core, INSTANCE, INSTANCES, POOL, ask, change, is_settled, version};
use crate::world::{World, cases};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    Create,
    Grow,
    Shrink,
    Upgrade,
    Delete,
}

impl Task {
    /// The number of machines at the end.
    fn replicas(self) -> usize {
        match self {
            Self::Create | Self::Upgrade => 2,
            Self::Grow => 4,
            Self::Shrink => 1,
            Self::Delete => 0,
        }
    }

    fn begin(self, world: &World) {
        match self {
            Self::Create => {}
            Self::Grow | Self::Shrink => change(world, json!({ "replicas": self.replicas() })),
            Self::Upgrade => change(world, version("v1.34.0")),
            Self::Delete => world.delete(POOL, "my-pool"),
        }
    }

    fn is_done(self, world: &World, core: &RefCell<Core>) -> bool {
        core.borrow_mut().look(world);
        let image = || {
            let sets = world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
            sets.iter().all(|set| !images_of(set).contains("1.33"))
        };
        match self {
            Self::Delete => {
                world.get(POOL, "my-pool").is_none() && world.kubernetes.list("Machine").is_empty()
            }
            Self::Upgrade => is_settled(world, 2) && image(),
            _ => is_settled(world, self.replicas()),
        }
    }
}

fn images_of(set: &Value) -> String {
    set.pointer("/properties/virtualMachineProfile/storageProfile/imageReference").unwrap().to_string()
}

/// A world whose cluster exists, with a pool of two unless that is the task.
async fn prepared(task: Task, core: &RefCell<Core>) -> World {
    let mut world = World::with(LatencyProfile::instant().with("*", "*", Duration::from_secs(5)), 1);
    world.azure.put(&world.group("my-cluster"), json!({ "location": "eastus" })).unwrap();
    let replicas = if task == Task::Create { 0 } else { 2 };
    ask(&world, replicas, json!({}));
    world.start();
    world
        .until("the cluster and its pool", |world| {
            core.borrow_mut().look(world);
            world.get("AzureCluster", "my-cluster").unwrap()["status"]["ready"] == true
                && is_settled(world, usize::try_from(replicas).unwrap())
        })
        .await;
    world.kill().await;
    if task == Task::Create {
        change(&world, json!({ "replicas": 2 }));
    }
    world
}

/// The state: the number of Azure resources of each type, and the essentials of the pool.
fn end(world: &World) -> Value {
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for document in world.azure.documents() {
        *types.entry(document["type"].as_str().unwrap_or("group").to_owned()).or_default() += 1;
    }
    let sets = world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
    let sets: Vec<Value> = sets
        .iter()
        .map(|set| json!([set["sku"], set["tags"], images_of(set), set["properties"]["provisioningState"]]))
        .collect();
    let instances = world.azure.documents_of_type(INSTANCES);
    let images: Vec<Value> = instances
        .iter()
        .map(|it| it["properties"]["storageProfile"]["imageReference"]["version"].clone())
        .collect();
    let pool = world.get(POOL, "my-pool").map(|pool| {
        let status = &pool["status"];
        json!([
            status["replicas"],
            status["ready"],
            status["provisioningState"],
            status["lastReconciledReplicas"],
            pool["spec"]["providerIDList"].as_array().map(Vec::len),
            pool["metadata"]["finalizers"]
        ])
    });
    json!([types, sets, images, pool, world.kubernetes.list(INSTANCE).len()])
}

/// Reaches the same state as an undisturbed manager, for each call of these.
async fn survives(task: Task, every: usize) {
    let core = Core::new(1, 0);
    let mut undisturbed = prepared(task, &core).await;
    let switch = KillSwitch::never();
    undisturbed.start_with(&switch);
    task.begin(&undisturbed);
    undisturbed.until("done", |world| task.is_done(world, &core)).await;
    let (expected, calls) = (end(&undisturbed), switch.calls());
    undisturbed.kill().await;
    for number in cases(calls, every) {
        let core = Core::new(1, 0);
        let mut world = prepared(task, &core).await;
        let switch = KillSwitch::after_call(number);
        world.start_with(&switch);
        task.begin(&world);
        tokio::select! {
            () = switch.tripped() => {}
            _ = world.until("done", |world| task.is_done(world, &core)) => {}
        }
        world.kill().await;
        world.start();
        world.until("done after all", |world| task.is_done(world, &core)).await;
        assert_eq!(end(&world), expected, "after call {number} of {task:?}");
        world.kill().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_comes_although_the_manager_dies() {
    survives(Task::Create, 7).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_brought_to_another_version_although_the_manager_dies() {
    survives(Task::Upgrade, 11).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn a_pool_comes_changes_and_goes_although_the_manager_dies_after_any_call() {
    for task in [Task::Create, Task::Grow, Task::Shrink, Task::Upgrade, Task::Delete] {
        survives(task, 2).await;
    }
}
