//! The time that managed clusters take, apart from Azure's own time.

use std::time::Duration;

use azure_simulator::typical_latency;
use azure_types::ResourceId;
use serde_json::json;
use tokio::time::Instant;

use super::{POOL, ask, change, ready};
use crate::world::World;

/// Azure's own time for the writes of these resources after this request, one after the other: the longest successful
/// one of each.
fn chain(world: &World, after: u64, names: &[&str]) -> Duration {
    let journal = world.azure.journal_after(after);
    let of = |name: &&str| -> u64 {
        let written = journal.entries.iter().filter(|entry| {
            entry.method == "PUT" && entry.path.ends_with(&format!("/{name}")) && entry.status < 300
        });
        written.map(|entry| entry.answer_ms.unwrap_or(0) + entry.operation_ms.unwrap_or(0)).max().unwrap_or(0)
    };
    Duration::from_millis(names.iter().map(of).sum())
}

fn assert_near(took: Duration, critical: Duration) {
    assert!(critical > Duration::from_secs(30), "{critical:?}");
    assert!(took.as_secs_f64() <= critical.as_secs_f64() * 1.15, "{took:?} instead of {critical:?}");
}

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
        assert_near(took, chain(&world, 0, &names));

        tokio::time::sleep(Duration::from_secs(120)).await;
        let (sequence, begin) = (world.sequence(), Instant::now());
        change(&world, "MachinePool", "pool1", json!({ "replicas": 4 }));
        world.until("scaled", |world| world.get(POOL, "pool1").unwrap()["status"]["replicas"] == 4).await;
        assert_near(begin.elapsed(), chain(&world, sequence, &["agentPools/pool1"]));
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
        .map(|name| chain(&world, sequence, &[name]))
        .max()
        .unwrap();
    assert_near(begin.elapsed(), longest);
}
