//! The time that managed clusters take, apart from Azure's own time.

use std::time::Duration;

use azure_simulator::typical_latency;
use azure_types::ResourceId;
use serde_json::json;
use tokio::time::Instant;

use super::{CONTROL_PLANE, POOL, ask, begin_end, change, in_azure, is_down, is_up, ready, upgrade_pool};
use crate::pace::{assert_near, chain};
use crate::world::{NAMESPACE, World};

/// From nothing to ready with two pools, by its own network and by one that exists already; then a pool grows.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_takes_little_more_than_azure() {
    for has_network in [false, true] {
        let mut world = World::with(typical_latency(), 1);
        if has_network {
            let group = world.group("aks");
            world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
            let network: ResourceId = group.resource("Microsoft.Network", "virtualNetworks", "aks");
            let subnets = json!([{ "name": "aks", "properties": { "addressPrefix": "10.240.0.0/16" } }]);
            let properties =
                json!({ "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] }, "subnets": subnets });
            world.azure.put(&network, json!({ "location": "eastus", "properties": properties })).unwrap();
        }
        ask(&world, json!({}));
        world.start();
        let took = ready(&world, "aks").await;
        let names = ["resourceGroups/aks", "virtualNetworks/aks", "subnets/aks", "managedClusters/aks"];
        assert_near(took, chain(&world, 0, "PUT", &names));

        tokio::time::sleep(Duration::from_secs(120)).await;
        let (sequence, begin) = (world.sequence(), Instant::now());
        change(&world, "MachinePool", "pool1", json!({ "replicas": 4 }));
        world.until("scaled", |world| world.get(POOL, "pool1").unwrap()["status"]["replicas"] == 4).await;
        assert_near(begin.elapsed(), chain(&world, sequence, "PUT", &["agentPools/pool1"]));
    }
}

/// Pools that are added to a running cluster at the same time: Azure makes them in parallel.
#[tokio::test(start_paused = true)]
async fn pools_that_are_added_together_come_together() {
    let mut world = World::with(typical_latency(), 1);
    ask(&world, json!({}));
    world.start();
    ready(&world, "aks").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (sequence, begin) = (world.sequence(), Instant::now());
    for name in ["pool2", "pool3", "pool4"] {
        super::pool(&world, "aks", name, json!({}));
    }
    ready(&world, "aks").await;
    let longest = ["agentPools/pool2", "agentPools/pool3", "agentPools/pool4"]
        .into_iter()
        .map(|name| chain(&world, sequence, "PUT", &[name]))
        .max()
        .unwrap();
    assert_near(begin.elapsed(), longest);
}

/// An upgrade of the control plane and of its pools, and then the deletion of all.
#[tokio::test(start_paused = true)]
async fn an_upgrade_and_a_deletion_take_little_more_than_azure() {
    let mut world = World::with(typical_latency(), 1);
    ask(&world, json!({}));
    world.start();
    ready(&world, "aks").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let (sequence, begin) = (world.sequence(), Instant::now());
    change(&world, CONTROL_PLANE, "aks", json!({ "version": "v1.34.1" }));
    for pool in ["pool0", "pool1"] {
        upgrade_pool(&world, pool, "v1.34.1");
    }
    let upgraded = |world: &World| {
        let has = |pool: &&str| in_azure(world, "aks", pool)["currentOrchestratorVersion"] == "1.34.1";
        ["pool0", "pool1"].iter().all(has) && is_up(world, NAMESPACE, "aks")
    };
    world.until("upgraded", upgraded).await;
    let of_pool = |pool: &str| chain(&world, sequence, "PUT", &["managedClusters/aks", pool]);
    assert_near(begin.elapsed(), of_pool("agentPools/pool0").max(of_pool("agentPools/pool1")));

    tokio::time::sleep(Duration::from_secs(120)).await;
    let (sequence, begin) = (world.sequence(), Instant::now());
    begin_end(&world, NAMESPACE, "aks");
    world.until("the end", |world| is_down(world, NAMESPACE, "aks")).await;
    let names = ["managedClusters/aks", "resourceGroups/aks"];
    assert_near(begin.elapsed(), chain(&world, sequence, "DELETE", &names));
}
