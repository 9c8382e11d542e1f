//! AzureClusters that are paused, externally managed, refused or interrupted.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

const CLUSTER: &str = "AzureCluster";
const NETWORK_READY: &str = "NetworkInfrastructureReady";
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
const VNET: &str = "Microsoft.Network/virtualNetworks";

fn is_ready(world: &World) -> bool {
    world.get(CLUSTER, "my-cluster").is_some_and(|it| it["status"]["ready"] == true)
}

fn blocks_move(world: &World, kind: &str, name: &str) -> bool {
    world.get(kind, name).unwrap()["metadata"]["annotations"][BLOCK_MOVE] == "true"
}

fn operations(world: &World) -> Vec<Value> {
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    object["status"]["longRunningOperationStates"].as_array().cloned().unwrap_or_default()
}

fn fails(status: u16, code: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.into(), message: "not like this".into() }
}

/// Causes an event for the cluster that requires no change in Azure.
fn touch(world: &World, value: &str) {
    world.merge(CLUSTER, "my-cluster", json!({ "metadata": { "annotations": { "touched": value } } }));
}

/// CAPZ-066: in a region without zones there are no failure domains, and the cluster is created all the same.
#[tokio::test(start_paused = true)]
async fn a_region_without_zones_has_no_failure_domains() {
    let mut world = World::tuned(1, |azure| azure.zones.clear());
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("ready", is_ready).await;
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    assert_eq!(object["status"]["failureDomains"], Value::Null);
    assert!(object["spec"]["controlPlaneEndpoint"]["host"].is_string());
}

/// CAPZ-068: an externally managed cluster is left alone.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_manages_is_left_alone() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    let annotation = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/managed-by": "foo" } } });
    world.merge(CLUSTER, "my-cluster", annotation);
    let before = world.get(CLUSTER, "my-cluster").unwrap();
    let sequence = world.sequence();
    world.start();
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(world.get(CLUSTER, "my-cluster").unwrap(), before);
    assert_eq!(world.requests_after(sequence), (0, 0));
}

/// CAPZ-069: a paused cluster and its machines may be moved and cause no calls to Azure; afterwards they are reconciled
/// again.
#[tokio::test(start_paused = true)]
async fn a_paused_cluster_may_be_moved() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world
        .until("a machine", |world| world.get("AzureMachine", "worker").unwrap()["status"]["ready"] == true)
        .await;
    assert!(blocks_move(&world, CLUSTER, "my-cluster") && blocks_move(&world, "AzureMachine", "worker"));

    world.merge("Cluster", "my-cluster", json!({ "spec": { "paused": true } }));
    let may_move = |world: &World| {
        !blocks_move(world, CLUSTER, "my-cluster") && !blocks_move(world, "AzureMachine", "worker")
    };
    // R7: at once, and not only after the rest that follows a reconcile.
    let waited = world.until("may be moved", may_move).await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    world
        .until("reported", |world| world.events(CLUSTER, "my-cluster").contains(&"ClusterPaused".to_owned()))
        .await;
    let sequence = world.sequence();
    world.merge(CLUSTER, "my-cluster", json!({ "spec": { "additionalTags": { "a": "b" } } }));
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(world.requests_after(sequence), (0, 0));

    world.merge("Cluster", "my-cluster", json!({ "spec": { "paused": false } }));
    world.until("blocks again", |world| !may_move(world) && blocks_move(world, CLUSTER, "my-cluster")).await;
    world
        .until("the change is made", |world| {
            world.azure.document(&world.group("my-cluster")).unwrap()["tags"]["a"] == "b"
        })
        .await;
}

/// R7: a cluster that is being deleted is not ready, even if Azure does not answer.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_is_not_ready_although_azure_does_not_answer() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.azure.inject(Fault::new(fails(503, "ServiceUnavailable")));
    world.delete_cluster("my-cluster");
    world.delete(CLUSTER, "my-cluster");
    let not_ready = |world: &World| {
        ["Ready", NETWORK_READY].iter().all(|condition| {
            world.condition(CLUSTER, "my-cluster", condition).is_some_and(|(status, _)| status == "False")
        })
    };
    let waited = world.until("not ready", not_ready).await;
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    world.azure.clear_faults();
    world.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
}

