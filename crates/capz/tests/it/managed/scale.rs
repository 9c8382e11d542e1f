//! Node pools that grow and shrink, by users and by Azure's autoscaler, and that are deleted.

use std::time::Duration;

use serde_json::{Value, json};

use super::recorded::{record, writes};
use super::{CONTROL_PLANE, LONG, POOL, POOLS, aks, ask, change, in_azure, message, pool, ready, running};
use crate::world::{NAMESPACE, World};

const EXTERNAL: &str = "cluster.x-k8s.io/replicas-managed-by";

fn replicas(world: &World, count: u64) {
    change(world, "MachinePool", "pool1", json!({ "replicas": count }));
}

/// Whether an object shows this number of machines, and Azure has them.
fn has(world: &World, pool: &str, count: usize) -> bool {
    let object = world.get(POOL, pool).unwrap();
    object["spec"]["providerIDList"].as_array().map_or(0, Vec::len) == count
        && object["status"]["replicas"] == count
        && in_azure(world, "aks", pool)["count"] == count
}

/// The annotation of a MachinePool that others scale, and its replicas.
fn shown(world: &World) -> (Value, Value) {
    let pool = world.get("MachinePool", "pool1").unwrap();
    (pool["metadata"]["annotations"][EXTERNAL].clone(), pool["spec"]["replicas"].clone())
}

/// Azure's autoscaler wants this number of machines.
fn autoscale(world: &World, count: u64) {
    let id = aks(world, "aks").child("agentPools", "pool1");
    let bounds = in_azure(world, "aks", "pool1")["minCount"].clone();
    for least in [json!(count), bounds] {
        world.azure.edit(&id, |pool| pool["properties"]["minCount"] = least.clone()).unwrap();
    }
}

/// A pool has as many machines as its MachinePool wants, and names them.
#[tokio::test(start_paused = true)]
async fn a_pool_has_as_many_machines_as_its_machine_pool_wants() {
    let world = running().await;
    for count in [4, 1, 3] {
        replicas(&world, count);
        let took = world.until("scaled", |world| has(world, "pool1", usize::try_from(count).unwrap())).await;
        assert!(took < Duration::from_secs(60), "{took:?}");
        assert!(has(&world, "pool0", 2));
    }
    replicas(&world, 0);
    world.until("none", |world| has(world, "pool1", 0)).await;
    assert!(world.is_ready(POOL, "pool1"));
}

/// CAPZ-195: with bounds Azure's autoscaler decides: its number is the MachinePool's, a user's is not sent, and without
/// bounds the number stays as it is and is the user's again.
#[tokio::test(start_paused = true)]
async fn azures_autoscaler_decides_between_bounds() {
    let mut world = World::new();
    let sent = record(&mut world);
    ask(&world, json!({}));
    world.start();
    ready(&world, "aks").await;
    change(&world, POOL, "pool1", json!({ "scaling": { "minSize": 2, "maxSize": 10 } }));
    world.until("annotated", |world| shown(world) == (json!("true"), json!(2))).await;
    let held = in_azure(&world, "aks", "pool1");
    assert_eq!(
        (&held["enableAutoScaling"], &held["minCount"], &held["maxCount"]),
        (&json!(true), &json!(2), &json!(10))
    );

    autoscale(&world, 5);
    world.until("seen", |world| shown(world) == (json!("true"), json!(5)) && has(world, "pool1", 5)).await;
    let before = writes(&sent, "/agentPools/pool1").len();
    replicas(&world, 3);
    world.until("put back", |world| shown(world).1 == 5).await;
    tokio::time::sleep(LONG).await;
    assert!(has(&world, "pool1", 5));
    assert_eq!(writes(&sent, "/agentPools/pool1").len(), before, "Azure's number is not fought");

    change(&world, POOL, "pool1", json!({ "scaling": { "minSize": 6, "maxSize": 8 } }));
    world.until("other bounds", |world| shown(world).1 == 6 && has(world, "pool1", 6)).await;
    change(&world, POOL, "pool1", json!({ "scaling": null }));
    world.until("off", |world| shown(world) == (Value::Null, json!(6))).await;
    let held = in_azure(&world, "aks", "pool1");
    assert_eq!(
        (&held["enableAutoScaling"], &held["minCount"], &held["count"]),
        (&json!(false), &Value::Null, &json!(6))
    );
    replicas(&world, 2);
    world.until("the user's again", |world| has(world, "pool1", 2)).await;
}

/// Azure neither enables the autoscaler and scales by one write, nor takes bounds that exclude the number of machines: a
/// pool outside of its bounds is scaled first.
#[tokio::test(start_paused = true)]
async fn a_pool_outside_of_its_bounds_is_scaled_into_them_first() {
    for (least, most, expected) in [(4, 6, 4), (0, 1, 1)] {
        let world = running().await;
        change(&world, POOL, "pool1", json!({ "scaling": { "minSize": least, "maxSize": most } }));
        let took = world.until("within", |world| shown(world) == (json!("true"), json!(expected))).await;
        assert!(took < Duration::from_secs(60), "{took:?}");
        let held = in_azure(&world, "aks", "pool1");
        assert_eq!((&held["enableAutoScaling"], &held["minCount"]), (&json!(true), &json!(least)));
        world.until("its machines", |world| has(world, "pool1", expected)).await;
    }
}

