//! AzureClusters.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

fn is_ready(world: &World) -> bool {
    world.get("AzureCluster", "my-cluster").is_some_and(|it| it["status"]["ready"] == true)
}

/// CAPZ-048, CAPZ-065: a public cluster gets its network and an endpoint; at rest nothing is written and little is
/// read.
#[tokio::test(start_paused = true)]
async fn a_public_cluster_is_made_and_rests() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({ "failureDomains": { "2": { "controlPlane": false } } }));
    world.start();
    world.until("ready", is_ready).await;
    let object = world.get("AzureCluster", "my-cluster").unwrap();
    let host = object["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap();
    assert!(host.ends_with(".eastus.cloudapp.azure.com"), "{host}");
    let domains = &object["status"]["failureDomains"];
    assert_eq!(
        ["1", "2", "3"].map(|zone| domains[zone]["controlPlane"].clone()),
        [true, false, true].map(Value::from)
    );
    assert_eq!(object["status"]["longRunningOperationStates"], json!(null));
    for condition in [
        "Ready",
        "ResourceGroupReady",
        "VNetReady",
        "SubnetsReady",
        "LoadBalancersReady",
        "NetworkInfrastructureReady",
    ] {
        assert_eq!(
            world.condition("AzureCluster", "my-cluster", condition),
            Some(("True".into(), String::new())),
            "{condition} of {object:#}"
        );
    }
    let group = world.group("my-cluster");
    for (kind, name) in [
        ("virtualNetworks", "my-cluster-vnet"),
        ("loadBalancers", "my-cluster-public-lb"),
        ("natGateways", "my-cluster-node-natgw"),
        ("networkSecurityGroups", "my-cluster-node-nsg"),
    ] {
        assert!(world.azure.document(&group.resource("Microsoft.Network", kind, name)).is_some(), "{name}");
    }
    // Waits until the first reconciles have ended.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let sequence = world.sequence();
    tokio::time::sleep(Duration::from_secs(650)).await;
    let (requests, writes) = world.requests_after(sequence);
    assert_eq!(writes, 0);
    assert!((1..=12).contains(&requests), "{requests} requests for one look");
    // A new manager finds everything as desired.
    world.kill().await;
    let sequence = world.sequence();
    world.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.requests_after(sequence).1, 0);
}

/// CAPZ-058, CAPZ-164: deletion leaves nothing behind, neither in Azure nor in the identity's finalizers.
#[tokio::test(start_paused = true)]
async fn a_deleted_cluster_leaves_nothing_behind() {
    let mut world = World::new();
    let before = world.azure.documents();
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("ready", is_ready).await;
    let identity = world.get("AzureClusterIdentity", "identity").unwrap();
    assert_eq!(identity["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
    world.delete_cluster("my-cluster");
    world.delete("AzureCluster", "my-cluster");
    world.until("gone", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
    assert_eq!(world.azure.documents(), before);
    let identity = world.get("AzureClusterIdentity", "identity").unwrap();
    assert_eq!(identity["metadata"]["finalizers"].as_array().map_or(0, Vec::len), 0);
}