/// CAPZ-069: a pause takes effect during a reconcile; running operations are recorded, and resumed afterwards.
#[tokio::test(start_paused = true)]
async fn a_pause_counts_in_the_midst_of_the_work() {
    let latency = LatencyProfile::instant().with("CREATE", VNET, Duration::from_secs(120));
    let mut world = World::with(latency, 1);
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("an operation", |world| !operations(world).is_empty()).await;
    let annotation =
        |paused: Value| json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": paused } } });
    world.merge(CLUSTER, "my-cluster", annotation(json!("true")));
    let waited = world.until("may be moved", |world| !blocks_move(world, CLUSTER, "my-cluster")).await;
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!is_ready(&world) && operations(&world).len() == 1, "{:?}", operations(&world));
    world.merge(CLUSTER, "my-cluster", annotation(Value::Null));
    world.until("ready", is_ready).await;
    assert_eq!(world.gaps("PUT", VNET), Vec::<f64>::new(), "it was sent once");
}

/// CAPZ-075: throttled and failed reads are retried when Azure says so, or after a minute, or after the requeue time.
/// Before that the client has retried by itself, as often as its policy says.
#[tokio::test(start_paused = true)]
async fn refused_reads_are_tried_again_in_time() {
    for (action, pause) in [
        (FaultAction::Throttle { retry_after: Some(30) }, 30.0),
        (FaultAction::Throttle { retry_after: None }, 60.0),
        (fails(500, "InternalServerError"), 15.0),
    ] {
        let mut world = World::new();
        world.cluster("my-cluster", json!({}));
        world.azure.inject(Fault::new(action.clone()).on_method("GET").on_type(VNET));
        world.start();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(!is_ready(&world));
        world.azure.clear_faults();
        world.until("ready", is_ready).await;
        let gaps = world.gaps("GET", VNET);
        assert!(gaps.iter().any(|gap| (gap - pause).abs() < 0.05), "{action:?}: {gaps:?}");
        assert!(world.events(CLUSTER, "my-cluster").is_empty(), "no action is needed");
    }
}

/// CAPZ-076: a long operation is kept in the status; the next reconcile resumes it and sends nothing twice. CAPZ-074:
/// meanwhile the condition says that it is being created.
#[tokio::test(start_paused = true)]
async fn an_operation_is_kept_and_gone_on_with() {
    let latency = LatencyProfile::instant().with("CREATE", VNET, Duration::from_secs(120));
    let mut world = World::with(latency, 1);
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("an operation", |world| !operations(world).is_empty()).await;
    let [kept] = &operations(&world)[..] else { panic!("one") };
    for (member, value) in [
        ("type", "PUT"),
        ("serviceName", "virtualnetworks"),
        ("name", "my-cluster-vnet"),
        ("resourceGroup", "my-cluster"),
    ] {
        assert_eq!(kept[member], value);
    }
    assert_eq!(
        world.condition(CLUSTER, "my-cluster", "VNetReady"),
        Some(("False".into(), "Creating".into()))
    );
    // No action is needed: there is no warning, and no event.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let told = conditions.iter().find(|it| it["type"] == "VNetReady").unwrap();
    assert_eq!(
        (&told["reason"], &told["severity"], &told["message"]),
        (&json!("Creating"), &json!("Info"), &json!("virtualnetworks creating or updating"))
    );
    world.kill().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.start();
    world.until("ready", is_ready).await;
    assert_eq!(operations(&world), Vec::<Value>::new());
    assert_eq!(world.gaps("PUT", VNET), Vec::<f64>::new(), "it was sent once");
    assert_eq!(world.events(CLUSTER, "my-cluster"), Vec::<String>::new());
}

