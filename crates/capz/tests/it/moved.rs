//! `clusterctl move`: the objects of a cluster are created again in another management cluster, with everything but
//! their status, and with new UIDs. Nothing in Azure is created or written because of it (C10).

use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};

use crate::pool_world::{Core, INSTANCE, POOL, ask};
use crate::world::{NAMESPACE, World};

/// The kinds that are moved, each after those that own it.
const KINDS: [&str; 8] =
    ["Cluster", "AzureCluster", "MachinePool", POOL, "Machine", "AzureMachine", INSTANCE, "Secret"];
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";

/// Pauses the cluster and waits until none of its objects blocks a move; the manager of the first management cluster
/// then ends.
async fn let_go(world: &mut World) {
    world.merge("Cluster", "my-cluster", json!({ "spec": { "paused": true } }));
    let blocked = |world: &World| {
        let mut objects = KINDS.iter().flat_map(|kind| world.kubernetes.list(kind));
        objects.any(|object| !object["metadata"]["annotations"][BLOCK_MOVE].is_null())
    };
    world.until("nothing blocks the move", |world| !blocked(world)).await;
    world.kill().await;
}

/// Another management cluster with the same Azure, with the objects as clusterctl creates them: paused, owned, without
/// status.
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
            assert!(made["status"].is_null(), "{kind} has a status");
            uids.insert(old["uid"].as_str().unwrap().to_owned(), made["metadata"]["uid"].clone());
        }
    }
    other
}

/// A cluster with a machine of its own and a pool of two.
fn ask_for_all(world: &World) {
    ask(world, 2, json!({}));
    world.machine("my-cluster", "worker", json!({}), json!({}));
}

fn all_ready(world: &World) -> bool {
    world.is_ready("AzureCluster", "my-cluster")
        && world.is_ready("AzureMachine", "worker")
        && world.is_ready(POOL, "my-pool")
}

/// [`Core`] does not play the Machine of the single machine.
fn is_at_rest(world: &World) -> bool {
    let instances = world.kubernetes.list(INSTANCE);
    all_ready(world)
        && instances.len() == 2
        && instances
            .iter()
            .all(|it| it["status"]["ready"] == true && it["status"]["latestModelApplied"] == true)
        && world.get(POOL, "my-pool").unwrap()["status"]["replicas"] == 2
}

#[tokio::test(start_paused = true)]
async fn what_is_moved_at_rest_is_ready_again_without_a_write() {
    let (mut world, core) = (World::new(), Core::new(1, 0));
    ask_for_all(&world);
    world.start();
    let look = |core: &std::cell::RefCell<Core>, world: &World| core.borrow_mut().look(world);
    world
        .until("at rest", |world| {
            look(&core, world);
            is_at_rest(world)
        })
        .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let_go(&mut world).await;
    let (before, sequence) = (world.azure.documents(), world.sequence());
    let specs = |world: &World| -> Vec<Value> {
        let kinds = ["AzureCluster", "AzureMachine", POOL, INSTANCE];
        kinds.iter().flat_map(|kind| world.kubernetes.list(kind)).map(|it| it["spec"].clone()).collect()
    };
    let declared = specs(&world);

    let mut other = moved_from(&world);
    other.start();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(other.requests_after(sequence), (0, 0), "it is paused until clusterctl is done");
    other.merge("Cluster", "my-cluster", json!({ "spec": { "paused": false } }));
    let core = Core::new(2, 0);
    let waited = other
        .until("at rest again", |world| {
            look(&core, world);
            is_at_rest(world)
        })
        .await;
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    // Longer than a sync period.
    for _ in 0..1300 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        look(&core, &other);
    }
    assert!(is_at_rest(&other));
    let entries = other.azure.journal_after(sequence).entries;
    let writes: Vec<_> = entries.iter().filter(|entry| entry.method != "GET").collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(other.azure.documents(), before);
    assert_eq!(specs(&other), declared);
    for (kind, name) in [("AzureCluster", "my-cluster"), ("AzureMachine", "worker"), (POOL, "my-pool")] {
        assert!(!other.get(kind, name).unwrap()["metadata"]["annotations"][BLOCK_MOVE].is_null(), "{kind}");
    }
}

/// An operation in Azure continues unobserved; its URL was in the status.
#[tokio::test(start_paused = true)]
async fn what_is_moved_while_azure_works_is_made_once() {
    let (mut world, core) = (World::new(), Core::new(1, 0));
    let slow = Duration::from_secs(240);
    let latency = LatencyProfile::instant().with("CREATE", MACHINES, slow).with("CREATE", SCALE_SETS, slow);
    world.azure.set_latency(latency);
    ask_for_all(&world);
    world.start();
    let look = |core: &std::cell::RefCell<Core>, world: &World| core.borrow_mut().look(world);
    let works = |world: &World, kind: &str, name: &str| {
        !world.get(kind, name).unwrap()["status"]["longRunningOperationStates"].is_null()
    };
    world
        .until("Azure works on both", |world| {
            look(&core, world);
            works(world, "AzureMachine", "worker") && works(world, POOL, "my-pool")
        })
        .await;
    let_go(&mut world).await;
    assert!(works(&world, "AzureMachine", "worker") && works(&world, POOL, "my-pool"));

    let mut other = moved_from(&world);
    other.start();
    other.merge("Cluster", "my-cluster", json!({ "spec": { "paused": false } }));
    let core = Core::new(2, 0);
    other
        .until("at rest", |world| {
            look(&core, world);
            is_at_rest(world)
        })
        .await;
    for kind in [MACHINES, SCALE_SETS] {
        let asked = other.azure.journal().entries.into_iter();
        let puts = asked.filter(|it| it.method == "PUT" && it.resource_type.as_deref() == Some(kind));
        assert_eq!(puts.count(), 1, "{kind}");
    }
    let owned = other.get("AzureMachine", "worker").unwrap();
    assert_eq!(owned["metadata"]["namespace"], NAMESPACE);
}
