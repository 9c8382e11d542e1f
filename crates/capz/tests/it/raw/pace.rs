//! The time that clusters of raw resources take, apart from Azure's own time.

use std::time::Duration;

use azure_simulator::typical_latency;
use serde_json::json;
use tokio::time::Instant;

use super::{CONTROL_PLANE, POOL, POOLS, agent_pool, begin_end, flavor, is_down, is_up, pool};
use crate::pace::{assert_near, chain};
use crate::world::World;

/// Whether all pools in Azure have this value of a member.
fn have(world: &World, member: &str, value: &str) -> bool {
    world.azure.documents_of_type(POOLS).iter().all(|pool| pool["properties"][member] == value)
}

async fn rest(world: &World) -> (u64, Instant) {
    tokio::time::sleep(Duration::from_secs(120)).await;
    (world.sequence(), Instant::now())
}

/// From nothing to ready with two pools; pools grow and come, all are upgraded, and all are deleted.
#[tokio::test(start_paused = true)]
async fn a_cluster_of_raw_resources_takes_little_more_than_azure() {
    let mut world = World::with(typical_latency(), 1);
    flavor(&world);
    world.start();
    let took = world.until("up", is_up).await;
    assert_near(took, chain(&world, 0, "PUT", &["resourceGroups/aks", "managedClusters/aks"]));

    let (sequence, begin) = rest(&world).await;
    world.merge("MachinePool", "aks-pool1", json!({ "spec": { "replicas": 4 } }));
    for name in ["pool2", "pool3"] {
        let object = format!("aks-{name}");
        pool(&world, "aks", &object, agent_pool("aks", &object, name, json!({ "mode": "User" })));
    }
    world
        .until("scaled", |world| {
            world.get(POOL, "aks-pool1").unwrap()["status"]["replicas"] == 4 && is_up(world)
        })
        .await;
    let pools = ["agentPools/pool1", "agentPools/pool2", "agentPools/pool3"];
    let longest = pools.into_iter().map(|pool| chain(&world, sequence, "PUT", &[pool])).max().unwrap();
    assert_near(begin.elapsed(), longest);

    let (sequence, begin) = rest(&world).await;
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "version": "v1.34.0" } }));
    for pool in ["aks-pool0", "aks-pool1", "aks-pool2", "aks-pool3"] {
        let spec = json!({ "template": { "spec": { "version": "v1.34.0" } } });
        world.merge("MachinePool", pool, json!({ "spec": spec }));
    }
    world
        .until("upgraded", |world| have(world, "currentOrchestratorVersion", "1.34.0") && is_up(world))
        .await;
    let of_pool = |pool: &str| chain(&world, sequence, "PUT", &["managedClusters/aks", pool]);
    let longest = ["agentPools/pool0"].into_iter().chain(pools).map(of_pool).max().unwrap();
    assert_near(begin.elapsed(), longest);

    let (sequence, begin) = rest(&world).await;
    begin_end(&world);
    world.until("the end", is_down).await;
    let names = ["managedClusters/aks", "resourceGroups/aks"];
    assert_near(begin.elapsed(), chain(&world, sequence, "DELETE", &names));
}
