//! The manager dies after every single call to Azure; a new one reaches the same state.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::json;
use testkit::{AzureState, KillSwitch};

use crate::world::{World, cases};

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const CLUSTER: &str = "my-cluster";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    /// A cluster of two machines is created.
    Create,
    /// Two machines are added and one is deleted.
    Scale,
    /// All machines are deleted, and then the cluster.
    Delete,
}

/// Foreign resources that exist before the cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Preexisting {
    /// None: the group is created and deleted with the cluster, and most resources in it with the group.
    Nothing,
    /// The group, so that resources are deleted one by one.
    Group,
    /// The group, and a network with its subnets in another one.
    Network,
}

fn latency() -> LatencyProfile {
    // All operations take so long that some are running whenever the manager dies.
    LatencyProfile::instant().with("*", "*", Duration::from_secs(5))
}

fn is_there(world: &World, machine: &str) -> bool {
    world.get("AzureMachine", machine).is_some()
}

fn is_up(world: &World) -> bool {
    if world.is_ready("AzureCluster", CLUSTER) && world.get("Cluster", CLUSTER).unwrap()["status"].is_null() {
        world.provisioned(CLUSTER);
    }
    world.is_ready("AzureMachine", "cp-0") && world.is_ready("AzureMachine", "worker")
}

fn is_scaled(world: &World) -> bool {
    !is_there(world, "worker") && ["worker-2", "worker-3"].iter().all(|it| world.is_ready("AzureMachine", it))
}

/// Deletes the AzureCluster once its machines are gone, as the core does. Returns whether it is gone.
fn is_down(world: &World) -> bool {
    let cluster = world.get("AzureCluster", CLUSTER);
    let asked = cluster.as_ref().is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null());
    if cluster.is_some() && !asked && !is_there(world, "cp-0") && !is_there(world, "worker") {
        world.delete("AzureCluster", CLUSTER);
    }
    cluster.is_none()
}

fn ask(world: &World, found: Preexisting) {
    let spec = match found {
        Preexisting::Nothing | Preexisting::Group => json!({}),
        Preexisting::Network => json!({
            "vnet": { "name": "shared", "resourceGroup": "shared" },
            "subnets": [{ "role": "control-plane", "name": "cp" }, { "role": "node", "name": "nodes" }],
        }),
    };
    let bastion = match found {
        Preexisting::Nothing | Preexisting::Group => json!({ "azureBastion": {} }),
        Preexisting::Network => json!({}),
    };
    world.cluster(CLUSTER, json!({ "bastionSpec": bastion, "networkSpec": spec }));
    world.machine(CLUSTER, "cp-0", json!({ (CONTROL_PLANE): "" }), json!({}));
    world.machine(CLUSTER, "worker", json!({}), json!({ "allocatePublicIP": true }));
}

fn world(found: Preexisting) -> World {
    let world = World::with(latency(), 1);
    if found != Preexisting::Nothing {
        world.azure.put(&world.group(CLUSTER), json!({ "location": "eastus" })).unwrap();
    }
    if found == Preexisting::Network {
        let group = world.group("shared");
        world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
        let subnet =
            |name: &str, prefix: &str| json!({ "name": name, "properties": { "addressPrefix": prefix } });
        let properties = json!({ "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
            "subnets": [subnet("cp", "10.0.0.0/16"), subnet("nodes", "10.1.0.0/16")] });
        let vnet = group.resource("Microsoft.Network", "virtualNetworks", "shared");
        world.azure.put(&vnet, json!({ "location": "eastus", "properties": properties })).unwrap();
    }
    world
}

async fn prepared(task: Task, found: Preexisting) -> World {
    let mut world = world(found);
    if task != Task::Create {
        ask(&world, found);
        world.start();
        world.until("up", is_up).await;
        world.kill().await;
    }
    world
}

