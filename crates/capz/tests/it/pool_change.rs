//! Pools under changes from outside: deleted instances, an autoscaler, pauses, missing answers.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Cloud, Credential, Transport};
use azure_simulator::{Fault, FaultAction, LatencyProfile};
use azure_types::ResourceId;
use cloud_config::CloudEndpoints;
use serde_json::{Value, json};

use crate::pool_world::{Core, INSTANCE, INSTANCES, POOL, ask, ask_for, change, is_settled, version};
use crate::world::{NAMESPACE, World};

const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";

fn set(world: &World) -> ResourceId {
    world.group("my-cluster").resource("Microsoft.Compute", "virtualMachineScaleSets", "my-pool")
}

fn capacity(world: &World) -> u64 {
    world.azure.document(&set(world)).unwrap()["sku"]["capacity"].as_u64().unwrap()
}

async fn settles(world: &World, core: &RefCell<Core>, replicas: usize) {
    world
        .until(&format!("{replicas} machines"), |world| {
            core.borrow_mut().look(world);
            is_settled(world, replicas)
        })
        .await;
}

/// Advances the time.
async fn idle(world: &World, core: &RefCell<Core>, seconds: u64) {
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        core.borrow_mut().look(world);
    }
}

async fn running(replicas: u64, spec: Value) -> (World, RefCell<Core>) {
    let mut world = World::new();
    let core = Core::new(1, 0);
    ask(&world, replicas, spec);
    world.start();
    settles(&world, &core, usize::try_from(replicas).unwrap()).await;
    (world, core)
}

/// CAPZ-152: deleting an instance in Azure deletes its Machine, and the pool replaces it.
#[tokio::test(start_paused = true)]
async fn an_instance_that_goes_takes_its_machine_along() {
    let (world, core) = running(3, json!({})).await;
    world.azure.remove_instance(&set(&world), "1").unwrap();
    world
        .until("its Machine goes", |world| {
            core.borrow_mut().look(world);
            world.get("Machine", "my-pool-1").is_none()
        })
        .await;
    settles(&world, &core, 3).await;
    assert!(world.get(INSTANCE, "my-pool-1").is_none());
}

/// CAPZ-152: if its node shows that it is gone, it is replaced at once, and not at the next sync.
#[tokio::test(start_paused = true)]
async fn a_lost_instance_is_made_up_for_at_once() {
    let (world, core) = running(3, json!({})).await;
    idle(&world, &core, 60).await;
    world.azure.remove_instance(&set(&world), "1").unwrap();
    crate::pool_world::set_ready(&world, "my-pool-1", false);
    let begin = tokio::time::Instant::now();
    world
        .until("another one is ready", |world| {
            core.borrow_mut().look(world);
            world.get(INSTANCE, "my-pool-1").is_none() && is_settled(world, 3)
        })
        .await;
    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}", begin.elapsed());
}

/// Events of Kubernetes are decided with the latest observation; a lost node may have lost its instance.
#[tokio::test(start_paused = true)]
async fn what_kubernetes_shows_asks_azure_nothing() {
    let (world, core) = running(5, json!({})).await;
    idle(&world, &core, 60).await;
    let sequence = world.sequence();
    let ready = |ready: bool| {
        (0..5).for_each(|index| {
            crate::pool_world::set_ready(&world, &format!("my-pool-{index}"), ready);
        });
    };
    ready(false);
    idle(&world, &core, 15).await;
    assert_eq!(world.get(POOL, "my-pool").unwrap()["status"]["replicas"], 0);
    assert_eq!(world.requests_after(sequence), (2, 0), "five nodes are lost at once");
    ready(true);
    idle(&world, &core, 15).await;
    assert_eq!(world.get(POOL, "my-pool").unwrap()["status"]["replicas"], 5);
    assert_eq!(world.requests_after(sequence), (2, 0), "what is ready again costs nothing");
}

/// CAPZ-149: an externally managed number of machines is copied, and nothing grows or shrinks.
#[tokio::test(start_paused = true)]
async fn replicas_that_somebody_else_counts_are_copied() {
    let (world, core) = running(2, json!({})).await;
    let annotations = json!({ "cluster.x-k8s.io/replicas-managed-by": "autoscaler" });
    world.merge("MachinePool", "my-pool", json!({ "metadata": { "annotations": annotations } }));
    idle(&world, &core, 60).await;
    world.azure.scale(&set(&world), 5).unwrap();
    world
        .until("copied", |world| {
            core.borrow_mut().look(world);
            world.get("MachinePool", "my-pool").unwrap()["spec"]["replicas"] == 5
        })
        .await;
    change(&world, json!({ "replicas": 1 }));
    world
        .until("copied again", |world| {
            core.borrow_mut().look(world);
            world.get("MachinePool", "my-pool").unwrap()["spec"]["replicas"] == 5
        })
        .await;
    change(&world, version("v1.34.0"));
    idle(&world, &core, 600).await;
    assert_eq!(capacity(&world), 5);
    assert_eq!(world.azure.documents_of_type(INSTANCES).len(), world.kubernetes.list(INSTANCE).len());
}