/// An annotation of another program that scales the MachinePool stays, and Azure gets that program's number.
#[tokio::test(start_paused = true)]
async fn another_autoscaler_keeps_its_annotation() {
    let world = running().await;
    world.merge("MachinePool", "pool1", json!({ "metadata": { "annotations": { (EXTERNAL): "keda" } } }));
    replicas(&world, 3);
    world.until("scaled", |world| has(world, "pool1", 3)).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(shown(&world), (json!("keda"), json!(3)));
}

/// CAPZ-197: taints, labels and tags reach Azure as they are declared; those that are withdrawn go, and Azure's own stay.
#[tokio::test(start_paused = true)]
async fn taints_labels_and_tags_are_as_declared() {
    let mut world = World::new();
    ask(&world, json!({}));
    let taint = json!({ "key": "dedicated", "value": "kafka", "effect": "NoSchedule" });
    let spec = json!({ "scaleSetPriority": "Spot", "taints": [taint], "nodeLabels": { "a": "1", "b": "1" },
        "additionalTags": { "x": "1", "y": "1" } });
    pool(&world, "aks", "spot", spec);
    world.start();
    ready(&world, "aks").await;
    let held = in_azure(&world, "aks", "spot");
    let taints =
        |held: &Value| -> Vec<String> { serde_json::from_value(held["nodeTaints"].clone()).unwrap() };
    assert!(taints(&held).contains(&"dedicated=kafka:NoSchedule".to_owned()), "{held}");
    world
        .azure
        .edit(&aks(&world, "aks").child("agentPools", "spot"), |pool| {
            pool["properties"]["tags"]["policy"] = json!("p");
        })
        .unwrap();
    let taint = json!({ "key": "gpu", "value": "a", "effect": "NoExecute" });
    let spec = json!({ "taints": [taint], "nodeLabels": { "a": "2", "b": null, "c": "1" },
        "additionalTags": { "x": "2", "y": null } });
    change(&world, POOL, "spot", spec);
    world.until("changed", |world| in_azure(world, "aks", "spot")["nodeLabels"]["c"] == "1").await;
    let held = in_azure(&world, "aks", "spot");
    let mut now = taints(&held);
    now.sort();
    assert_eq!(now, ["gpu=a:NoExecute", "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]);
    assert_eq!(
        held["nodeLabels"],
        json!({ "a": "2", "c": "1", "kubernetes.azure.com/scalesetpriority": "spot" })
    );
    assert_eq!(held["tags"], json!({ "x": "2", "policy": "p" }));
    change(&world, POOL, "spot", json!({ "taints": null, "nodeLabels": null, "additionalTags": null }));
    world.until("none", |world| in_azure(world, "aks", "spot")["tags"] == json!({ "policy": "p" })).await;
    let held = in_azure(&world, "aks", "spot");
    assert_eq!(taints(&held), ["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]);
    assert_eq!(held["nodeLabels"], json!({ "kubernetes.azure.com/scalesetpriority": "spot" }));
    let sequence = world.sequence();
    tokio::time::sleep(LONG).await;
    let writes = world.calls_after(sequence).into_iter().filter(|call| call.starts_with("PUT"));
    assert_eq!(writes.collect::<Vec<_>>(), [""; 0]);
}

/// A pool of a cluster that stays is deleted alone, and another one is added.
#[tokio::test(start_paused = true)]
async fn pools_come_and_go_alone() {
    let world = running().await;
    world.delete(POOL, "pool1");
    world.until("gone", |world| world.get(POOL, "pool1").is_none()).await;
    let left = world.azure.documents_of_type(POOLS);
    assert_eq!(left.iter().map(|it| it["name"].clone()).collect::<Vec<_>>(), ["pool0"]);
    world.delete("MachinePool", "pool1");
    pool(&world, "aks", "pool2", json!({}));
    world.until("another", |world| has(world, "pool2", 2)).await;
    assert!(world.is_ready(CONTROL_PLANE, "aks") && has(&world, "pool0", 2));
}

/// Admission refuses to delete the last System pool. If it was bypassed, Azure refuses, the object says so and is kept;
/// it is let go soon after there is another System pool.
#[tokio::test(start_paused = true)]
async fn the_last_system_pool_stays_until_there_is_another() {
    let world = running().await;
    world.delete(POOL, "pool0");
    let says = |world: &World| message(world, POOL, NAMESPACE, "pool0", "AgentPoolsReady");
    world.until("refused", |world| says(world).contains("at least one system agent pool")).await;
    tokio::time::sleep(LONG).await;
    assert!(says(&world).starts_with("False"), "{}", says(&world));
    assert_eq!(in_azure(&world, "aks", "pool0")["provisioningState"], "Succeeded");
    pool(&world, "aks", "pool2", json!({ "mode": "System" }));
    world.until("another", |world| has(world, "pool2", 2)).await;
    let took = world.until("gone", |world| world.get(POOL, "pool0").is_none()).await;
    assert!(took < Duration::from_secs(1200), "{took:?}");
    assert_eq!(in_azure(&world, "aks", "pool0"), Value::Null);
}
