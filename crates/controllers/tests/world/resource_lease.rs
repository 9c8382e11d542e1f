use std::time::Duration;

use controllers::Options;
use kubernetes_simulator::Fault;
use serde_json::{Value, json};

use crate::cloud::Call;
use crate::world::{World, seconds};

const NAME: &str = "aks-managed-resource-locker";
const PREVIOUS: &str = "aks-managed-resource-locker-previous-holder";

fn options() -> Options {
    Options { resource_lease: true, ..World::services() }
}

fn lease(world: &World) -> Value {
    world.kubernetes.get("Lease", "kube-system", NAME).map_or(Value::Null, |lease| lease.value().clone())
}

/// A lease of another program, renewed so many seconds ago.
fn foreign(world: &World, holder: &str, age: i64, annotations: Value) {
    let renewed = world.kubernetes.now().checked_sub(jiff::SignedDuration::from_secs(age)).unwrap();
    let renewed = format!("{renewed:.6}");
    world
        .kubernetes
        .create(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": NAME, "namespace": "kube-system", "annotations": annotations},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 900, "renewTime": renewed,
                     "acquireTime": renewed},
        }))
        .unwrap();
}

/// LB-039, NODE-149.
#[tokio::test(start_paused = true)]
async fn lb_039_while_another_program_holds_the_lease_nothing_is_asked_of_the_cloud() {
    let mut world = World::new();
    foreign(&world, "aks-rp", 0, json!({}));
    world.start(options()).await;
    world.service("web", json!({}));
    seconds(600).await;
    assert_eq!(world.cloud.calls(), []);
    let failed =
        world.events("web").into_iter().find(|event| event.contains("SyncLoadBalancerFailed")).unwrap();
    assert!(failed.contains("ensure load balancer: failed to lock the Azure resources"), "{failed}");
    assert!(failed.contains("aks-rp") && failed.contains("2026-01-01T00:15:00Z"), "{failed}");
    seconds(700).await;
    assert_eq!(world.addresses("web").len(), 1, "it goes on when the lease has expired");
}

/// LB-040, NODE-149.
#[tokio::test(start_paused = true)]
async fn lb_040_an_expired_lease_is_taken() {
    let mut world = World::new();
    foreign(&world, "aks-rp", 901, json!({}));
    world.start(options()).await;
    world.cloud.writes_take(Duration::from_secs(5));
    world.service("web", json!({}));
    seconds(1).await;
    let held = lease(&world);
    assert_eq!(held["spec"]["holderIdentity"], "cloud-controller-manager");
    assert_eq!(held["spec"]["leaseDurationSeconds"], 900);
    assert_eq!(held["spec"]["renewTime"], held["spec"]["acquireTime"]);
}

/// LB-041 for the controllers: the cloud is informed before the work begins.
#[tokio::test(start_paused = true)]
async fn lb_041_what_another_holder_may_have_written_is_observed_again() {
    for (previous, forgets) in [("aks-rp", 1), ("cloud-controller-manager", 0)] {
        let mut world = World::new();
        foreign(&world, "", 0, json!({PREVIOUS: previous}));
        world.start(options()).await;
        world.service("web", json!({}));
        seconds(1).await;
        let calls = world.cloud.calls();
        assert_eq!(calls.iter().filter(|call| **call == Call::Forget).count(), forgets, "{previous}");
        assert!(matches!(calls.last(), Some(Call::Ensure(..))), "forgotten before the work: {calls:?}");
    }
}

/// LB-042, NODE-149.
#[tokio::test(start_paused = true)]
async fn lb_042_the_lease_is_released_after_the_work() {
    let mut world = World::new();
    world.start(options()).await;
    world.service("web", json!({}));
    seconds(10).await;
    let released = lease(&world);
    assert_eq!(released["spec"]["holderIdentity"], "");
    assert_eq!(released["metadata"]["annotations"], json!({PREVIOUS: "cloud-controller-manager"}));
}

/// LB-043, NODE-149.
#[tokio::test(start_paused = true)]
async fn lb_043_a_lease_that_this_program_left_behind_is_taken_again() {
    let mut world = World::new();
    foreign(&world, "Cloud-Controller-Manager", 10, json!({}));
    world.start(options()).await;
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(world.addresses("web").len(), 1);
    assert_eq!(world.cloud.calls().len(), 1, "nothing to forget");
}

/// LB-044: the work is done nevertheless; the release is retried, so that no program waits for the lease to expire.
#[tokio::test(start_paused = true)]
async fn lb_044_a_release_that_fails_is_tried_again() {
    let mut world = World::new();
    world.start(options()).await;
    world.service("web", json!({}));
    seconds(2).await;
    world.kubernetes.inject(Fault::status(500).resource("leases").verb("update").times(2));
    seconds(5).await;
    assert_eq!(world.addresses("web").len(), 1);
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "cloud-controller-manager");
    seconds(25).await;
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "");
    let requests = world.kubernetes.requests("update", "leases");
    // Until the next periodic comparison with Azure, which takes the lease like all other work.
    seconds(240).await;
    assert_eq!(world.kubernetes.requests("update", "leases"), requests, "released once");
}

#[tokio::test(start_paused = true)]
async fn two_hundred_services_share_one_lease() {
    let mut world = World::new();
    world.cloud.writes_take(Duration::from_secs(30));
    world.start(options()).await;
    for number in 0..200 {
        world.service(&format!("web-{number}"), json!({}));
    }
    seconds(60).await;
    assert_eq!(world.addresses("web-199").len(), 1);
    let requests = |verb: &str| world.kubernetes.requests(verb, "leases");
    assert_eq!(
        (requests("create"), requests("update"), requests("get")),
        (1, 1, 2),
        "taken and released once"
    );
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_work_lasts() {
    let mut world = World::new();
    world.cloud.writes_take(Duration::from_secs(3000));
    world.start(options()).await;
    world.service("web", json!({}));
    for _ in 0..9 {
        seconds(301).await;
        let renewed: jiff::Timestamp = lease(&world)["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
        let age = world.kubernetes.now().duration_since(renewed).as_secs();
        assert!(age <= 310, "{age} s");
    }
    seconds(400).await;
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn waiting_services_share_one_refusal() {
    let mut world = World::new();
    foreign(&world, "aks-rp", 0, json!({}));
    world.start(options()).await;
    for number in 0..100 {
        world.service(&format!("web-{number}"), json!({}));
    }
    seconds(1).await;
    assert!(
        world.kubernetes.requests("get", "leases") <= 10,
        "{}",
        world.kubernetes.requests("get", "leases")
    );
}

#[tokio::test(start_paused = true)]
async fn deletions_and_node_changes_hold_the_lease_too() {
    let mut world = World::new();
    world.start(options()).await;
    world.service("web", json!({}));
    seconds(60).await;
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "");
    world.cloud.writes_take(Duration::from_secs(30));
    world.node("n2", json!({}));
    seconds(1).await;
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "cloud-controller-manager");
    seconds(60).await;
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "");
    world.delete("web");
    seconds(1).await;
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "cloud-controller-manager");
    seconds(60).await;
    assert!(world.get("web").is_null());
    assert_eq!(lease(&world)["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_the_lease_nothing_is_written() {
    let mut world = World::new();
    world.kubernetes.inject(Fault::status(403).resource("leases").times(100));
    world.start(options()).await;
    world.service("web", json!({}));
    seconds(100).await;
    assert_eq!(world.cloud.calls(), []);
    assert_eq!(world.reasons("web").last().unwrap(), "SyncLoadBalancerFailed");
}