/// A failed list decides nothing: the pool does not shrink, and no machine counts as gone.
#[tokio::test(start_paused = true)]
async fn instances_that_nobody_knows_decide_nothing() {
    let (world, core) = running(3, json!({})).await;
    let silent = FaultAction::Fail { status: 503, code: "ServiceUnavailable".into(), message: String::new() };
    world.azure.inject(Fault::new(silent).on_method("GET").on_type(INSTANCES).times(1_000_000));
    change(&world, json!({ "replicas": 1 }));
    idle(&world, &core, 600).await;
    assert!(core.borrow().gone.is_empty());
    assert_eq!(capacity(&world), 3);
    world.azure.clear_faults();
    settles(&world, &core, 1).await;
}

/// CAPZ-150: an incomplete pool reports that; one at rest costs two reads a reconcile, and no write.
#[tokio::test(start_paused = true)]
async fn a_pool_that_rests_costs_two_reads() {
    let (world, core) = running(3, json!({})).await;
    idle(&world, &core, 60).await;
    let sequence = world.sequence();
    world.merge(POOL, "my-pool", json!({ "metadata": { "annotations": { "look": "again" } } }));
    idle(&world, &core, 30).await;
    assert_eq!(world.requests_after(sequence), (2, 0));
    crate::pool_world::set_ready(&world, "my-pool-0", false);
    world
        .until("reported", |world| {
            world.condition(POOL, "my-pool", "ScaleSetDesiredReplicas")
                == Some(("False".into(), "ScaleSetScalingUp".into()))
        })
        .await;
    let pool = world.get(POOL, "my-pool").unwrap();
    assert_eq!(
        (&pool["status"]["provisioningState"], &pool["status"]["ready"]),
        (&json!("Updating"), &json!(true))
    );
}

/// A paused pool is left alone, and may be moved; afterwards it continues.
#[tokio::test(start_paused = true)]
async fn a_paused_pool_is_left_alone() {
    let (world, core) = running(2, json!({})).await;
    let blocked =
        |world: &World| !world.get(POOL, "my-pool").unwrap()["metadata"]["annotations"][BLOCK_MOVE].is_null();
    assert!(blocked(&world));
    world.merge("Cluster", "my-cluster", json!({ "spec": { "paused": true } }));
    world.until("it may be moved", |world| !blocked(world)).await;
    let sequence = world.sequence();
    change(&world, json!({ "replicas": 4 }));
    idle(&world, &core, 120).await;
    assert_eq!(world.requests_after(sequence).1, 0);
    world.merge("Cluster", "my-cluster", json!({ "spec": { "paused": false } }));
    settles(&world, &core, 4).await;
    assert!(blocked(&world));
}

/// A size that no region has is reported in conditions and an event. The pool is not lost, as a `failureReason` would
/// tell Cluster API's core, and continues when its owner has corrected it (C8).
#[tokio::test(start_paused = true)]
async fn an_unknown_size_is_reported_and_can_be_corrected() {
    let (mut world, core) = (World::new(), Core::new(1, 0));
    let template = |size: &str| json!({ "vmSize": size, "osDisk": { "osType": "Linux", "diskSizeGB": 30 } });
    ask(&world, 1, json!({ "template": template("Standard_Unknown") }));
    // As an earlier manager has left it.
    let earlier =
        json!({ "status": { "failureReason": "InvalidConfiguration", "failureMessage": "before" } });
    world.kubernetes.merge_status(POOL, NAMESPACE, "my-pool", &earlier).unwrap();
    world.start();
    let pool = |world: &World| world.get(POOL, "my-pool").unwrap();
    world
        .until("event", |world| {
            core.borrow_mut().look(world);
            world.events(POOL, "my-pool").contains(&"SKUNotFound".to_owned())
        })
        .await;
    let status = pool(&world)["status"].clone();
    let says = |it: &Value| {
        it["type"] == "Ready" && it["message"].as_str().is_some_and(|it| it.contains("Standard_Unknown"))
    };
    assert!(status["conditions"].as_array().unwrap().iter().any(says), "{status:#}");
    assert_eq!((&status["failureReason"], &status["failureMessage"]), (&Value::Null, &Value::Null));
    assert!(world.azure.document(&set(&world)).is_none());
    world.merge(POOL, "my-pool", json!({ "spec": { "template": template("Standard_D2s_v3") } }));
    let corrected = world
        .until("ready", |world| {
            core.borrow_mut().look(world);
            pool(world)["status"]["ready"] == true
        })
        .await;
    assert!(corrected < Duration::from_secs(120), "{corrected:?}");
}

