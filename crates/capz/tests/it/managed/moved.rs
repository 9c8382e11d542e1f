//! `clusterctl move` of managed clusters, pausing, and managers that share a management cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};

use super::{
    CLUSTERS, CONTROL_PLANE, INFRASTRUCTURE, LONG, POOL, POOLS, ask, change, cluster, end, in_azure, is_up,
    pool, ready, running,
};
use crate::world::{NAMESPACE, World};

/// The kinds that are moved, each after those that own it.
const KINDS: [&str; 6] = ["Cluster", INFRASTRUCTURE, CONTROL_PLANE, "MachinePool", POOL, "Secret"];
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";

fn is_blocked(world: &World) -> bool {
    let mut objects = KINDS.iter().flat_map(|kind| world.kubernetes.list(kind));
    objects.any(|object| !object["metadata"]["annotations"][BLOCK_MOVE].is_null())
}

/// Pauses the cluster and waits until none of its objects blocks a move; the manager then ends.
async fn let_go(world: &mut World) {
    world.merge("Cluster", "aks", json!({ "spec": { "paused": true } }));
    world.until("nothing blocks the move", |world| !is_blocked(world)).await;
    world.kill().await;
}

/// Another management cluster with the same Azure, with the objects as clusterctl creates them.
fn moved_from(world: &World) -> World {
    let mut other = World::with(LatencyProfile::instant(), 2);
    other.azure = world.azure.clone();
    let mut uids: BTreeMap<String, Value> = BTreeMap::new();
    for kind in KINDS {
        for object in world.kubernetes.list(kind) {
            let mut object = object.value().clone();
            let old = object["metadata"].clone();
            object.as_object_mut().unwrap().remove("status");
            let kept = ["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"];
            object["metadata"].as_object_mut().unwrap().retain(|member, _| kept.contains(&member.as_str()));
            for owner in object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
                owner["uid"] = uids[owner["uid"].as_str().unwrap()].clone();
            }
            let made = other.create(object);
            uids.insert(old["uid"].as_str().unwrap().to_owned(), made["metadata"]["uid"].clone());
        }
    }
    other
}

/// While it is reconciled a cluster blocks a move. Moved at rest, it is ready again without a write, with the same
/// machines; and it can be changed and deleted where it is now.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_moves_without_a_write() {
    let mut world = running().await;
    for (kind, name) in [(CONTROL_PLANE, "aks"), (POOL, "pool0"), (POOL, "pool1")] {
        assert_eq!(
            world.get(kind, name).unwrap()["metadata"]["annotations"][BLOCK_MOVE],
            "true",
            "{kind} {name}"
        );
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let_go(&mut world).await;
    let specs = |world: &World| -> Vec<Value> {
        let kinds = [INFRASTRUCTURE, CONTROL_PLANE, POOL];
        kinds.iter().flat_map(|kind| world.kubernetes.list(kind)).map(|it| it["spec"].clone()).collect()
    };
    let (before, sequence, declared) = (world.azure.documents(), world.sequence(), specs(&world));

    let mut other = moved_from(&world);
    other.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(other.requests_after(sequence), (0, 0), "a paused cluster is left alone");
    other.merge("Cluster", "aks", json!({ "spec": { "paused": false } }));
    let took = ready(&other, "aks").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
    other.until("the infrastructure", |world| world.is_ready(INFRASTRUCTURE, "aks")).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(other.azure.documents(), before);
    let writes = other.calls_after(sequence);
    let writes = writes.iter().filter(|call| !call.starts_with("GET") && !call.contains("listCluster"));
    assert_eq!(writes.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(specs(&other), declared);
    change(&other, "MachinePool", "pool1", json!({ "replicas": 3 }));
    other.until("scaled", |world| in_azure(world, "aks", "pool1")["count"] == 3).await;
    end(&other, NAMESPACE, "aks").await;
    assert_eq!(other.azure.documents(), Vec::<Value>::new());
}

/// Moved while Azure creates it: it is created once, and its pools come where it is now.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_moves_while_it_is_created() {
    let slow = LatencyProfile::instant().with("CREATE", CLUSTERS, Duration::from_secs(300));
    let mut world = World::with(slow, 1);
    ask(&world, json!({}));
    world.start();
    world.until("begun", |world| !world.azure.documents_of_type(CLUSTERS).is_empty()).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let_go(&mut world).await;
    let mut other = moved_from(&world);
    other.start();
    other.merge("Cluster", "aks", json!({ "spec": { "paused": false } }));
    ready(&other, "aks").await;
    let asked = other.azure.journal().entries.into_iter();
    let puts = asked.filter(|it| it.method == "PUT" && it.resource_type.as_deref() == Some(CLUSTERS));
    assert_eq!(puts.count(), 1);
    assert_eq!(other.azure.documents_of_type(POOLS).len(), 2);
}

/// What is changed while a cluster is paused is done once it goes on.
#[tokio::test(start_paused = true)]
async fn a_paused_cluster_is_left_alone() {
    let world = running().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.merge("Cluster", "aks", json!({ "spec": { "paused": true } }));
    world.until("let go", |world| !is_blocked(world)).await;
    let sequence = world.sequence();
    change(&world, "MachinePool", "pool1", json!({ "replicas": 3 }));
    change(&world, CONTROL_PLANE, "aks", json!({ "additionalTags": { "a": "b" } }));
    tokio::time::sleep(LONG).await;
    assert_eq!(world.requests_after(sequence), (0, 0));
    world.merge("Cluster", "aks", json!({ "spec": { "paused": false } }));
    world
        .until("done", |world| {
            in_azure(world, "aks", "pool1")["count"] == 3
                && world.azure.document(&super::aks(world, "aks")).unwrap()["tags"]["a"] == "b"
        })
        .await;
}

/// A manager with a filter leaves managed clusters alone that do not bear its label.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_without_the_label_is_not_touched() {
    let mut world = World::new();
    world.settings.watch_filter = Some("ours".to_owned());
    for name in ["mine", "theirs"] {
        cluster(&world, name, json!({}));
        pool(&world, name, &format!("{name}0"), json!({ "mode": "System" }));
    }
    let label = |world: &World, cluster: &str| {
        let label = json!({ "metadata": { "labels": { "cluster.x-k8s.io/watch-filter": "ours" } } });
        for (kind, name) in [
            (INFRASTRUCTURE, cluster.to_owned()),
            (CONTROL_PLANE, cluster.to_owned()),
            (POOL, format!("{cluster}0")),
        ] {
            world.merge(kind, &name, label.clone());
        }
    };
    label(&world, "mine");
    let others = |world: &World| -> Vec<Value> {
        [(INFRASTRUCTURE, "theirs"), (CONTROL_PLANE, "theirs"), (POOL, "theirs0"), ("MachinePool", "theirs0")]
            .iter()
            .map(|(kind, name)| world.get(kind, name).unwrap())
            .collect()
    };
    let before = others(&world);
    world.start();
    world.until("mine", |world| is_up(world, NAMESPACE, "mine")).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(others(&world), before);
    assert!(world.calls_after(0).iter().all(|call| !call.contains("theirs")));
    label(&world, "theirs");
    world.until("ours now", |world| is_up(world, NAMESPACE, "theirs")).await;
}
