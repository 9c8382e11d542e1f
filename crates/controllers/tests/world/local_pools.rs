//! Services with pools of their own: moved endpoints are reported to the cloud.

use std::time::Duration;

use controllers::Options;
use serde_json::{Value, json};

use crate::cloud::{Call, retry};
use crate::world::{World, seconds};

const UPDATED: &str = "LoadBalancerBackendPoolUpdated";
const FAILED: &str = "LoadBalancerBackendPoolUpdateFailed";

/// A Service with traffic policy Local and an endpoint on `n1`.
fn local(world: &World, name: &str) {
    world.service(name, json!({"spec": {"externalTrafficPolicy": "Local", "selector": null}}));
    let slice = slice(name, &["n1"]);
    world.kubernetes.create(slice).unwrap();
}

fn slice(name: &str, nodes: &[&str]) -> Value {
    let endpoint = |(number, node): (usize, &&str)| json!({"addresses": [format!("10.244.0.{}", number + 1)], "nodeName": node});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"namespace": "default", "name": name, "labels": {"kubernetes.io/service-name": name}},
        "endpoints": nodes.iter().enumerate().map(endpoint).collect::<Vec<_>>(), "ports": [],
    })
}

fn move_to(world: &World, name: &str, nodes: &[&str]) {
    let endpoints = &slice(name, nodes)["endpoints"];
    world.kubernetes.merge("EndpointSlice", "default", name, &json!({"endpoints": endpoints})).unwrap();
}

async fn started(options: Options) -> World {
    let mut world = World::new();
    world.cloud.follow_endpoints(Duration::from_secs(30));
    local(&world, "web");
    local(&world, "shop");
    world.start(options).await;
    seconds(20).await;
    world
}

fn told(world: &World, name: &str) -> Vec<String> {
    let reasons = world.reasons(name);
    reasons.into_iter().filter(|reason| reason.starts_with("LoadBalancerBackendPool")).collect()
}

fn pool(name: &str, nodes: &[&str]) -> (String, Vec<String>) {
    (name.to_owned(), nodes.iter().map(|node| (*node).to_owned()).collect())
}

/// LB-251: moves within an interval are one call, and an event on each Service; a start causes none.
#[tokio::test(start_paused = true)]
async fn lb_251_moved_endpoints_are_gathered_for_an_interval() {
    let mut world = started(World::services()).await;
    seconds(60).await;
    assert_eq!(world.cloud.local_pools(), [[]; 0], "every Service was ensured with its endpoints");
    move_to(&world, "web", &["n2"]);
    seconds(10).await;
    move_to(&world, "shop", &["n1", "n2"]);
    move_to(&world, "web", &["n3"]);
    seconds(19).await;
    assert_eq!(world.cloud.local_pools(), [[]; 0]);
    seconds(2).await;
    assert_eq!(world.cloud.local_pools(), [[pool("shop", &["n1", "n2"]), pool("web", &["n3"])]]);
    assert_eq!((told(&world, "web"), told(&world, "shop")), (vec![UPDATED.into()], vec![UPDATED.into()]));
    // The same nodes in another order, and a second slice with one of them, are no change.
    move_to(&world, "shop", &["n2", "n1"]);
    let mut more = slice("shop", &["n1"]);
    more["metadata"]["name"] = json!("shop-more");
    world.kubernetes.create(more).unwrap();
    seconds(60).await;
    assert_eq!(world.cloud.local_pools().len(), 1);
    world.restart(World::services()).await;
    seconds(60).await;
    assert_eq!(world.cloud.local_pools().len(), 1);
}

/// LB-252: a Service without pool in the cloud gets no event.
#[tokio::test(start_paused = true)]
async fn lb_252_without_a_pool_there_is_no_event() {
    let world = started(World::services()).await;
    world.cloud.lose_local_pool("web");
    move_to(&world, "web", &["n2"]);
    seconds(100).await;
    assert_eq!(world.cloud.local_pools().len(), 1);
    assert_eq!(told(&world, "web"), [""; 0]);
}

/// LB-253, LB-254: a failure is reported on its Service alone, and retried after the next interval, with the endpoints
/// at that time.
#[tokio::test(start_paused = true)]
async fn lb_253_lb_254_a_failure_is_told_and_tried_again() {
    let world = started(World::services()).await;
    world.cloud.fail_local_pools("web", [retry("Azure is away", None)]);
    move_to(&world, "web", &["n2"]);
    move_to(&world, "shop", &["n2"]);
    seconds(31).await;
    assert_eq!((told(&world, "web"), told(&world, "shop")), (vec![FAILED.into()], vec![UPDATED.into()]));
    assert!(
        world.events("web").iter().any(|event| event.contains(FAILED) && event.contains("Azure is away"))
    );
    move_to(&world, "web", &["n3"]);
    seconds(30).await;
    assert_eq!(world.cloud.local_pools()[1..], [[pool("web", &["n3"])]]);
    assert_eq!(told(&world, "web"), [FAILED, UPDATED]);
}

/// LB-255 for the controllers: a Service that shares the cluster's pool by now, or was deleted, is not in the call.
#[tokio::test(start_paused = true)]
async fn lb_255_services_without_pools_of_their_own_are_not_asked_for() {
    let world = started(World::services()).await;
    move_to(&world, "web", &["n2"]);
    move_to(&world, "shop", &["n2"]);
    world.change("web", json!({"spec": {"externalTrafficPolicy": "Cluster"}}));
    world.delete("shop");
    seconds(100).await;
    assert_eq!(world.cloud.local_pools(), [[]; 0]);
}

/// LB-256: while another program holds the lease, no call is made, and no change is lost.
#[tokio::test(start_paused = true)]
async fn lb_256_moved_endpoints_wait_for_the_lease() {
    let world = started(Options { resource_lease: true, ..World::services() }).await;
    let now = format!("{:.6}", world.kubernetes.now());
    let held = json!({"spec": {
        "holderIdentity": "aks-rp", "leaseDurationSeconds": 200, "renewTime": now, "acquireTime": now,
    }});
    world.kubernetes.merge("Lease", "kube-system", "aks-managed-resource-locker", &held).unwrap();
    move_to(&world, "web", &["n2"]);
    seconds(190).await;
    assert_eq!(world.cloud.local_pools(), [[]; 0]);
    assert_eq!(told(&world, "web"), [""; 0]);
    seconds(60).await;
    assert_eq!(world.cloud.local_pools(), [[pool("web", &["n2"])]]);
}

/// Endpoints are not needed if all Services share the cluster's pool.
#[tokio::test(start_paused = true)]
async fn endpoints_are_watched_only_where_they_matter() {
    let mut world = World::new();
    local(&world, "web");
    world.start(World::services()).await;
    seconds(60).await;
    move_to(&world, "web", &["n2"]);
    seconds(60).await;
    assert!(!world.cloud.calls().iter().any(|call| matches!(call, Call::UpdateLocalPools(_))));
    let asked = ["list", "watch"].map(|verb| world.kubernetes.requests(verb, "endpointslices"));
    assert_eq!(asked, [0, 0]);
}