/// CAPZ-155: the deletion of the scale set is in the status while it runs in Azure; the Machines are deleted after it,
/// and the finalizer is removed last.
#[tokio::test(start_paused = true)]
async fn a_pool_goes_after_its_set_and_its_machines() {
    let (world, core) = running(3, json!({})).await;
    let slow = LatencyProfile::instant().with(
        "DELETE",
        "Microsoft.Compute/virtualMachineScaleSets",
        Duration::from_secs(200),
    );
    world.azure.set_latency(slow);
    world.delete(POOL, "my-pool");
    let leaving = |world: &World| {
        let machines = world.kubernetes.list("Machine");
        machines.iter().filter(|it| !it["metadata"]["deletionTimestamp"].is_null()).count()
    };
    let told = Cell::new(false);
    world
        .until("it is gone", |world| {
            core.borrow_mut().look(world);
            let has_set = world.azure.document(&set(world)).is_some();
            if has_set {
                assert_eq!(leaving(world), 0, "Machines go once their set has gone");
            }
            let left = world.kubernetes.list(INSTANCE).len();
            let Some(pool) = world.get(POOL, "my-pool") else {
                assert_eq!((has_set, left), (false, 0), "the finalizer went too early");
                return true;
            };
            assert_eq!(pool["metadata"]["finalizers"], json!(["machinepool.cluster.x-k8s.io"]));
            let future = &pool["status"]["longRunningOperationStates"][0];
            if has_set && !future.is_null() {
                let said =
                    ["type", "serviceName", "name", "resourceGroup"].map(|member| future[member].clone());
                assert_eq!(
                    Value::from(said.to_vec()),
                    json!(["DELETE", "scalesets", "my-pool", "my-cluster"])
                );
                told.set(true);
            }
            false
        })
        .await;
    assert!(told.get(), "the deletion never stood in the status");
}

/// The established provider's reference to the node is kept, with the UID.
#[tokio::test(start_paused = true)]
async fn a_reference_to_the_same_node_stays() {
    let (world, core) = running(1, json!({})).await;
    let name = world.kubernetes.list(INSTANCE)[0].name().to_owned();
    let told = json!({ "status": { "ready": false, "nodeRef": { "uid": "of-the-node" } } });
    world.kubernetes.merge_status(INSTANCE, NAMESPACE, &name, &told).unwrap();
    world.merge(INSTANCE, &name, json!({ "metadata": { "annotations": { "look": "again" } } }));
    world
        .until("ready again", |world| {
            core.borrow_mut().look(world);
            world.get(INSTANCE, &name).unwrap()["status"]["ready"] == true
        })
        .await;
    let node = world.get(INSTANCE, &name).unwrap()["status"]["nodeRef"].clone();
    assert!(node["name"].is_string() && node["uid"] == "of-the-node", "{node}");
}

/// A deletion of the scale set by another actor is reported while it runs in Azure, and the set is created again.
#[tokio::test(start_paused = true)]
async fn a_set_that_somebody_else_deletes_is_told_of() {
    let (world, core) = running(1, json!({})).await;
    idle(&world, &core, 120).await;
    let unique = |world: &World| Some(world.azure.document(&set(world))?["properties"]["uniqueId"].clone());
    let before = unique(&world);
    let slow = LatencyProfile::instant().with(
        "DELETE",
        "Microsoft.Compute/virtualMachineScaleSets",
        Duration::from_secs(200),
    );
    world.azure.set_latency(slow);
    let (endpoints, _) = CloudEndpoints::named("AzurePublicCloud");
    let transport = Transport::in_process(world.azure.router());
    let cloud = Cloud::built_in(&endpoints).unwrap();
    let client = Client::builder(cloud, transport, Credential::fixed("token")).build();
    client.delete_with(&set(&world), ApiVersion::new("2025-04-01"), &[], None, Class::Delete).await.unwrap();
    world.merge(POOL, "my-pool", json!({ "metadata": { "annotations": { "look": "again" } } }));
    world
        .until("reported", |world| {
            core.borrow_mut().look(world);
            world.events(POOL, "my-pool").contains(&"UnexpectedVMDeletion".to_owned())
        })
        .await;
    let pool = world.get(POOL, "my-pool").unwrap();
    assert_eq!(pool["status"]["provisioningState"], "Deleting");
    assert_eq!(
        world.condition(POOL, "my-pool", "ScaleSetRunning"),
        Some(("False".into(), "ScaleSetDeleting".into()))
    );
    world
        .until("another one", |world| {
            core.borrow_mut().look(world);
            unique(world).is_some_and(|now| Some(now) != before) && is_settled(world, 1)
        })
        .await;
}

