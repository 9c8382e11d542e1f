//! A managed cluster comes, rests, and goes.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::recorded::{record, writes};
use super::{
    CLUSTERS, CONTROL_PLANE, INFRASTRUCTURE, LONG, POOL, POOLS, ask, begin_end, change, cluster, end,
    is_down, message, pool, ready, running, upgrade_pool,
};
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

/// CAPZ-181, CAPZ-183, CAPZ-186, CAPZ-196: from objects to a cluster with two pools.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_becomes_ready_with_its_pools() {
    let world = running().await;
    let control_plane = world.get(CONTROL_PLANE, "aks").unwrap();
    let host = control_plane["spec"]["controlPlaneEndpoint"]["host"].as_str().unwrap();
    assert!(host.contains(".hcp.eastus.azmk8s.io"), "{host}");
    assert_eq!(control_plane["spec"]["controlPlaneEndpoint"]["port"], 443);
    assert_eq!(control_plane["status"]["version"], "v1.33.2");
    assert_eq!(world.condition(CONTROL_PLANE, "aks", "Ready"), Some(("True".to_owned(), String::new())));
    world
        .until("the endpoint is copied", |world| {
            let infrastructure = world.get(INFRASTRUCTURE, "aks").unwrap();
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
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str().unwrap()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.contains("/resourceGroups/mc_aks_aks_eastus/")));
        assert_eq!(pool["spec"]["subnetName"], "aks");
    }
    for (secret, member) in [("aks-kubeconfig", "value"), ("aks-ca", "tls.crt")] {
        assert!(world.secret(secret, member).is_some(), "{secret}");
        let metadata = world.get("Secret", secret).unwrap()["metadata"].clone();
        assert_eq!(metadata["labels"]["cluster.x-k8s.io/cluster-name"], "aks");
        let owner = &metadata["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["controller"]), (&json!(CONTROL_PLANE), &json!(true)), "{secret}");
    }
    assert_eq!(world.secret("aks-ca", "tls.key").unwrap(), "foo");
    assert_eq!(world.get("Secret", "aks-kubeconfig-user"), None);
    assert_eq!(world.get("ConfigMap", "aks-aso-oidc-issuer-profile"), None);
    let info = world.kubernetes.get("ConfigMap", "kube-public", "cluster-info").unwrap();
    assert!(info["data"]["kubeconfig"].as_str().unwrap().contains(host));
}

/// CAPZ-181: the infrastructure is ready at once, before there is an endpoint.
#[tokio::test(start_paused = true)]
async fn the_infrastructure_of_a_managed_cluster_is_ready_at_once() {
    let mut world = World::with(azure_simulator::typical_latency(), 1);
    ask(&world, json!({}));
    world.start();
    let took = world.until("the infrastructure", |world| world.is_ready(INFRASTRUCTURE, "aks")).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(world.get(CONTROL_PLANE, "aks").unwrap()["spec"]["controlPlaneEndpoint"]["host"].is_null());
    ready(&world, "aks").await;
    let host = |kind: &str| world.get(kind, "aks").unwrap()["spec"]["controlPlaneEndpoint"]["host"].clone();
    assert!(host(CONTROL_PLANE).is_string());
    world
        .until("the endpoint is copied", |world| {
            world.get(INFRASTRUCTURE, "aks").unwrap()["spec"]["controlPlaneEndpoint"]["host"].is_string()
        })
        .await;
}

/// CAPZ-182: without a System pool, or with a pool that is newer than the control plane, nothing is created, and the
/// control plane says what is missing; with it the cluster comes without further ado.
#[tokio::test(start_paused = true)]
async fn pools_with_which_no_cluster_can_be_created_are_named() {
    let mut world = World::new();
    cluster(&world, "aks", json!({}));
    pool(&world, "aks", "pool1", json!({}));
    world.start();
    let says = |world: &World, words: &str| {
        message(world, CONTROL_PLANE, NAMESPACE, "aks", "ManagedClusterRunning").contains(words)
    };
    world.until("no System pool", |world| says(world, "require at least 1 system node pool")).await;
    assert!(world.azure.documents_of_type(CLUSTERS).is_empty());
    upgrade_pool(&world, "pool1", "v1.34.1");
    pool(&world, "aks", "pool0", json!({ "mode": "System" }));
    world.until("a newer pool", |world| says(world, "higher than that of the control plane")).await;
    assert!(world.azure.documents_of_type(CLUSTERS).is_empty());
    upgrade_pool(&world, "pool1", "v1.33.2");
    let took = ready(&world, "aks").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
}

/// CAPZ-183: the cluster is created with its pools, sorted by name; once Azure reports pools, a write of the cluster
/// leaves them out.
#[tokio::test(start_paused = true)]
async fn pools_are_part_of_the_first_write_alone() {
    let mut world = World::new();
    let sent = record(&mut world);
    ask(&world, json!({}));
    world.start();
    ready(&world, "aks").await;
    change(&world, CONTROL_PLANE, "aks", json!({ "additionalTags": { "team": "a" } }));
    world.until("a second write", |_| writes(&sent, "/managedClusters/aks").len() == 2).await;
    let writes = writes(&sent, "/managedClusters/aks");
    let names = |index: usize| -> Vec<Value> {
        let profiles = writes[index].body["properties"]["agentPoolProfiles"].as_array().cloned();
        profiles.unwrap_or_default().iter().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names(0), ["pool0", "pool1"]);
    assert!(writes[1].body["properties"].get("agentPoolProfiles").is_none(), "{}", writes[1].body);
    assert!(super::recorded::writes(&sent, "/agentPools/pool0").is_empty());
}

