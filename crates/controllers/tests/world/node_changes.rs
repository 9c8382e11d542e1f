use std::collections::BTreeMap;

use cloud::UpdateError;
use k8s::ObjectKey;
use serde_json::json;

use crate::cloud::{Call, retry};
use crate::world::{World, seconds};

/// NODE-087.
#[tokio::test(start_paused = true)]
async fn node_087_load_balancers_follow_real_changes_of_the_node_set_only() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    world.service("api", json!({}));
    seconds(1).await;
    assert_eq!(world.cloud.updates().len(), 0, "every Service was ensured with these nodes");
    world.ready("n1", "Unknown");
    world.set_taints("n1", json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]));
    seconds(1).await;
    assert_eq!(world.cloud.updates().len(), 0, "readiness and the autoscaler's taint");
    world.set_taints("n1", json!([]));
    seconds(1).await;
    world.node("n2", json!({}));
    seconds(1).await;
    assert_eq!(world.cloud.updates(), [["n1", "n2"]], "a node was added: once for all Services");
    for name in ["web", "api"] {
        let event = "service-controller Normal UpdatedLoadBalancer: Updated load balancer with new hosts";
        assert_eq!(world.events(name).last().unwrap(), event);
    }
    let label = json!({"metadata": {"labels": {k8s::names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS: "true"}}});
    world.kubernetes.merge("Node", "", "n2", &label).unwrap();
    seconds(1).await;
    assert_eq!(world.cloud.updates().len(), 2, "excluded");
    world.kubernetes.delete("Node", "", "n2").unwrap();
    seconds(1).await;
    assert_eq!(world.cloud.updates().len(), 2, "it was no member any more");
    world.kubernetes.delete("Node", "", "n1").unwrap();
    seconds(1).await;
    assert_eq!(world.cloud.updates().len(), 3, "deleted");
    assert_eq!(world.reasons("web").last().unwrap(), "UnAvailableLoadBalancer");
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_nodes_is_one_or_two_updates() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.cloud.writes_take(std::time::Duration::from_secs(20));
    for number in 0..100 {
        world.node(&format!("m{number:03}"), json!({}));
    }
    seconds(120).await;
    let updates = world.cloud.updates();
    assert!(updates.len() <= 2, "{} updates", updates.len());
    assert_eq!(updates.last().unwrap().len(), 101);
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_is_told_and_tried_again() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.cloud.fail_updates([retry("AnotherOperationInProgress", None), retry("TooManyRequests", Some(42))]);
    for number in 0..25 {
        world.node(&format!("m{number:03}"), json!({}));
    }
    seconds(100).await;
    let times = world.cloud.times(|call| matches!(call, Call::UpdateNodes(_)));
    assert_eq!(times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [5, 42]);
    let failed: Vec<_> = (world.events("web").into_iter())
        .filter(|event| event.contains("Warning UpdateLoadBalancerFailed"))
        .collect();
    assert_eq!(failed.len(), 2);
    let limited = "m018 m019] [node names limited, total number of nodes: 26], error: ";
    let list = "Error updating load balancer with new hosts [m000 m001";
    for (event, error) in failed.iter().zip(["AnotherOperationInProgress", "TooManyRequests"]) {
        assert!(event.contains(list) && event.ends_with(&format!("{limited}{error}")), "{event}");
    }
    assert_eq!(world.reasons("web").last().unwrap(), "UpdatedLoadBalancer");
}

/// One of several load balancers fails: only its Services get an event, each time; the others have their nodes, and get
/// one event about that.
#[tokio::test(start_paused = true)]
async fn a_failed_load_balancer_is_told_to_those_that_live_on_it() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    world.service("api", json!({}));
    seconds(1).await;
    let of_web =
        BTreeMap::from([(ObjectKey::new("default", "web"), "load balancer second: not you".to_owned())]);
    let error = retry("load balancer second: not you", Some(30));
    let failure = UpdateError { error, services: Some(of_web) };
    world.cloud.fail_updates([failure.clone(), failure]);
    world.node("n2", json!({}));
    seconds(40).await;
    assert_eq!(world.count_of("web", "UpdateLoadBalancerFailed"), 2);
    assert!(world.events("web").last().unwrap().ends_with("error: load balancer second: not you"));
    assert_eq!(world.count_of("api", "UpdateLoadBalancerFailed"), 0, "its load balancer has the node");
    assert_eq!(world.count_of("api", "UpdatedLoadBalancer"), 1);
    seconds(40).await;
    assert_eq!(world.reasons("web").last().unwrap(), "UpdatedLoadBalancer");
    assert_eq!(world.count_of("api", "UpdatedLoadBalancer"), 1);
    // The next change is reported again.
    world.node("n3", json!({}));
    seconds(1).await;
    assert_eq!(world.count_of("api", "UpdatedLoadBalancer"), 2);
}

#[tokio::test(start_paused = true)]
async fn nodes_do_not_matter_without_services() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.node("n2", json!({}));
    seconds(60).await;
    assert_eq!(world.cloud.calls(), []);
}

