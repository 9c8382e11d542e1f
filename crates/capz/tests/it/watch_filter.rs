//! Several managers in one management cluster: each reconciles the objects of its `--namespace` and `--watch-filter`,
//! and no others.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};

use crate::pool_world::{Core, INSTANCE, POOL, ask, change, is_settled, version};
use crate::world::{NAMESPACE, World};

const LABEL: &str = "cluster.x-k8s.io/watch-filter";

fn label(value: &str) -> Value {
    json!({ "metadata": { "labels": { (LABEL): value } } })
}

fn is_ready(world: &World, name: &str) -> bool {
    world.get("AzureCluster", name).is_some_and(|it| it["status"]["ready"] == true)
}

/// The requests to Azure that name this cluster.
fn spoken_of(world: &World, name: &str) -> Vec<String> {
    let journal = world.azure.journal();
    let paths = journal.entries.iter().map(|entry| format!("{} {}", entry.method, entry.path));
    paths.filter(|path| path.contains(name)).collect()
}

/// A manager of one namespace leaves a cluster in another one alone.
#[tokio::test(start_paused = true)]
async fn a_cluster_in_another_namespace_is_not_touched() {
    let mut world = World::new();
    world.settings.namespace = Some(NAMESPACE.to_owned());
    world.cluster("mine", json!({}));
    world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "elsewhere" } }));
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "theirs", "namespace": "elsewhere" },
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "theirs" } },
    }));
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
        "metadata": { "name": "theirs", "namespace": "elsewhere", "labels": { "cluster.x-k8s.io/cluster-name": "theirs" },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "theirs",
                "uid": cluster["metadata"]["uid"] }] },
        "spec": { "location": "eastus",
            "identityRef": { "kind": "AzureClusterIdentity", "name": "identity", "namespace": NAMESPACE } },
    });
    world.admit("AzureCluster", object);
    let theirs = |world: &World| world.kubernetes.get("AzureCluster", "elsewhere", "theirs").unwrap();
    let before = theirs(&world);
    world.start();
    world.until("mine is ready", |world| is_ready(world, "mine")).await;
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(theirs(&world).value(), before.value());
    assert_eq!(spoken_of(&world, "theirs"), [""; 0]);

    // There is no other reason to leave it alone.
    world.kill().await;
    world.settings.namespace = None;
    world.start();
    world.until("theirs is ready", |world| theirs(world)["status"]["ready"] == true).await;
}

/// A manager with a filter leaves clusters alone that do not bear its label, or bear another manager's; it begins with
/// one that gets the label.
#[tokio::test(start_paused = true)]
async fn a_cluster_without_the_label_is_not_touched() {
    let mut world = World::new();
    world.settings.watch_filter = Some("ours".to_owned());
    for name in ["mine", "plain", "theirs"] {
        world.cluster(name, json!({}));
    }
    world.template("plain", "md-0", json!({}));
    world.machine("plain", "worker", json!({}), json!({}));
    world.merge("AzureCluster", "mine", label("ours"));
    world.merge("AzureCluster", "theirs", label("somebody-else"));
    let others = |world: &World| -> Vec<Value> {
        let clusters = ["plain", "theirs"].map(|name| world.get("AzureCluster", name).unwrap());
        let machine = world.get("AzureMachine", "worker").unwrap();
        [&clusters[..], &[machine, world.get("AzureMachineTemplate", "md-0").unwrap()]].concat()
    };
    let before = others(&world);
    world.start();
    world.until("mine is ready", |world| is_ready(world, "mine")).await;
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(others(&world), before);
    for name in ["plain", "theirs"] {
        assert_eq!(spoken_of(&world, name), [""; 0]);
    }
    assert!(world.get("Secret", "md-0-azure-json").is_none());

    world.merge("AzureCluster", "theirs", label("ours"));
    world.until("it is ours now", |world| is_ready(world, "theirs")).await;
    assert!(!is_ready(&world, "plain"));
}

/// Objects of another manager are cached all the same: no resource is deleted while its machines use it.
#[tokio::test(start_paused = true)]
async fn machines_of_another_manager_hold_their_cluster() {
    let mut world = World::new();
    world.settings.watch_filter = Some("ours".to_owned());
    world.cluster("mine", json!({}));
    world.merge("AzureCluster", "mine", label("ours"));
    world.start();
    world.until("ready", |world| is_ready(world, "mine")).await;
    world.machine("mine", "theirs", json!({}), json!({}));
    let all = world.azure.documents().len();
    world.delete("AzureCluster", "mine");
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(world.azure.documents().len(), all);
    world.delete("AzureMachine", "theirs");
    world.until("gone", |world| world.get("AzureCluster", "mine").is_none()).await;
}

/// Machines of a pool bear no label of their own: the manager of the pool knows and reconciles them, after a restart,
/// too. So the pool shrinks, changes, and is deleted with all of them.
#[tokio::test(start_paused = true)]
async fn a_pool_knows_its_machines_after_a_restart() {
    let mut world = World::new();
    let core: RefCell<Core> = Core::new(1, 0);
    world.settings.watch_filter = Some("ours".to_owned());
    ask(&world, 3, json!({}));
    world.merge("AzureCluster", "my-cluster", label("ours"));
    world.merge(POOL, "my-pool", label("ours"));
    let names = |world: &World| -> std::collections::BTreeSet<String> {
        let objects = world.kubernetes.list(INSTANCE);
        objects.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let settles = async |world: &World, replicas: usize| {
        world
            .until(&format!("{replicas} machines"), |world| {
                core.borrow_mut().look(world);
                is_settled(world, replicas)
            })
            .await;
    };
    world.start();
    settles(&world, 3).await;
    world.kill().await;
    world.start();
    change(&world, json!({ "replicas": 2 }));
    settles(&world, 2).await;
    let before = names(&world);
    world.kill().await;
    world.start();
    change(&world, version("v1.34.0"));
    world
        .until("all are new", |world| {
            core.borrow_mut().look(world);
            is_settled(world, 2) && names(world).is_disjoint(&before)
        })
        .await;
    world.kill().await;
    // Another manager sees all of it, and touches nothing.
    world.settings.watch_filter = Some("somebody-else".to_owned());
    world.start();
    let sequence = world.sequence();
    world.delete(POOL, "my-pool");
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(world.requests_after(sequence), (0, 0));
    assert_eq!(names(&world).len(), 2);
    world.kill().await;
    world.settings.watch_filter = Some("ours".to_owned());
    world.start();
    world
        .until("all of it is gone", |world| {
            core.borrow_mut().look(world);
            world.get(POOL, "my-pool").is_none()
                && names(world).is_empty()
                && world.kubernetes.list("Machine").is_empty()
        })
        .await;
    assert_eq!(world.azure.documents_of_type(crate::pool_world::INSTANCES), Vec::<Value>::new());
}
