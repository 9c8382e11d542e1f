//! Node pools: who decides their size, and their end.

use serde_json::{Value, json};

use super::{CLUSTERS, NAMESPACE, POOL, POOLS, agent_pool, nodes, running};
use crate::world::World;

const MANAGER: &str = "cluster.x-k8s.io/replicas-managed-by";

fn manager(world: &World) -> Value {
    world.get("MachinePool", "aks-pool1").unwrap()["metadata"]["annotations"][MANAGER].clone()
}

fn declare(world: &World, more: Value) {
    let mut spec = json!({ "mode": "User" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let resources = [agent_pool("aks", "aks-pool1", "pool1", spec)];
    world.merge(POOL, "aks-pool1", json!({ "spec": { "resources": resources } }));
}

fn in_azure(world: &World) -> Value {
    let mut all = world.azure.documents_of_type(POOLS);
    all.retain(|it| it["name"] == "pool1");
    all.remove(0)["properties"].take()
}

/// CAPZ-209: the autoscaler decides the number of machines as long as it is on.
#[tokio::test(start_paused = true)]
async fn the_autoscaler_decides_the_number_of_machines() {
    let world = running().await;
    declare(&world, json!({ "enableAutoScaling": true, "minCount": 2, "maxCount": 5 }));
    world.until("the annotation", |world| manager(world) == "aks").await;
    world
        .until("it is on", |world| {
            in_azure(world)["enableAutoScaling"] == true && world.is_ready(POOL, "aks-pool1")
        })
        .await;
    let document = world.azure.documents_of_type(POOLS).into_iter().find(|it| it["name"] == "pool1").unwrap();
    let id = azure_types::ResourceId::parse(document["id"].as_str().unwrap()).unwrap();
    // The autoscaler wants four.
    for least in [4, 2] {
        world.azure.edit(&id, |pool| pool["properties"]["minCount"] = json!(least)).unwrap();
    }
    let replicas = |world: &World| world.get("MachinePool", "aks-pool1").unwrap()["spec"]["replicas"].clone();
    world.until("the number of Azure", |world| replicas(world) == 4).await;
    assert_eq!(in_azure(&world)["count"], 4);
    declare(&world, json!({ "enableAutoScaling": false }));
    world.until("the annotation is gone", |world| manager(world).is_null()).await;
    world.until("it is off", |world| in_azure(world)["enableAutoScaling"] != true).await;
    world.merge("MachinePool", "aks-pool1", json!({ "spec": { "replicas": 3 } }));
    world.until("the number of the MachinePool", |world| in_azure(world)["count"] == 3).await;
}

/// CAPZ-210: a node without a provider ID is waited for.
#[tokio::test(start_paused = true)]
async fn a_node_without_a_provider_id_is_waited_for() {
    let world = running().await;
    world.create(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n9", "labels": { "kubernetes.azure.com/agentpool": "pool1", "kubernetes.azure.com/cluster": "MC_aks_aks_eastus" } },
    }));
    world.merge("MachinePool", "aks-pool1", json!({ "spec": { "replicas": 3 } }));
    let listed = |world: &World| {
        world.get(POOL, "aks-pool1").unwrap()["spec"]["providerIDList"].as_array().unwrap().len()
    };
    world.until("it is scaled", |world| in_azure(world)["count"] == 3).await;
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    assert_eq!(listed(&world), 2);
    world.kubernetes.merge("Node", "", "n9", &json!({ "spec": { "providerID": "azure:///n9" } })).unwrap();
    world.until("it is listed", |world| listed(world) == 3).await;
}

/// A pool is deleted alone; the cluster and the other pool stay.
#[tokio::test(start_paused = true)]
async fn a_pool_is_deleted_alone() {
    let world = running().await;
    nodes(&world, "pool1", &[]);
    world.delete(POOL, "aks-pool1");
    world.until("it is gone", |world| world.get(POOL, "aks-pool1").is_none()).await;
    assert_eq!(world.azure.documents_of_type(POOLS).len(), 1);
    assert_eq!(world.azure.documents_of_type(CLUSTERS).len(), 1);
    assert!(world.kubernetes.get(POOL, NAMESPACE, "aks-pool0").is_some());
}
