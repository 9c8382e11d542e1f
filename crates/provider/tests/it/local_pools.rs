//! Services with pools of their own that contain the nodes of their endpoints.

use std::collections::BTreeMap;

use azure_simulator::{Fault, FaultAction};
use cloud::{LoadBalancers, ServiceError};
use k8s::{EndpointSlice, Service};
use serde_json::{Value, json};

use crate::world::*;

/// Several load balancers are configured, one of which exists.
fn several() -> Value {
    json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": [{"name": "kube", "primaryVMSet": "pool"}],
    })
}

fn local(name: &str, port: i32) -> Service {
    let mut service = service(name, &[port]);
    service.spec.external_traffic_policy = "Local".to_owned();
    service.spec.health_check_node_port = 30_000 + port;
    service
}

/// A program that knows all endpoints: there are none.
fn start(world: &World) -> Program {
    let program = world.start_configured(&several());
    program.provider.state().endpoints_are_synced();
    program
}

/// Moves the endpoints of a Service to these nodes, counted from 0.
fn move_to(world: &World, program: &Program, service: &str, nodes: &[usize]) {
    let all = world.nodes.lock();
    let endpoints: Vec<_> = nodes.iter().map(|node| json!({"nodeName": all[*node].name()})).collect();
    let key = key(service);
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {"namespace": key.namespace, "name": service, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": endpoints,
    }))
    .unwrap();
    program.provider.state().apply_endpoint_slice(&slice);
}

/// The pools of a load balancer with their members' addresses, except those of the cluster.
fn pools(world: &World, load_balancer: &str) -> BTreeMap<String, Vec<String>> {
    let Some(document) = world.load_balancer(load_balancer) else { return BTreeMap::new() };
    let of = |pool: &Value| {
        let entries = pool["properties"]["loadBalancerBackendAddresses"].as_array().unwrap();
        let address = |entry: &Value| entry["properties"]["ipAddress"].as_str().unwrap().to_owned();
        let mut all: Vec<String> = entries.iter().map(address).collect();
        all.sort();
        (pool["name"].as_str().unwrap().to_owned(), all)
    };
    let pools = document["properties"]["backendAddressPools"].as_array().unwrap().iter().map(of);
    pools.filter(|(name, _)| !name.starts_with("kube")).collect()
}

fn one(name: &str, members: &[&str]) -> BTreeMap<String, Vec<String>> {
    BTreeMap::from([(name.to_owned(), members.iter().map(|one| (*one).to_owned()).collect())])
}

async fn update(program: &Program, names: &[&str]) -> BTreeMap<String, Result<(), ServiceError>> {
    let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
    let answers = program.provider.update_local_pools(&keys).await;
    answers.into_iter().map(|(key, answer)| (key.name.to_string(), answer)).collect()
}