async fn pursue(world: &World, task: Task) {
    match task {
        Task::Create => world.until("up", is_up).await,
        Task::Scale => world.until("scaled", is_scaled).await,
        Task::Delete => world.until("down", is_down).await,
    };
}

fn begin(world: &World, task: Task, found: Preexisting) {
    match task {
        Task::Create => ask(world, found),
        Task::Scale => {
            world.delete("AzureMachine", "worker");
            world.machine(
                CLUSTER,
                "worker-2",
                json!({}),
                json!({ "dataDisks": [{ "nameSuffix": "more", "diskSizeGB": 8, "lun": 0 }] }),
            );
            world.machine(CLUSTER, "worker-3", json!({}), json!({ "allocatePublicIP": true }));
        }
        Task::Delete => {
            world.delete_cluster(CLUSTER);
            world.delete("AzureMachine", "cp-0");
            world.delete("AzureMachine", "worker");
        }
    }
}

fn end(world: &World) -> AzureState {
    AzureState::of(&world.azure, &world.kubernetes)
}

/// Reaches the same state as an undisturbed manager, for each call of these.
async fn survives(task: Task, found: Preexisting, every: usize) {
    let mut undisturbed = prepared(task, found).await;
    let switch = KillSwitch::never();
    undisturbed.start_with(&switch);
    begin(&undisturbed, task, found);
    pursue(&undisturbed, task).await;
    let (expected, calls) = (end(&undisturbed), switch.calls());
    let least = if (task, found) == (Task::Delete, Preexisting::Nothing) { 8 } else { 20 };
    assert!(calls > least, "{calls}");
    if task == Task::Delete {
        // Nothing is left, and foreign resources are unchanged.
        let left = expected.differences(&end(&world(found)));
        assert!(left.is_empty(), "{}", left.join("\n"));
    }
    for number in cases(calls, every) {
        let mut world = prepared(task, found).await;
        let switch = KillSwitch::after_call(number);
        world.start_with(&switch);
        begin(&world, task, found);
        tokio::select! {
            () = switch.tripped() => {}
            () = pursue(&world, task) => {}
        }
        world.kill().await;
        world.start();
        pursue(&world, task).await;
        let differences = end(&world).differences(&expected);
        assert!(
            differences.is_empty(),
            "after call {number} of {task:?}, found {found:?}:\n{}",
            differences.join("\n")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_although_the_manager_dies() {
    survives(Task::Create, Preexisting::Group, 29).await;
}

#[tokio::test(start_paused = true)]
async fn machines_come_and_go_although_the_manager_dies() {
    survives(Task::Scale, Preexisting::Group, 29).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_the_manager_dies() {
    survives(Task::Delete, Preexisting::Group, 29).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_a_group_of_its_own_comes_and_goes_although_the_manager_dies() {
    survives(Task::Create, Preexisting::Nothing, 41).await;
    survives(Task::Delete, Preexisting::Nothing, 7).await;
}

/// In a foreign network, which is unchanged at the end.
#[tokio::test(start_paused = true)]
async fn what_others_own_stays_although_the_manager_dies() {
    survives(Task::Create, Preexisting::Network, 41).await;
    survives(Task::Delete, Preexisting::Network, 41).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn a_cluster_comes_although_the_manager_dies_after_any_call() {
    survives(Task::Create, Preexisting::Group, 5).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn machines_come_and_go_although_the_manager_dies_after_any_call() {
    survives(Task::Scale, Preexisting::Group, 5).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_the_manager_dies_after_any_call() {
    survives(Task::Delete, Preexisting::Group, 5).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn a_cluster_with_a_group_of_its_own_comes_and_goes_although_the_manager_dies_after_any_call() {
    survives(Task::Create, Preexisting::Nothing, 5).await;
    survives(Task::Delete, Preexisting::Nothing, 1).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn what_others_own_stays_although_the_manager_dies_after_any_call() {
    survives(Task::Create, Preexisting::Network, 5).await;
    survives(Task::Delete, Preexisting::Network, 5).await;
}
