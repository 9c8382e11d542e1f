//! Events that a watch missed or shows late are made up for.

use std::time::Duration;

use kubernetes_simulator::{Fault, FaultAction};
use serde_json::json;

use crate::world::World;

async fn cluster() -> World {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world
}

/// The last machine that a cluster waits for is deleted while no watch runs.
#[tokio::test(start_paused = true)]
async fn the_last_machine_goes_unseen() {
    let world = cluster().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
    let held =
        json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" }, "finalizers": null } });
    world.merge("AzureMachine", "worker", held);
    world.delete("AzureCluster", "my-cluster");
    tokio::time::sleep(Duration::from_secs(20)).await;

    let all = |verb: &str| Fault { count: None, ..Fault::status(503).verb(verb).resource("azuremachines") };
    world.kubernetes.inject(all("watch"));
    world.kubernetes.inject(all("list"));
    world.kubernetes.drop_watches();
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.delete("AzureMachine", "worker");
    let group = world.group("my-cluster");
    let machine = group.resource("Microsoft.Compute", "virtualMachines", "worker");
    let interface = group.resource("Microsoft.Network", "networkInterfaces", "worker-nic");
    world.azure.delete(&machine).unwrap();
    if world.azure.document(&interface).is_some() {
        world.azure.delete(&interface).unwrap();
    }
    world.kubernetes.compact();
    world.kubernetes.clear_faults();
    let waited = world.until("gone", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
    assert!(waited < Duration::from_secs(120), "{waited:?}");
}

/// A machine is shown before its AzureCluster, which no reconcile covers.
#[tokio::test(start_paused = true)]
async fn a_machine_is_shown_before_its_cluster() {
    let mut world = cluster().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
    let managed = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/managed-by": "foo" } } });
    world.merge("AzureCluster", "my-cluster", managed);
    world.kill().await;
    world.merge("AzureMachine", "worker", json!({ "spec": { "additionalTags": { "a": "b" } } }));
    world.kubernetes.inject(
        Fault::new(FaultAction::delay(Duration::from_secs(5))).verb("list").resource("azureclusters"),
    );
    world.start();
    let machine = world.group("my-cluster").resource("Microsoft.Compute", "virtualMachines", "worker");
    let tagged = |world: &World| world.azure.document(&machine).unwrap()["tags"]["a"] == "b";
    let waited = world.until("the tag", tagged).await;
    assert!(waited < Duration::from_secs(60), "{waited:?}");
}

/// An object whose owner was removed by force is deleted, and reports what it waits for.
#[tokio::test(start_paused = true)]
async fn a_missing_owner_is_told() {
    let world = cluster().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
    world.delete("Machine", "worker");
    if world.get("AzureMachine", "worker").unwrap()["metadata"]["deletionTimestamp"].is_null() {
        world.delete("AzureMachine", "worker");
    }
    let told = |world: &World| world.events("AzureMachine", "worker").contains(&"OwnerNotFound".to_owned());
    world.until("reported", told).await;
}

/// Whatever is listed last after a restart, no existing object is reported as missing, and none is deleted.
#[tokio::test(start_paused = true)]
async fn what_is_not_listed_yet_is_not_absent() {
    let mut world = cluster().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
    let documents = world.azure.documents();
    for late in ["azureclusteridentities", "clusters", "machines", "azureclusters", "azuremachines"] {
        world.kill().await;
        let before = [("AzureCluster", "my-cluster"), ("AzureMachine", "worker")]
            .map(|(kind, name)| world.get(kind, name).unwrap()["status"]["conditions"].clone());
        let events = world.events("AzureCluster", "my-cluster");
        let fault = Fault::new(FaultAction::delay(Duration::from_secs(30))).verb("list").resource(late);
        world.kubernetes.inject(fault);
        world.start();
        tokio::time::sleep(Duration::from_secs(90)).await;
        let after = [("AzureCluster", "my-cluster"), ("AzureMachine", "worker")]
            .map(|(kind, name)| world.get(kind, name).unwrap()["status"]["conditions"].clone());
        assert_eq!(after, before, "{late}");
        assert_eq!(world.events("AzureCluster", "my-cluster"), events, "{late}");
        assert_eq!(world.azure.documents(), documents, "{late}");
    }
}

/// A declaration that changes just before any of the manager's writes: resources of the older one are deleted again,
/// and not forgotten because the newer one does not name them.
#[tokio::test(start_paused = true)]
async fn what_a_newer_declaration_does_not_name_is_not_forgotten() {
    let tags = |tags: serde_json::Value| json!({ "additionalTags": tags });
    let made = async |fault: Option<Fault>| {
        let mut world = World::new();
        world.cluster("my-cluster", tags(json!({ "a": "b" })));
        fault.into_iter().for_each(|fault| world.kubernetes.inject(fault));
        world.start();
        world.until("ready", |world| world.is_ready("AzureCluster", "my-cluster")).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        world
    };
    let undisturbed = made(None).await;
    for resource in ["azureclusters", "azureclusters/status"] {
        let writes = undisturbed.kubernetes.requests("patch", resource);
        assert!(writes > 1, "{writes}");
        for skip in 0..writes {
            let patch = json!({ "spec": tags(json!(null)) });
            let fault = Fault::new(FaultAction::Interfere { patch }).verb("patch").resource(resource);
            let mut world = made(Some(Fault { skip, ..fault })).await;
            let group = world.azure.document(&world.group("my-cluster")).unwrap();
            assert!(group["tags"]["a"].is_null(), "before write {skip} of {resource}: {}", group["tags"]);
            world.kill().await;
        }
    }
}