/// LB-250, LB-251: a pool is created with its Service in one write, and follows its endpoints with one write for all
/// Services together; a restart writes nothing.
#[tokio::test(start_paused = true)]
async fn lb_250_lb_251_pools_follow_endpoints_with_one_write() {
    let world = World::new();
    let program = start(&world);
    move_to(&world, &program, "web", &[0]);
    world.serve(&program, local("web", 80)).await.unwrap();
    assert_eq!(pools(&world, "kube"), one("shop-web", &["10.240.0.4"]));
    assert_eq!(world.writes(LOAD_BALANCERS), 1);
    world.serve(&program, local("shop", 81)).await.unwrap();
    world.azure.clear_journal();
    move_to(&world, &program, "web", &[1]);
    move_to(&world, &program, "shop", &[1, 2]);
    let done = update(&program, &["web", "shop"]).await;
    assert_eq!(done.into_iter().collect::<Vec<_>>(), [("shop".into(), Ok(())), ("web".into(), Ok(()))]);
    assert_eq!(world.all_writes().len(), 1, "{:#?}", world.all_writes());
    let mut expected = one("shop-web", &["10.240.0.5"]);
    expected.extend(one("shop-shop", &["10.240.0.5", "10.240.0.6"]));
    assert_eq!(pools(&world, "kube"), expected);
    world.azure.clear_journal();
    assert_eq!(update(&program, &["web", "shop"]).await.len(), 2, "as they should be is a success");
    let again = start(&world);
    move_to(&world, &again, "web", &[1]);
    move_to(&world, &again, "shop", &[2, 1]);
    for name in ["web", "shop"] {
        let service = world.services.lock()[&key(name).to_string()].clone();
        world.ensure(&again, &service).await.unwrap();
    }
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-252: a Service without a pool, because its load balancer does not exist yet, is skipped.
#[tokio::test(start_paused = true)]
async fn lb_252_a_service_without_a_pool_is_passed_over() {
    let world = World::new();
    let program = start(&world);
    world.apply(&program, local("web", 80));
    move_to(&world, &program, "web", &[0]);
    assert!(update(&program, &["web"]).await.is_empty());
    world.serve(&program, service("other", &[81])).await.unwrap();
    world.azure.clear_journal();
    assert!(update(&program, &["web", "gone"]).await.is_empty());
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-253, LB-254: Azure's error is returned; a retry succeeds.
#[tokio::test(start_paused = true)]
async fn lb_253_lb_254_what_azure_refuses_is_told_and_may_be_asked_again() {
    let world = World::new();
    let program = start(&world);
    move_to(&world, &program, "web", &[0]);
    world.serve(&program, local("web", 80)).await.unwrap();
    let refused =
        FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "not you".into() };
    world.azure.inject(Fault::new(refused).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    move_to(&world, &program, "web", &[1]);
    let answer = update(&program, &["web"]).await.remove("web").unwrap();
    assert!(answer.unwrap_err().to_string().contains("not you"));
    assert_eq!(pools(&world, "kube"), one("shop-web", &["10.240.0.4"]));
    update(&program, &["web"]).await.remove("web").unwrap().unwrap();
    assert_eq!(pools(&world, "kube"), one("shop-web", &["10.240.0.5"]));
}

/// LB-255: the pool of a moved Service is updated where the Service is, and nothing is written where it was.
#[tokio::test(start_paused = true)]
async fn lb_255_a_pool_is_filled_where_its_service_is() {
    let world = World::new();
    let program = start(&world);
    move_to(&world, &program, "web", &[0]);
    world.serve(&program, service("stays", &[81])).await.unwrap();
    world.serve(&program, local("web", 80)).await.unwrap();
    world.serve(&program, internal(local("web", 80))).await.unwrap();
    assert_eq!(
        (pools(&world, "kube"), pools(&world, "kube-internal")),
        (BTreeMap::new(), one("shop-web", &["10.240.0.4"]))
    );
    move_to(&world, &program, "web", &[2]);
    world.azure.clear_journal();
    update(&program, &["web"]).await.remove("web").unwrap().unwrap();
    let writes = world.all_writes();
    assert!(writes.len() == 1 && writes[0].contains("kube-internal"), "{writes:?}");
    assert_eq!(
        (pools(&world, "kube"), pools(&world, "kube-internal")),
        (BTreeMap::new(), one("shop-web", &["10.240.0.6"]))
    );
}

/// LB-257, LB-259: the pool is deleted when the Service changes to Cluster, and with the Service; it comes back filled.
#[tokio::test(start_paused = true)]
async fn lb_257_lb_259_a_pool_goes_with_its_service() {
    let world = World::new();
    let program = start(&world);
    move_to(&world, &program, "web", &[0]);
    world.serve(&program, service("stays", &[81])).await.unwrap();
    for _ in 0..2 {
        world.serve(&program, local("web", 80)).await.unwrap();
        assert_eq!(pools(&world, "kube"), one("shop-web", &["10.240.0.4"]));
        world.azure.clear_journal();
        world.serve(&program, service("web", &[80])).await.unwrap();
        assert_eq!((pools(&world, "kube"), world.writes(LOAD_BALANCERS)), (BTreeMap::new(), 1));
    }
    world.serve(&program, local("web", 80)).await.unwrap();
    world.remove(&program, &local("web", 80)).await.unwrap();
    assert_eq!(pools(&world, "kube"), BTreeMap::new());
    assert!(world.load_balancer("kube").is_some());
}

/// Before all endpoints are known no empty pool is created, and none is changed.
#[tokio::test(start_paused = true)]
async fn nothing_is_concluded_from_endpoints_that_are_not_known() {
    let world = World::new();
    let program = start(&world);
    move_to(&world, &program, "web", &[0]);
    world.serve(&program, local("web", 80)).await.unwrap();
    let blind = world.start_configured(&several());
    let web = world.services.lock()[&key("web").to_string()].clone();
    world.azure.clear_journal();
    let failure = world.ensure(&blind, &web).await.unwrap_err();
    assert!(
        matches!(&failure, ServiceError::Retry { message, .. } if message.contains("EndpointSlices")),
        "{failure}"
    );
    assert!(update(&blind, &["web"]).await.remove("web").unwrap().is_err());
    world.serve(&blind, service("other", &[81])).await.unwrap();
    assert_eq!(pools(&world, "kube"), one("shop-web", &["10.240.0.4"]));
    // With one load balancer endpoints are not needed.
    let one = world.start_configured(&json!({}));
    assert_eq!(one.provider.local_pool_interval(), None);
    assert_eq!(program.provider.local_pool_interval().map(|interval| interval.as_secs()), Some(30));
}