/// CAPZ-077: an unreadable operation is dropped, and the reconcile continues from the observed state. The established
/// provider first ends its reconcile with an error, and does the same in the next one; here there is nothing to report
/// (docs/clusters/running.md, "Changing from the established provider, and back").
#[tokio::test(start_paused = true)]
async fn an_operation_that_nobody_can_read_is_dropped() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    for data in ["", "@@@", "bm8ganNvbg==", "e30="] {
        let kept = json!([{ "type": "PUT", "serviceName": "virtualnetworks", "name": "my-cluster-vnet",
            "resourceGroup": "my-cluster", "data": data }]);
        let status = json!({ "status": { "ready": false, "longRunningOperationStates": kept } });
        world.kubernetes.merge_status(CLUSTER, NAMESPACE, "my-cluster", &status).unwrap();
        world.start();
        world.until("ready", is_ready).await;
        assert_eq!(operations(&world), Vec::<Value>::new(), "{data}");
        world.kill().await;
    }
}

/// CAPZ-079: one resource is refused permanently while another operation runs: the refusal is reported, with its event,
/// and the running operation is completed.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_once_the_rest_is_done() {
    let groups = "Microsoft.Network/networkSecurityGroups";
    let latency = LatencyProfile::instant().with("CREATE", groups, Duration::from_secs(60));
    let mut world = World::with(latency, 1);
    let name = "my-cluster-controlplane-nsg";
    world.azure.inject(Fault::new(fails(400, "BadRequest")).on_method("PUT").on_resource(name).times(1));
    world.cluster("my-cluster", json!({}));
    world.start();
    let failed = Some(("False".to_owned(), "Failed".to_owned()));
    let of = |world: &World, condition: &str| world.condition(CLUSTER, "my-cluster", condition);
    let other = world.group("my-cluster").resource(
        "Microsoft.Network",
        "networkSecurityGroups",
        "my-cluster-node-nsg",
    );
    let state =
        |world: &World| world.azure.document(&other).unwrap()["properties"]["provisioningState"].clone();
    world.until("refused", |world| of(world, "SecurityGroupsReady") == failed).await;
    assert_ne!(of(&world, NETWORK_READY), failed, "the other one is on its way");
    assert_ne!(state(&world), "Succeeded");
    world.until("reported", |world| of(world, NETWORK_READY) == failed).await;
    assert_eq!(state(&world), "Succeeded");
    world
        .until("an event", |world| {
            world.events(CLUSTER, "my-cluster").contains(&"ClusterReconcilerNormalFailed".to_owned())
        })
        .await;
    world.until("ready", is_ready).await;
    assert_eq!(world.condition(CLUSTER, "my-cluster", NETWORK_READY), Some(("True".into(), String::new())));
}

/// CAPZ-080: after a reconcile that found everything as desired, the next one is ten seconds later; after a failed one
/// it is immediate.
#[tokio::test(start_paused = true)]
async fn looks_are_apart_unless_they_failed() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("ready", is_ready).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    touch(&world, "1");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let sequence = world.sequence();
    touch(&world, "2");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(world.requests_after(sequence).0, 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(world.requests_after(sequence).0 > 0);

    // Each reconcile fails: the next event takes effect at once.
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.azure.inject(Fault::new(fails(403, "AuthorizationFailed")).on_method("GET").on_type(VNET));
    touch(&world, "3");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let failed = world.sequence();
    touch(&world, "4");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(world.requests_after(failed).0 > 0);
}

/// The statuses of Cluster and Machines change all the time, and cause no calls to Azure.
#[tokio::test(start_paused = true)]
async fn what_nobody_reads_of_a_status_wakes_nobody() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world
        .until("a machine", |world| world.get("AzureMachine", "worker").unwrap()["status"]["ready"] == true)
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let sequence = world.sequence();
    let looks = |kind: &str| world.kubernetes.requests("get", kind);
    let secrets = looks("secrets");
    for round in 0..5 {
        let said = json!([{ "type": "Available", "status": "False", "reason": format!("Round{round}") }]);
        let status = json!({ "status": { "phase": "Provisioned", "conditions": said } });
        for (kind, name) in [("Cluster", "my-cluster"), ("Machine", "worker")] {
            world.kubernetes.merge_status(kind, NAMESPACE, name, &status).unwrap();
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(world.requests_after(sequence), (0, 0));
    assert_eq!(looks("secrets"), secrets);
}
