//! The manager dies after every single call to Azure while the core rolls machines to another version and template; a
//! new one reaches the same state.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};
use simulated_cluster::WorkloadClusters;
use testkit::KillSwitch;

use crate::play::{apply, change, objects, ready_nodes, stage, template};
use crate::world::{World, cases};

const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const SIZE: &str = "Standard_D4s_v3";
const VERSION: &str = "v1.34.1";

/// A cluster of one and one, without a manager.
async fn prepared() -> (World, WorkloadClusters) {
    let latency = LatencyProfile::instant().with("*", "*", Duration::from_secs(5));
    let (mut world, workloads) = stage(latency).await;
    apply(&world, &objects(1, 1)).await;
    world.start();
    world.until("two nodes are ready", |_| ready_nodes(&workloads) == 2).await;
    world.kill().await;
    (world, workloads)
}

/// Both kinds of machines get another size, and another version of Kubernetes.
async fn begin(world: &World) {
    apply(world, &[template("my-cp-2", SIZE), template("my-workers-2", SIZE)]).await;
    let control_plane = json!({ "spec": { "version": VERSION,
        "machineTemplate": { "spec": { "infrastructureRef": { "name": "my-cp-2" } } } } });
    change(world, "controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "my-cp", control_plane).await;
    let workers = json!({ "spec": { "template": { "spec": { "version": VERSION,
        "infrastructureRef": { "name": "my-workers-2" } } } } });
    change(world, "cluster.x-k8s.io", "MachineDeployment", "my-workers", workers).await;
}

async fn pursue(world: &World, workloads: &WorkloadClusters) {
    let is_done = |world: &World| {
        let machines = world.azure.documents_of_type(MACHINES);
        machines.len() == 2
            && machines.iter().all(|it| it["properties"]["hardwareProfile"]["vmSize"] == SIZE)
            && world.kubernetes.list("AzureMachine").len() == 2
            && ready_nodes(workloads) == 2
    };
    world.until("both machines are new", is_done).await;
}

/// The state of Azure without the random names of machines: the kinds of resources, and the properties of machines.
fn end(world: &World) -> Vec<String> {
    let machines = world.kubernetes.list("AzureMachine");
    let names = machines.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>();
    let role = |name: &str| if name.starts_with("my-cp") { "<control plane>" } else { "<worker>" };
    let say = |text: String| names.iter().fold(text, |text, name| text.replace(name, role(name)));
    let mut lines: Vec<String> = world
        .azure
        .documents()
        .iter()
        .map(|document| {
            let machine = &document["properties"];
            let image: &Value = &machine["storageProfile"]["imageReference"];
            let text =
                format!("{} {} {image} {}", document["id"], machine["hardwareProfile"], document["tags"]);
            say(text)
        })
        .collect();
    lines.sort();
    lines
}

async fn survives(every: usize) {
    let (mut world, workloads) = prepared().await;
    let switch = KillSwitch::never();
    world.start_with(&switch);
    begin(&world).await;
    pursue(&world, &workloads).await;
    let (expected, calls) = (end(&world), switch.calls());
    assert!(calls > 20, "{calls}");
    assert!(expected.iter().any(|line| line.contains("<worker>-nic")), "{expected:#?}");
    for number in cases(calls, every) {
        let (mut world, workloads) = prepared().await;
        let switch = KillSwitch::after_call(number);
        world.start_with(&switch);
        begin(&world).await;
        tokio::select! {
            () = switch.tripped() => {}
            () = pursue(&world, &workloads) => {}
        }
        world.kill().await;
        world.start();
        pursue(&world, &workloads).await;
        assert_eq!(end(&world), expected, "after call {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn machines_are_upgraded_although_the_manager_dies() {
    survives(71).await;
}

#[ignore = "takes minutes: run with --ignored, optimised"]
#[tokio::test(start_paused = true)]
async fn machines_are_upgraded_although_the_manager_dies_after_any_call() {
    survives(17).await;
}
