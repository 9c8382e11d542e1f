//! Clusters that Azure manages, from objects as they are after admission to a cluster in Azure, and back.

use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

const CONTROL_PLANE: &str = "AzureManagedControlPlane";
const POOL: &str = "AzureManagedMachinePool";
const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";
const GROUP: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// An object that the core has given an owner.
fn owned(kind: &str, name: &str, cluster: &str, owner: &Value, spec: Value) -> Value {
    json!({
        "apiVersion": GROUP, "kind": kind,
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": { "cluster.x-k8s.io/cluster-name": cluster },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"] }],
        },
        "spec": spec,
    })
}

/// A managed cluster as it is after admission and the core's first reconcile, without pools.
pub fn cluster(world: &World, name: &str, spec: Value) {
    let reference =
        |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "clusterNetwork": { "services": { "cidrBlocks": ["192.168.0.0/16"] } },
            "controlPlaneRef": reference(CONTROL_PLANE), "infrastructureRef": reference("AzureManagedCluster"),
        },
    }));
    let mut whole = json!({
        "location": "eastus", "resourceGroupName": name, "version": "v1.33.2",
        "identityRef": { "kind": "AzureClusterIdentity", "name": "identity" },
    });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    world.admit(CONTROL_PLANE, owned(CONTROL_PLANE, name, name, cluster.value(), whole));
    let kind = "AzureManagedCluster";
    world.admit(kind, owned(kind, name, name, cluster.value(), json!({})));
}

/// A node pool with its MachinePool.
pub fn pool(world: &World, cluster: &str, name: &str, spec: Value) {
    let owner = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
        "spec": { "clusterName": cluster, "replicas": 2, "template": { "spec": {
            "clusterName": cluster, "version": "v1.33.2", "bootstrap": { "dataSecretName": "" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": POOL, "name": name } } } },
    }));
    let mut whole = json!({ "sku": "Standard_D2s_v3", "mode": "User" });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    world.admit(POOL, owned(POOL, name, cluster, owner.value(), whole));
}

/// A cluster with a System pool and a User pool, both ready.
pub async fn running() -> World {
    let mut world = World::new();
    cluster(&world, "aks", json!({}));
    pool(&world, "aks", "pool1", json!({}));
    pool(&world, "aks", "pool0", json!({ "mode": "System" }));
    world.start();
    ready(&world, "aks").await;
    world
}

async fn ready(world: &World, cluster: &str) {
    world
        .until("the cluster and its pools", |world| {
            let pools = world.kubernetes.list(POOL);
            world.is_ready(CONTROL_PLANE, cluster) && pools.iter().all(|pool| pool["status"]["ready"] == true)
        })
        .await;
}

/// CAPZ-181, CAPZ-183, CAPZ-186, CAPZ-196: from objects to a cluster with two pools.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_becomes_ready_with_its_pools() {
    let world = running().await;
    let control_plane = world.get(CONTROL_PLANE, "aks").unwrap();
    let host = control_plane["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap();
    assert!(host.contains(".hcp.eastus.azmk8s.io"), "{host}");
    assert_eq!(control_plane["spec"]["controlPlaneEndpoint"]["port"], 443);
    assert_eq!(control_plane["status"]["version"], "v1.33.2");
    world
        .until("the endpoint is copied", |world| {
            let infrastructure = world.get("AzureManagedCluster", "aks").unwrap();
            infrastructure["status"]["ready"] == true
                && infrastructure["spec"]["controlPlaneEndpoint"]
                    == control_plane["spec"]["controlPlaneEndpoint"]
        })
        .await;
    assert_eq!(world.azure.documents_of_type(CLUSTERS).len(), 1);
    assert_eq!(world.azure.documents_of_type(POOLS).len(), 2);
    for name in ["pool0", "pool1"] {
        let pool = world.get(POOL, name).unwrap();
        let ids = pool["spec"]["providerIDList"].as_array().unwrap();
        assert_eq!((ids.len(), &pool["status"]["replicas"]), (2, &json!(2)), "{pool}");
        assert!(ids[0].as_str().unwrap().contains("/resourceGroups/mc_aks_aks_eastus/"), "{ids:?}");
    }
    for (secret, member) in [("aks-kubeconfig", "value"), ("aks-ca", "tls.crt")] {
        assert!(world.secret(secret, member).is_some(), "{secret}");
        let labels = &world.get("Secret", secret).unwrap()["metadata"]["labels"];
        assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "aks");
    }
    assert_eq!(world.secret("aks-ca", "tls.key").unwrap(), "foo");
    assert_eq!(world.get("Secret", "aks-kubeconfig-user"), None);
    let info = world.kubernetes.get("ConfigMap", "kube-public", "cluster-info").unwrap();
    assert!(info["data"]["kubeconfig"].as_str().unwrap().contains(host));
}

/// At rest nothing is written, and few requests read.
#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let world = running().await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let begin = world.sequence();
    tokio::time::sleep(std::time::Duration::from_secs(1250)).await;
    let calls = world.calls_after(begin);
    let writes: Vec<&String> =
        calls.iter().filter(|call| !call.starts_with("GET") && !call.contains("listCluster")).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    println!("{calls:#?}");
}

/// CAPZ-198: the cluster is deleted once, its pools without calls of their own, and the group at last.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_is_deleted_with_its_group() {
    let world = running().await;
    world.delete_cluster("aks");
    let begin = world.sequence();
    for name in ["pool0", "pool1"] {
        world.delete(POOL, name);
    }
    world.until("the pools are gone", |world| world.kubernetes.list(POOL).is_empty()).await;
    assert!(world.calls_after(begin).iter().all(|call| !call.starts_with("DELETE")));
    world.delete(CONTROL_PLANE, "aks");
    world.until("the control plane is gone", |world| world.get(CONTROL_PLANE, "aks").is_none()).await;
    let deletions: Vec<String> =
        world.calls_after(begin).into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(deletions.len(), 2, "{deletions:#?}");
    assert!(deletions[0].contains("/managedClusters/aks") && deletions[1].ends_with("/resourceGroups/aks"));
    assert!(world.azure.documents_of_type(CLUSTERS).is_empty());
}
