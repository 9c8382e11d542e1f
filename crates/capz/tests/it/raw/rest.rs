//! Objects that fail are retried ever more rarely, and one bad object does not harm the others.

use std::time::Duration;

use serde_json::json;

use super::{
    CLUSTER, CONTROL_PLANE, POOL, agent_pool, cluster, credential, group, managed_cluster, pool, running,
    said,
};
use crate::world::World;

/// An hour of a cluster that Azure refuses: its objects do not wake each other for ever.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_azure_refuses_is_retried_ever_more_rarely() {
    let mut world = World::new();
    credential(&world);
    let refused = managed_cluster("aks", json!({ "location": "nowhere" }));
    cluster(&world, "aks", &[group("aks")], json!({ "version": "v1.33.2", "resources": [refused] }));
    pool(&world, "aks", "aks-pool0", agent_pool("aks", "aks-pool0", "pool0", json!({})));
    world.start();
    let failed = |world: &World| {
        world.condition(CONTROL_PLANE, "aks", "ResourcesReady") == Some(("False".into(), "Failed".into()))
    };
    world.until("the refusal", failed).await;
    let begin = world.sequence();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let calls = world.calls_after(begin);
    assert!(calls.len() < 100, "{} calls in an hour:\n{calls:#?}", calls.len());
    assert!(failed(&world));
    assert!(!world.is_ready(POOL, "aks-pool0") && !world.is_ready(CLUSTER, "aks"));
}

/// A member that Azure is not known to have is reported, and is not written for ever.
#[tokio::test(start_paused = true)]
async fn an_unknown_member_is_reported() {
    let world = running().await;
    let more = managed_cluster("aks", json!({ "networkProfle": { "networkPlugin": "none" } }));
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "resources": [more] } }));
    let reported = |world: &World| {
        said(world, CONTROL_PLANE, "aks")
            .iter()
            .any(|it| it.starts_with("UnknownMember") && it.contains("spec.networkProfle"))
    };
    world.until("the event", reported).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let begin = world.sequence();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let writes: Vec<String> =
        world.calls_after(begin).into_iter().filter(|it| it.starts_with("PUT")).collect();
    assert!(writes.len() <= 2, "{writes:#?}");
}

/// A pool that cannot be read does not harm a cluster that runs.
#[tokio::test(start_paused = true)]
async fn a_bad_pool_does_not_stop_its_cluster() {
    let world = running().await;
    let bad = agent_pool("aks", "aks-bad", "bad", json!({ "orchestratorVersion": "1.29.0" }));
    pool(&world, "aks", "aks-bad", bad);
    let words = |world: &World| said(world, POOL, "aks-bad").iter().any(|it| it.contains("incompatible"));
    world.until("the refusal of the pool", words).await;
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "version": "v1.34.0" } }));
    world
        .until("the upgrade", |world| {
            world.get(CONTROL_PLANE, "aks").unwrap()["status"]["version"] == "v1.34.0"
                && world.is_ready(CONTROL_PLANE, "aks")
        })
        .await;
    assert!(said(&world, CONTROL_PLANE, "aks").iter().all(|it| !it.contains("incompatible")));
    assert!(!world.is_ready(POOL, "aks-bad"));
}

/// While Azure upgrades the cluster, its pools stay ready.
#[tokio::test(start_paused = true)]
async fn pools_stay_ready_while_their_cluster_is_upgraded() {
    let world = running().await;
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "version": "v1.34.0" } }));
    for _ in 0..600 {
        assert!(world.is_ready(POOL, "aks-pool0") && world.is_ready(POOL, "aks-pool1"));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(world.get(CONTROL_PLANE, "aks").unwrap()["status"]["version"], "v1.34.0");
}