/// A failed scale set stays; its failed instance is reported and replaced.
#[tokio::test(start_paused = true)]
async fn a_failed_set_stays_and_its_failed_instance_goes() {
    let mut world = World::new();
    let (core, boots) = (Core::new(1, 0), crate::pool_world::boots(&world, 1));
    ask(&world, 2, json!({}));
    *boots.failing.lock() = 100;
    world.start();
    world
        .until("reported", |world| {
            core.borrow_mut().look(world);
            world.events(POOL, "my-pool").contains(&"UnexpectedVMFailure".to_owned())
        })
        .await;
    world
        .until("the instance is reported", |world| {
            core.borrow_mut().look(world);
            world.kubernetes.list(INSTANCE).iter().any(|it| {
                let name = it["metadata"]["name"].as_str().unwrap();
                world.events(INSTANCE, name).contains(&"FailedVMState".to_owned())
            })
        })
        .await;
    let unique = |world: &World| world.azure.document(&set(world)).unwrap()["properties"]["uniqueId"].clone();
    let before = unique(&world);
    *boots.failing.lock() = 0;
    settles(&world, &core, 2).await;
    assert_eq!(unique(&world), before);
}

/// The object of an instance is released only when it is deleted and its pool is gone: a pool that is not watched is
/// not gone.
#[tokio::test(start_paused = true)]
async fn a_pool_that_was_not_shown_is_not_gone() {
    let mut world = World::new();
    world.settings.watch_filter = Some("mine".to_owned());
    ask(&world, 1, json!({}));
    let finalizer = "azuremachinepoolmachine.infrastructure.cluster.x-k8s.io";
    world.create(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": INSTANCE,
        "metadata": { "name": "my-pool-0", "namespace": "default", "finalizers": [finalizer],
            "labels": { "cluster.x-k8s.io/cluster-name": "my-cluster", "cluster.x-k8s.io/watch-filter": "mine" },
            "ownerReferences": [{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": POOL, "name": "my-pool",
                "uid": world.get(POOL, "my-pool").unwrap()["metadata"]["uid"] }] },
        "spec": { "providerID": format!("azure://{}/virtualMachines/0", set(&world)) },
    }));
    let is_held = |world: &World| {
        let object = world.get(INSTANCE, "my-pool-0");
        object.is_some_and(|it| it["metadata"]["finalizers"] == json!([finalizer]))
    };
    world.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(is_held(&world), "it is not deleted");
    world.delete(INSTANCE, "my-pool-0");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(is_held(&world), "its pool exists");
    world.delete(POOL, "my-pool");
    world.until("gone", |world| world.get(INSTANCE, "my-pool-0").is_none()).await;
}

/// Names of scale sets with Windows are short: a pool whose set is that of another pool reports that, and neither
/// changes nor deletes that set.
#[tokio::test(start_paused = true)]
async fn two_pools_have_no_set_in_common() {
    let mut world = World::new();
    let core = Core::new(1, 0);
    let windows = json!({ "template": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Windows", "diskSizeGB": 128 } } });
    world.cluster("my-cluster", json!({}));
    ask_for(&world, "windows-pool", 1, windows.clone());
    world.start();
    let set = world.group("my-cluster").resource("Microsoft.Compute", "virtualMachineScaleSets", "win--pool");
    world
        .until("the first pool", |world| {
            core.borrow_mut().look(world);
            world.get(POOL, "windows-pool").unwrap()["status"]["ready"] == true
        })
        .await;
    idle(&world, &core, 30).await;
    let before = world.azure.document(&set).unwrap();

    ask_for(&world, "gpu-win-pool", 3, windows);
    let words = |world: &World| {
        let object = world.get(POOL, "gpu-win-pool").unwrap();
        object["status"]["conditions"].to_string()
    };
    world
        .until("reported", |world| {
            core.borrow_mut().look(world);
            words(world).contains("windows-pool and gpu-win-pool would have one scale set")
        })
        .await;
    idle(&world, &core, 700).await;
    assert_eq!(world.azure.document(&set).unwrap(), before);
    assert_eq!(world.kubernetes.list(INSTANCE).len(), 1);
    world.delete(POOL, "gpu-win-pool");
    world.until("gone", |world| world.get(POOL, "gpu-win-pool").is_none()).await;
    assert_eq!(world.azure.document(&set).unwrap(), before);
}
