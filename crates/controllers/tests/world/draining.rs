//! Draining nodes are reported to the load balancers at once.

use std::sync::Arc;
use std::time::Duration;

use controllers::{Observer, Options};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cloud::{Call, retry};
use crate::world::{World, seconds};

fn out_of_service() -> Value {
    json!([{"key": k8s::names::TAINT_OUT_OF_SERVICE, "effect": "NoExecute"}])
}

async fn started() -> World {
    let mut world = World::new();
    world.cloud.drain_nodes();
    world.start(World::services()).await;
    world.node("n2", json!({}));
    seconds(1).await;
    world
}

/// The events of a node, without its component.
fn told(world: &World, node: &str) -> Vec<String> {
    let reasons = world.reasons(node);
    reasons.into_iter().filter(|reason| reason.starts_with("LoadBalancerAdminState")).collect()
}

/// LB-350, LB-351, LB-352: each change is one request, at once, and an event of the node.
#[tokio::test(start_paused = true)]
async fn a_taint_is_one_request_and_one_event() {
    let world = started().await;
    let before = world.cloud.drained().len();
    assert_eq!(before, 1, "a program that starts looks once");
    world.set_taints("n2", out_of_service());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.cloud.drained()[before..], [["n2"]]);
    seconds(1).await;
    assert_eq!(told(&world, "n2"), ["LoadBalancerAdminStateDown"]);
    let both = json!([out_of_service()[0], {"key": k8s::names::TAINT_SHUTDOWN, "effect": "NoSchedule"}]);
    world.set_taints("n2", both);
    seconds(1).await;
    assert_eq!(world.cloud.drained().len(), before + 1, "it drains already");
    world.set_taints("n2", json!([]));
    seconds(1).await;
    assert_eq!(world.cloud.drained().len(), before + 2);
    assert_eq!(told(&world, "n2"), ["LoadBalancerAdminStateDown", "LoadBalancerAdminStateNone"]);
}

/// The outcome of each call.
#[derive(Default)]
struct Outcomes(Mutex<Vec<bool>>);

impl Observer for Outcomes {
    fn draining_updated(&self, _took: Duration, succeeded: bool) {
        self.0.lock().push(succeeded);
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_is_measured() {
    let outcomes = Arc::new(Outcomes::default());
    let mut world = World::new();
    world.cloud.drain_nodes();
    world.start(Options { observer: outcomes.clone(), ..World::services() }).await;
    world.node("n2", json!({}));
    seconds(1).await;
    world.cloud.fail_draining([retry("AnotherOperationInProgress", None)]);
    world.set_taints("n2", out_of_service());
    seconds(30).await;
    assert_eq!(*outcomes.0.lock(), [true, false, true]);
}

/// LB-357: changes during a call are part of the next one.
#[tokio::test(start_paused = true)]
async fn many_nodes_are_few_requests() {
    let world = started().await;
    for number in 0..100 {
        world.node(&format!("m{number:03}"), json!({}));
    }
    seconds(5).await;
    world.cloud.writes_take(Duration::from_secs(20));
    let before = world.cloud.drained().len();
    for number in 0..100 {
        world.set_taints(&format!("m{number:03}"), out_of_service());
    }
    seconds(60).await;
    let requests = &world.cloud.drained()[before..];
    assert!(requests.len() <= 2, "{}", requests.len());
    assert_eq!(requests.last().unwrap().len(), 100);
    assert_eq!(told(&world, "m099"), ["LoadBalancerAdminStateDown"]);
}

/// LB-359: a failure is reported on the nodes that it concerns, and retried after a pause.
#[tokio::test(start_paused = true)]
async fn lb_359_a_failure_is_told_and_tried_again() {
    let world = started().await;
    world.cloud.fail_draining([retry("InternalServerError", None), retry("TooManyRequests", Some(42))]);
    world.set_taints("n2", out_of_service());
    seconds(100).await;
    let times = world.cloud.times(|call| matches!(call, Call::UpdateDraining(_)));
    assert_eq!(times.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [5, 42]);
    let failed = "LoadBalancerAdminStateUpdateFailed";
    assert_eq!(told(&world, "n2"), [failed, failed, "LoadBalancerAdminStateDown"]);
    assert_eq!(told(&world, "n1"), [""; 0]);
}

/// LB-359: a failed call may have succeeded in part; a taint that was removed by then is reported nevertheless.
#[tokio::test(start_paused = true)]
async fn lb_359_what_a_failed_request_has_done_is_undone() {
    let world = started().await;
    world.cloud.fail_draining([retry("InternalServerError", None)]);
    world.set_taints("n2", out_of_service());
    seconds(1).await;
    world.set_taints("n2", json!([]));
    seconds(100).await;
    let requests = world.cloud.drained();
    assert_eq!(requests[requests.len() - 2..], [vec!["n2".to_owned()], vec![]], "{requests:?}");
}

/// LB-361, LB-363: a cordon causes no call; without the feature no taint does.
#[tokio::test(start_paused = true)]
async fn lb_361_lb_363_nothing_is_asked_without_need() {
    let world = started().await;
    let before = world.cloud.drained().len();
    world.set_taints("n2", json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]));
    seconds(60).await;
    assert_eq!(world.cloud.drained().len(), before);
    let mut off = World::new();
    off.start(World::services()).await;
    off.set_taints("n1", out_of_service());
    seconds(60).await;
    assert_eq!(off.cloud.drained(), Vec::<Vec<String>>::new());
}

