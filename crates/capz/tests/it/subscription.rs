//! A cluster that names no subscription uses the manager's, and stays there.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use azure_types::ResourceId;
use serde_json::json;

use crate::world::{SUBSCRIPTION, World};

const OTHER: &str = "00000000-0000-0000-0000-000000000999";

/// The message of the summary condition.
fn words(world: &World, kind: &str, name: &str) -> String {
    let object = world.get(kind, name).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|it| it["type"] == "Ready" && it["status"] == "False");
    ready.map(|it| it["message"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// Deletes everything of the cluster, as its owner does.
fn delete_all(world: &World) {
    world.delete_cluster("my-cluster");
    world.delete("AzureCluster", "my-cluster");
}

async fn moves_to(world: &mut World, subscription: &str) {
    world.kill().await;
    world.settings.subscription = Some(subscription.to_owned());
    world.start();
}

/// Another subscription of the manager neither creates a second cluster nor ends machines, nor releases objects whose
/// resources still exist.
#[tokio::test(start_paused = true)]
async fn another_subscription_is_refused() {
    let mut world = World::new();
    let nothing = world.azure.documents();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
    let before = world.azure.documents();

    // Objects that another program left have no annotation of ours.
    let none = json!({ "metadata": { "annotations": { (capz_planner::elsewhere::SUBSCRIPTION): null } } });
    world.kill().await;
    world.merge("AzureCluster", "my-cluster", none);
    world.start();
    moves_to(&mut world, OTHER).await;
    world.until("reported", |world| words(world, "AzureCluster", "my-cluster").contains(OTHER)).await;
    let told = |world: &World| world.events("AzureMachine", "worker").contains(&"ReconcileError".to_owned());
    world.until("reported, too", told).await;
    let machine = world.get("AzureMachine", "worker").unwrap();
    assert!(machine["status"]["failureReason"].is_null(), "{}", machine["status"]);
    delete_all(&world);
    world.delete("AzureMachine", "worker");
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert!(words(&world, "AzureMachine", "worker").contains(SUBSCRIPTION));
    assert_eq!(world.azure.documents(), before);
    assert!(world.azure.document(&ResourceId::group(OTHER, "my-cluster")).is_none());
    assert!(
        world.get("AzureMachine", "worker").is_some() && world.get("AzureCluster", "my-cluster").is_some()
    );

    moves_to(&mut world, SUBSCRIPTION).await;
    world.until("gone", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
    assert_eq!(world.azure.documents(), nothing);
}

/// The same for a cluster of which only the first resources exist; and a cluster without resources may begin elsewhere.
#[tokio::test(start_paused = true)]
async fn a_cluster_stays_where_its_group_is() {
    let vnet = "Microsoft.Network/virtualNetworks";
    let mut world = World::with(LatencyProfile::instant().with("CREATE", vnet, Duration::from_secs(120)), 1);
    let nothing = world.azure.documents();
    world.settings.subscription = Some(OTHER.to_owned());
    world.merge(
        "AzureClusterIdentity",
        "identity",
        json!({ "spec": { "allowedNamespaces": { "list": ["x"] } } }),
    );
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("refused", |world| !words(world, "AzureCluster", "my-cluster").is_empty()).await;
    world.merge(
        "AzureClusterIdentity",
        "identity",
        json!({ "spec": { "allowedNamespaces": { "list": null } } }),
    );
    moves_to(&mut world, SUBSCRIPTION).await;
    world.until("a group", |world| world.azure.document(&world.group("my-cluster")).is_some()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;

    moves_to(&mut world, OTHER).await;
    delete_all(&world);
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert!(words(&world, "AzureCluster", "my-cluster").contains(SUBSCRIPTION));
    moves_to(&mut world, SUBSCRIPTION).await;
    world.until("gone", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
    assert_eq!(world.azure.documents(), nothing);
}