/// At rest nothing is written, and a loop of one object reads four times at most. The kubeconfig is asked for by a
/// POST, which reads.
#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let world = running().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let begin = world.sequence();
    let objects = |world: &World| -> Vec<Value> {
        let kinds = [CONTROL_PLANE, INFRASTRUCTURE, POOL, "MachinePool", "Secret", "ConfigMap"];
        kinds.iter().flat_map(|kind| world.kubernetes.list(kind)).map(|it| it["metadata"].clone()).collect()
    };
    let before = objects(&world);
    tokio::time::sleep(LONG).await;
    let calls = world.calls_after(begin);
    let writes: Vec<&String> =
        calls.iter().filter(|call| !call.starts_with("GET") && !call.contains("listCluster")).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(objects(&world), before);
    // Each of the three objects has two loops. Some reads serve several of them.
    let loops = calls.iter().filter(|call| call.contains("listCluster")).count();
    let of_pools = calls.iter().filter(|call| call.ends_with("/virtualMachines")).count();
    assert_eq!((loops, of_pools), (2, 4), "{calls:#?}");
    let reads = calls.iter().filter(|call| call.starts_with("GET")).count();
    assert!(reads <= 4 * (loops + of_pools), "{calls:#?}");
    let of_one = |resource: &str| calls.iter().filter(|call| call.contains(resource)).count();
    assert!(of_one("virtualMachineScaleSets/aks-pool0") == 2, "{calls:#?}");
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
    let calls = world.calls_after(begin);
    assert!(
        calls.iter().all(|call| !call.contains("agentPools") && !call.starts_with("DELETE")),
        "{calls:#?}"
    );
    world.delete(CONTROL_PLANE, "aks");
    world.until("the control plane is gone", |world| world.get(CONTROL_PLANE, "aks").is_none()).await;
    let deletions: Vec<String> =
        world.calls_after(begin).into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(deletions.len(), 2, "{deletions:#?}");
    assert!(deletions[0].contains("/managedClusters/aks") && deletions[1].ends_with("/resourceGroups/aks"));
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
}

/// CAPZ-199: a network in a group of its own that exists already is used and never written: the pools have its subnet.
#[tokio::test(start_paused = true)]
async fn a_foreign_network_is_used_and_stays() {
    let mut world = World::new();
    let group = ResourceId::group(SUBSCRIPTION, "test-rg");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let network = group.resource("Microsoft.Network", "virtualNetworks", "test-vnet");
    let subnets = json!([{ "name": "nodes", "properties": { "addressPrefix": "10.9.0.0/16" } }]);
    let properties = json!({ "addressSpace": { "addressPrefixes": ["10.9.0.0/16"] }, "subnets": subnets });
    world.azure.put(&network, json!({ "location": "eastus", "properties": properties })).unwrap();
    let before = world.azure.documents();
    let sent = record(&mut world);
    let vnet = json!({ "name": "test-vnet", "resourceGroup": "test-rg", "cidrBlock": "10.0.0.0/8",
        "subnet": { "name": "nodes", "cidrBlock": "10.240.0.0/16" } });
    ask(&world, json!({ "virtualNetwork": vnet }));
    world.start();
    ready(&world, "aks").await;
    let reads = world.calls_after(0);
    assert!(reads.iter().any(|call| call == "GET /resourceGroups/test-rg"), "{reads:#?}");
    let subnet = network.child("subnets", "nodes");
    for pool in ["pool0", "pool1"] {
        let held = super::in_azure(&world, "aks", pool)["vnetSubnetID"].as_str().unwrap().to_lowercase();
        assert_eq!(held, subnet.as_str().to_lowercase());
    }
    let of_network = |path: &str| path.to_lowercase().contains("/resourcegroups/test-rg");
    let writes: Vec<String> = sent
        .lock()
        .iter()
        .filter(|it| it.method != "GET" && of_network(&it.path))
        .map(|it| format!("{} {}", it.method, it.path))
        .collect();
    assert_eq!(writes, [""; 0]);
    end(&world, NAMESPACE, "aks").await;
    assert_eq!(super::ids(&world), crate::cluster_change::ids(&before));
}

/// A cluster that is deleted before its creation is over leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_deleted_while_it_comes_leaves_nothing() {
    let mut world = World::with(azure_simulator::typical_latency(), 1);
    ask(&world, json!({}));
    world.start();
    world.until("begun", |world| !world.azure.documents_of_type(CLUSTERS).is_empty()).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    begin_end(&world, NAMESPACE, "aks");
    world.until("the end", |world| is_down(world, NAMESPACE, "aks")).await;
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
}