/// A Service whose current state is refused still has its earlier load balancer.
#[tokio::test(start_paused = true)]
async fn the_load_balancer_of_a_refused_service_follows_the_nodes_too() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(world.addresses("web").len(), 1);
    world.cloud.refuse("web", "the annotation says nonsense");
    world.change("web", json!({"metadata": {"annotations": {"x": "nonsense"}}}));
    seconds(1).await;
    assert_eq!(world.reasons("web").last().unwrap(), "SyncLoadBalancerFailed");
    world.node("n2", json!({}));
    seconds(1).await;
    assert_eq!(world.cloud.updates(), [["n1", "n2"]]);
    assert_eq!(world.count_of("web", "UpdatedLoadBalancer"), 0, "it is not as its owner wants it");
}

/// The failure of one waiting Service is reported only on that Service, and keeps no node out of the pools of others.
#[tokio::test(start_paused = true)]
async fn a_service_that_follows_nodes_and_waits_fails_no_change_of_nodes() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    world.service("named", json!({}));
    seconds(1).await;
    world.cloud.follow_nodes("named");
    world.cloud.fail("named", (0..20).map(|_| retry("DnsRecordInUse", None)));
    let before = (world.cloud.ensures("web"), world.cloud.ensures("named"));
    world.node("n2", json!({}));
    seconds(1).await;
    assert_eq!(world.cloud.updates(), [["n1", "n2"]]);
    let now = (world.cloud.ensures("web"), world.cloud.ensures("named"));
    assert_eq!(now, (before.0, before.1 + 1), "only the one that follows nodes is ensured");
    seconds(600).await;
    assert_eq!(world.cloud.updates().len(), 1, "the change is done");
    for name in ["web", "named"] {
        assert_eq!(world.count_of(name, "UpdateLoadBalancerFailed"), 0, "{name}");
    }
    assert_eq!(world.reasons("web").last().unwrap(), "UpdatedLoadBalancer");
    assert_eq!(world.reasons("named").last().unwrap(), "SyncLoadBalancerFailed");
}

/// A node appears while a Service that follows nodes is being reconciled: it is reconciled once more afterwards.
#[tokio::test(start_paused = true)]
async fn a_service_that_follows_nodes_is_never_worked_on_twice_at_a_time() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.cloud.follow_nodes("web");
    world.service("web", json!({}));
    seconds(1).await;
    world.cloud.writes_take(std::time::Duration::from_secs(20));
    world.change("web", json!({"metadata": {"annotations": {"x": "y"}}}));
    seconds(1).await;
    world.node("n2", json!({}));
    seconds(120).await;
    let ensured = world.cloud.times(|call| matches!(call, Call::Ensure(..)));
    assert_eq!(ensured.len(), 3, "{ensured:?}");
    assert!(ensured[2] - ensured[1] >= 20, "after the end of the work that ran: {ensured:?}");
}

/// A node is deleted and comes back while load balancers are being updated: an update with the set in between may have
/// left it out, and is repeated.
#[tokio::test(start_paused = true)]
async fn a_set_of_nodes_that_comes_back_is_a_change() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.cloud.follow_nodes("web");
    world.service("web", json!({}));
    world.node("n2", json!({}));
    seconds(1).await;
    let exclude = |value: serde_json::Value| json!({"metadata": {"labels": {k8s::names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS: value}}});
    world.cloud.writes_take(std::time::Duration::from_secs(20));
    world.node("n3", json!({}));
    seconds(5).await;
    let (updates, ensures) = (world.cloud.updates().len(), world.cloud.ensures("web"));
    world.kubernetes.merge("Node", "", "n2", &exclude("true".into())).unwrap();
    seconds(5).await;
    world.kubernetes.merge("Node", "", "n2", &exclude(serde_json::Value::Null)).unwrap();
    seconds(120).await;
    assert_eq!(world.cloud.updates().len(), updates + 1, "the set is as it was, but was another in between");
    assert_eq!(world.cloud.ensures("web"), ensures + 1);
}

/// A change that failed in part may have removed a node, although the set is as before by now.
#[tokio::test(start_paused = true)]
async fn what_a_failed_change_has_done_is_undone() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.cloud.fail_updates((0..2).map(|_| retry("half of it", Some(30))));
    world.node("n2", json!({}));
    seconds(1).await;
    assert_eq!(world.cloud.updates(), [["n1", "n2"]]);
    world.kubernetes.delete("Node", "", "n2").unwrap();
    seconds(120).await;
    assert_eq!(world.cloud.updates().last().unwrap(), &["n1"]);
}

/// LB-035: a Service that followed nodes is deleted when they change: no call is made for it.
#[tokio::test(start_paused = true)]
async fn lb_035_no_change_of_nodes_concerns_a_service_that_is_gone() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.cloud.follow_nodes("web");
    world.service("web", json!({}));
    world.service("api", json!({}));
    seconds(1).await;
    world.delete("web");
    seconds(60).await;
    assert!(world.get("web").is_null());
    let ensured = world.cloud.ensures("web");
    world.node("n2", json!({}));
    seconds(60).await;
    assert_eq!((world.cloud.updates().len(), world.cloud.ensures("web")), (1, ensured));
    world.delete("api");
    seconds(60).await;
    let calls = world.cloud.calls().len();
    world.node("n3", json!({}));
    seconds(60).await;
    assert_eq!(world.cloud.calls().len(), calls, "no Service is left");
}
