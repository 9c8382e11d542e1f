//! Node pools: who decides their size, and their end.

use serde_json::{Value, json};

use super::{
    CLUSTER, CLUSTERS, CONTROL_PLANE, NAMESPACE, POOL, POOLS, agent_pool, group, nodes, resource, running,
};
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

/// Declares a prefix for the addresses of the nodes of a pool beside the pool.
async fn with_prefix(world: &World) {
    let prefix = resource(
        "network.azure.com/v1api20240301",
        "PublicIPPrefix",
        "range",
        json!({ "location": "eastus", "owner": { "name": "aks" }, "sku": { "name": "Standard" }, "prefixLength": 30 }),
    );
    let pool = agent_pool("aks", "aks-pool1", "pool1", json!({ "mode": "User" }));
    world.merge(POOL, "aks-pool1", json!({ "spec": { "resources": [pool, prefix] } }));
    world.until("the prefix", |world| world.azure.document(&range(world)).is_some()).await;
    world.until("it is ready", |world| world.is_ready(POOL, "aks-pool1")).await;
}

fn range(world: &World) -> azure_types::ResourceId {
    world.group("aks").resource("Microsoft.Network", "publicIPPrefixes", "range")
}

/// What a pool declares beside itself is deleted with it.
#[tokio::test(start_paused = true)]
async fn what_a_pool_declares_beside_itself_goes_with_it() {
    let world = running().await;
    with_prefix(&world).await;
    world.delete(POOL, "aks-pool1");
    world.until("it is gone", |world| world.get(POOL, "aks-pool1").is_none()).await;
    assert!(world.azure.document(&range(&world)).is_none());
    assert_eq!(world.azure.documents_of_type(POOLS).len(), 1);
    assert!(world.azure.document(&world.group("aks")).is_some());
}

/// CAPZ-198 for this generation: with the whole cluster the pool itself goes without a call, and what it declares beside itself
/// is inherited by the object that is deleted last. A manager that is killed in between loses nothing.
#[tokio::test(start_paused = true)]
async fn what_a_pool_declares_beside_itself_goes_with_the_cluster() {
    const INHERITED: &str = "sigs.k8s.io/cluster-api-provider-azure-inherited-raw-resources";
    for has_own_group in [true, false] {
        let mut world = running().await;
        with_prefix(&world).await;
        if !has_own_group {
            // The group belongs to others, so that it stays.
            let kept = super::annotated(
                group("aks"),
                "serviceoperator.azure.com/reconcile-policy",
                "detach-on-delete",
            );
            world.merge(CLUSTER, "aks", json!({ "spec": { "resources": [kept] } }));
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        }
        world.delete_cluster("aks");
        let begin = world.sequence();
        for name in ["aks-pool0", "aks-pool1"] {
            world.delete(POOL, name);
        }
        world.until("the pools are gone", |world| world.kubernetes.list(POOL).is_empty()).await;
        assert!(world.calls_after(begin).iter().all(|call| !call.starts_with("DELETE")));
        let heir = world.get(CLUSTER, "aks").unwrap();
        assert!(
            heir["metadata"]["annotations"][INHERITED].as_str().unwrap().contains("publicIPPrefixes/range")
        );
        tokio::time::sleep(std::time::Duration::from_secs(700)).await;
        assert!(world.azure.document(&range(&world)).is_some(), "the heir is not deleted yet");
        world.kill().await;
        world.start();
        world.delete(CONTROL_PLANE, "aks");
        world.until("the control plane is gone", |world| world.get(CONTROL_PLANE, "aks").is_none()).await;
        world.delete(CLUSTER, "aks");
        world.until("the cluster is gone", |world| world.get(CLUSTER, "aks").is_none()).await;
        assert!(world.azure.document(&range(&world)).is_none());
        assert_eq!(world.azure.document(&world.group("aks")).is_none(), has_own_group);
    }
}

/// Without another object of the cluster's the pool deletes what it declares beside itself.
#[tokio::test(start_paused = true)]
async fn a_pool_without_an_heir_deletes_what_is_left() {
    let world = running().await;
    with_prefix(&world).await;
    world.delete_cluster("aks");
    for kind in [CONTROL_PLANE, CLUSTER] {
        world.delete(kind, "aks");
        world.until("it is gone", |world| world.get(kind, "aks").is_none()).await;
    }
    assert!(world.azure.document(&range(&world)).is_some(), "the group has what is not the cluster's");
    for name in ["aks-pool0", "aks-pool1"] {
        world.delete(POOL, name);
    }
    world.until("the pools are gone", |world| world.kubernetes.list(POOL).is_empty()).await;
    assert!(world.azure.document(&range(&world)).is_none());
}

/// A member that Azure takes only at creation, and that a user changes later, is reported as long as it differs.
#[tokio::test(start_paused = true)]
async fn a_change_that_azure_does_not_take_is_reported() {
    let world = running().await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let begin = world.sequence();
    declare(&world, json!({ "vmSize": "Standard_D4s_v3" }));
    let condition = |world: &World| world.condition(POOL, "aks-pool1", "ResourcesReady").unwrap();
    let is_reported = |world: &World| condition(world) == ("False".to_owned(), "OnlyAtCreation".to_owned());
    world.until("the report", is_reported).await;
    let words = world.get(POOL, "aks-pool1").unwrap()["status"]["conditions"].to_string();
    assert!(words.contains("vmSize stays Standard_D2s_v3, and Standard_D4s_v3 is declared"), "{words}");
    tokio::time::sleep(std::time::Duration::from_secs(1300)).await;
    assert!(is_reported(&world) && world.is_ready(POOL, "aks-pool1"));
    assert_eq!(condition(&world), ("False".to_owned(), "OnlyAtCreation".to_owned()));
    assert_eq!(world.condition(POOL, "aks-pool0", "ResourcesReady").unwrap().0, "True");
    declare(&world, json!({}));
    world.until("the report is withdrawn", |world| condition(world).0 == "True").await;
    assert!(world.calls_after(begin).iter().all(|call| !call.starts_with("PUT")));
}