fn preempt(world: &World, event: &str, node: &str, uid: &str) {
    let document = json!({
        "apiVersion": "v1", "kind": "Event", "source": {"component": "scheduled-events"}, "count": 1,
        "metadata": {"name": event, "namespace": "default"}, "reason": "PreemptScheduled", "type": "Warning",
        "involvedObject": {"kind": "Node", "name": node, "uid": uid}, "message": "Azure takes the machine back",
    });
    world.kubernetes.create(document).unwrap();
}

fn uid(world: &World, node: &str) -> String {
    world.get_node(node)["metadata"]["uid"].as_str().unwrap().to_owned()
}

const SPOT: &str = "cloudprovider.azure.microsoft.com/draining=spot-eviction:NoSchedule";

/// LB-353: two Events cause one patch; after the taint was removed, only a new Event brings it back.
#[tokio::test(start_paused = true)]
async fn lb_353_a_preemption_taints_the_node_once() {
    let world = started().await;
    let node = uid(&world, "n2");
    preempt(&world, "first", "n2", &node);
    seconds(1).await;
    assert_eq!(world.taints("n2"), [SPOT]);
    assert_eq!(told(&world, "n2"), ["LoadBalancerAdminStateDown"]);
    let version = world.get_node("n2")["metadata"]["resourceVersion"].clone();
    preempt(&world, "second", "n2", &node);
    seconds(1).await;
    assert_eq!(world.get_node("n2")["metadata"]["resourceVersion"], version);
    world.set_taints("n2", json!([]));
    seconds(600).await;
    assert_eq!(world.taints("n2"), [""; 0]);
    preempt(&world, "third", "n2", "n2");
    seconds(1).await;
    assert_eq!(world.taints("n2"), [SPOT], "kubelets write the name for the UID");
}

/// LB-354: an Event about an earlier node of the same name has no effect.
#[tokio::test(start_paused = true)]
async fn lb_354_a_new_node_does_not_inherit_the_preemption_of_its_predecessor() {
    let mut world = World::new();
    world.cloud.drain_nodes();
    preempt(&world, "old", "n1", "somebody-else");
    preempt(&world, "nameless", "n2", "");
    preempt(&world, "by-name", "n2", "n2");
    seconds(5).await;
    world.start(World::services()).await;
    world.node("n2", json!({}));
    seconds(60).await;
    assert_eq!((world.taints("n1").len(), world.taints("n2").len()), (0, 0));
}
