//! Events and conditions that no other test here covers.

use axum::body::{Body, to_bytes};
use axum::middleware::map_response;
use axum::response::Response;
use serde_json::{Value, json};

use crate::pool_world::{POOL, ask};
use crate::world::{NAMESPACE, World};

fn told(world: &World, kind: &str, name: &str, reason: &str) -> bool {
    world.events(kind, name).contains(&reason.to_owned())
}

/// An AzureCluster without an owner Cluster reports that, and so does its Secret.
#[tokio::test(start_paused = true)]
async fn a_cluster_without_an_owner_says_so() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    let owners = world.get("AzureCluster", "my-cluster").unwrap()["metadata"]["ownerReferences"].clone();
    world.merge("AzureCluster", "my-cluster", json!({ "metadata": { "ownerReferences": null } }));
    let sequence = world.sequence();
    world.start();
    world
        .until("reported", |world| {
            ["OwnerRefNotSet", "OwnerRefNotFound"]
                .iter()
                .all(|reason| told(world, "AzureCluster", "my-cluster", reason))
        })
        .await;
    assert_eq!(world.requests_after(sequence), (0, 0));
    world.merge("AzureCluster", "my-cluster", json!({ "metadata": { "ownerReferences": owners } }));
    world
        .until("ready", |world| world.get("AzureCluster", "my-cluster").unwrap()["status"]["ready"] == true)
        .await;
}

/// An AzureMachine without an owner Machine reports that.
#[tokio::test(start_paused = true)]
async fn a_machine_without_an_owner_says_so() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.merge("AzureMachine", "worker", json!({ "metadata": { "ownerReferences": null } }));
    world.start();
    world
        .until("reported", |world| {
            told(world, "AzureMachine", "worker", "Machine controller dependency not yet met")
        })
        .await;
}

/// A cluster with an externally managed control plane waits for its address, and is ready with it.
#[tokio::test(start_paused = true)]
async fn the_address_of_somebody_elses_control_plane_is_waited_for() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({ "controlPlaneEnabled": false }));
    world.start();
    let condition =
        |world: &World| world.condition("AzureCluster", "my-cluster", "NetworkInfrastructureReady");
    let waits = Some(("False".to_owned(), "ExternallyManagedControlPlane".to_owned()));
    world.until("it waits", |world| condition(world) == waits).await;
    let status = world.get("AzureCluster", "my-cluster").unwrap()["status"].clone();
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == "NetworkInfrastructureReady").unwrap();
    assert_eq!((&found["severity"], &status["ready"]), (&json!("Info"), &json!(null)), "{status}");
    let endpoint = json!({ "spec": { "controlPlaneEndpoint": { "host": "api.example", "port": 6443 } } });
    world.merge("AzureCluster", "my-cluster", endpoint);
    let holds = Some(("True".to_owned(), String::new()));
    world.until("ready", |world| condition(world) == holds).await;
    assert_eq!(world.get("AzureCluster", "my-cluster").unwrap()["status"]["ready"], true);
}

/// CAPZ-124. A template whose size has no capabilities in Azure reports that.
#[tokio::test(start_paused = true)]
async fn a_size_that_says_nothing_of_itself_is_told_of() {
    async fn without_architecture(response: Response) -> Response {
        let (mut parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&body).replace("CpuArchitectureType", "Nothing");
        parts.headers.remove("content-length");
        Response::from_parts(parts, Body::from(text))
    }
    let mut world = World::new();
    world.front = Some(Box::new(|azure| azure.layer(map_response(without_architecture))));
    world.cluster("my-cluster", json!({}));
    world.template("my-cluster", "md-0", json!({}));
    world.start();
    world.until("reported", |world| told(world, "AzureMachineTemplate", "md-0", "NodeInfoError")).await;
    let events = world.kubernetes.list("Event");
    let event = events.iter().find(|event| event["reason"] == "NodeInfoError").unwrap();
    assert!(event.value().to_string().contains("CpuArchitectureType"), "{:?}", event.value());
    assert_eq!(event["metadata"]["namespace"], NAMESPACE);
}

/// A pool of machines in a cluster of raw resources is not served, and reports that.
#[tokio::test(start_paused = true)]
async fn a_pool_in_a_cluster_of_raw_resources_says_that_it_is_not_served() {
    let mut world = World::new();
    ask(&world, 1, json!({}));
    let managed = json!({ "spec": { "infrastructureRef": { "kind": "AzureASOManagedCluster" } } });
    world.merge("Cluster", "my-cluster", managed);
    world.provisioned("my-cluster");
    world.start();
    world.until("reported", |world| told(world, POOL, "my-pool", "AzureClusterObjectNotFound")).await;
    let sets = world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
    assert_eq!(sets, Vec::<Value>::new());
    assert_eq!(world.get(POOL, "my-pool").unwrap()["metadata"]["finalizers"], Value::Null);
}
