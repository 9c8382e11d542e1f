//! Several load balancers that share the nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_simulator::{Fault, FaultAction};
use cloud::{Ensured, LoadBalancers, LogicalTime, ServiceError, UpdateError};
use k8s::{EndpointSlice, Service};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape, StandaloneMachine};
use tokio::time::{Instant, sleep};

use crate::world::*;

const NAMES: [&str; 3] = ["kube", "second", "third"];

/// Three scale sets of two machines each.
fn three_sets() -> World {
    let pools = ["one", "two", "three"].map(|name| NodePool::new(name, name, 2));
    World::of(&Shape { pools: pools.to_vec(), ..shape() })
}

/// An entry for each load balancer, with these primary sets.
fn entries(sets: [&str; 3]) -> Value {
    let entry = |(name, set): (&str, &str)| json!({"name": name, "primaryVMSet": set});
    json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": NAMES.into_iter().zip(sets).map(entry).collect::<Vec<_>>(),
    })
}

fn on(name: &str, load_balancer: &str, port: i32) -> Service {
    annotated(service(name, &[port]), "azure-load-balancer-configurations", load_balancer)
}

/// A Service on each load balancer.
async fn serve_three(world: &World, program: &Program) {
    for (number, name) in (1..).zip(NAMES) {
        world.serve(program, on(&format!("on-{name}"), name, 80 + number)).await.unwrap();
    }
}

/// The nodes in the pools of each load balancer.
fn members(world: &World) -> BTreeMap<String, BTreeSet<String>> {
    let pools = |document: &Value| -> BTreeSet<String> {
        let pools = document["properties"]["backendAddressPools"].as_array().cloned().unwrap_or_default();
        let entries = pools.iter().flat_map(|pool| {
            pool["properties"]["loadBalancerBackendAddresses"].as_array().cloned().unwrap_or_default()
        });
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let documents = world.documents(LOAD_BALANCERS);
    documents.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), pools(one))).collect()
}

/// The scale sets whose nodes are behind a load balancer.
fn sets(world: &World, load_balancer: &str) -> BTreeSet<String> {
    let members = members(world).remove(load_balancer).unwrap_or_default();
    let set_of = |node: &String| ["one", "two", "three"].into_iter().find(|set| node.starts_with(set));
    members.iter().map(|node| set_of(node).unwrap().to_owned()).collect()
}

fn only(set: &str) -> BTreeSet<String> {
    [set.to_owned()].into()
}

fn refuse(world: &World, load_balancer: &str) {
    let refused =
        FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "not you".into() };
    let fault = Fault::new(refused).on_method("PUT").on_type(LOAD_BALANCERS);
    world.azure.inject(Fault { resource: Some(load_balancer.to_owned()), ..fault });
}

/// How often a load balancer was written since the journal was cleared, refused writes included.
fn puts(world: &World, load_balancer: &str) -> usize {
    let end = format!("/loadBalancers/{load_balancer} ");
    world.all_writes().iter().filter(|write| write.starts_with("PUT ") && write.contains(&end)).count()
}

/// Records the deletion of a node, as a Kubernetes event does.
fn lose(world: &World, program: &Program, set: &str) {
    let mut nodes = world.nodes.lock();
    let at = nodes.iter().position(|node| node.name().starts_with(set)).unwrap();
    program.provider.state().remove_node(nodes.remove(at).name());
}

async fn again(
    world: &World,
    program: &Program,
    name: &str,
    load_balancer: &str,
    port: i32,
) -> Result<Ensured, ServiceError> {
    world.serve(program, on(name, load_balancer, port)).await
}

/// LB-436: a load balancer that Azure refuses to write fails the update of nodes and only the Services on it; it is
/// tried once a minute, however many Services request it.
#[tokio::test(start_paused = true)]
async fn lb_436_one_load_balancer_that_cannot_be_written_fails_its_own_services_alone() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    refuse(&world, "third");
    lose(&world, &program, "three");
    lose(&world, &program, "one");
    world.azure.clear_journal();
    let failure = program.provider.update_nodes(LogicalTime::now()).await.unwrap_err();
    assert!(failure.to_string().contains("third") && failure.to_string().contains("not you"), "{failure}");
    let told: Vec<_> =
        failure.services.unwrap().into_iter().map(|(key, why)| (key.name.to_string(), why)).collect();
    assert_eq!(told, [("on-third".to_owned(), failure.error.to_string())], "no other Service is concerned");
    assert_eq!(NAMES.map(|name| members(&world)[name].len()), [1, 2, 2], "the others have followed");
    for number in 0..20 {
        let name = format!("more-{number}");
        again(&world, &program, &name, ["kube", "second"][number % 2], 100).await.unwrap();
    }
    assert_eq!(puts(&world, "third"), 1, "{:#?}", world.all_writes());
    let own = again(&world, &program, "on-third", "third", 83).await.unwrap_err();
    assert!(matches!(&own, ServiceError::Retry { message, .. } if message.contains("not you")), "{own}");
    assert_eq!(puts(&world, "third"), 1, "nothing else is wanted than what was refused");
    assert!(program.provider.waits_for_machines());

    world.azure.clear_faults();
    sleep(Duration::from_secs(61)).await;
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert_eq!(NAMES.map(|name| members(&world)[name].len()), [1, 2, 1]);
    assert!(!program.provider.waits_for_machines());
    again(&world, &program, "on-third", "third", 83).await.unwrap();
}

/// LB-436: while a write of a load balancer does not end, the Services of others wait for it no longer than Azure
/// usually takes, and only the first of them.
#[tokio::test(start_paused = true)]
async fn lb_436_a_slow_load_balancer_holds_up_nobody_elses_services() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    let slow = Fault::new(FaultAction::SlowOperation { ms: 20 * 60 * 1000 })
        .on_type(LOAD_BALANCERS)
        .on_method("PUT");
    world.azure.inject(Fault { resource: Some("third".to_owned()), ..slow });
    lose(&world, &program, "three");
    lose(&world, &program, "one");
    let begin = Instant::now();
    let failure = program.provider.update_nodes(LogicalTime::now()).await.unwrap_err();
    assert!(failure.to_string().contains("third"), "{failure}");
    assert!(begin.elapsed() <= Duration::from_secs(61), "{:?}", begin.elapsed());
    assert_eq!(members(&world)["kube"].len(), 1);
    for number in 0..5 {
        let begin = Instant::now();
        again(&world, &program, &format!("more-{number}"), "kube", 100).await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10), "{number}: {:?}", begin.elapsed());
    }
}

/// LB-436: a node that is deleted while its load balancer is written, and comes back later, is behind it again.
#[tokio::test(start_paused = true)]
async fn lb_436_a_node_that_goes_during_a_write_and_comes_back_is_a_member_again() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    let node = world.nodes.lock().iter().find(|node| node.name().starts_with("three")).unwrap().clone();
    let state = program.provider.state();
    state.remove_node(node.name());
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(members(&world)["third"].len(), 1);
    world.slow();
    state.apply_node(node.clone());
    let gone = async {
        sleep(Duration::from_secs(5)).await;
        state.remove_node(node.name());
    };
    let (updated, ()) = tokio::join!(program.provider.update_nodes(LogicalTime::now()), gone);
    updated.unwrap();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(members(&world)["third"].len(), 1, "it has gone");
    state.apply_node(node);
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(members(&world)["third"].len(), 2, "it is back");
}

/// LB-436: nodes that come and go all the time delay no Service.
#[tokio::test(start_paused = true)]
async fn lb_436_a_service_is_served_while_nodes_come_and_go() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    world.slow();
    let all = world.nodes.lock().clone();
    let state = program.provider.state();
    let churn = async {
        for round in 0.. {
            let node = &all[round % all.len()];
            state.remove_node(node.name());
            futures::join!(program.provider.update_nodes(LogicalTime::now()), sleep(Duration::from_secs(7)))
                .0
                .ok();
            state.apply_node(node.clone());
        }
    };
    let begun = Instant::now();
    tokio::select! {
        () = churn => unreachable!("it never ends"),
        served = again(&world, &program, "newcomer", "kube", 100) => drop(served.unwrap()),
    }
    assert!(begun.elapsed() < Duration::from_secs(150), "{:?}", begun.elapsed());
}

/// LB-436: a write that fails when no task waits for it any more is retried by the update of nodes.
#[tokio::test(start_paused = true)]
async fn lb_436_a_write_that_fails_late_is_not_forgotten() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    assert!(!program.provider.waits_for_machines());
    let slow =
        Fault::new(FaultAction::SlowOperation { ms: 5 * 60 * 1000 }).on_type(LOAD_BALANCERS).on_method("PUT");
    let slow = Fault { resource: Some("third".to_owned()), ..slow };
    world.azure.inject(slow);
    lose(&world, &program, "three");
    program.provider.update_nodes(LogicalTime::now()).await.unwrap_err();
    world.azure.clear_faults();
    refuse(&world, "third");
    lose(&world, &program, "three");
    sleep(Duration::from_secs(30 * 60)).await;
    assert!(program.provider.waits_for_machines(), "a retry is due");
}

/// LB-434: the scale sets rotate. No node is ever behind two load balancers; one that cannot be written keeps its
/// nodes, and the others get the free ones; when it can be written again all reach their desired state.
#[tokio::test(start_paused = true)]
async fn lb_434_nodes_go_round_although_one_load_balancer_cannot_be_written() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    assert_eq!(NAMES.map(|name| sets(&world, name)), ["one", "two", "three"].map(only));
    world.slow();
    drop(program);
    let program = world.start_configured(&entries(["three", "one", "two"]));
    refuse(&world, "third");
    let watched = async |work: &mut (dyn Future<Output = Result<(), UpdateError>> + Unpin)| loop {
        tokio::select! {
            done = &mut *work => return done,
            () = sleep(Duration::from_millis(500)) => {}
        }
        let all = members(&world);
        let names: Vec<&String> = all.values().flatten().collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{all:?}");
    };
    world.azure.clear_journal();
    let mut update = Box::pin(program.provider.update_nodes(LogicalTime::now()));
    watched(&mut update).await.unwrap_err();
    drop(update);
    let none = BTreeSet::new();
    assert_eq!(NAMES.map(|name| sets(&world, name)), [none, only("one"), only("three")]);
    // Nodes that second has lost are then free for third: that is a new desired state to try.
    assert_eq!(NAMES.map(|name| puts(&world, name)), [1, 2, 2]);
    world.azure.clear_faults();
    sleep(Duration::from_secs(61)).await;
    let mut update = Box::pin(program.provider.update_nodes(LogicalTime::now()));
    watched(&mut update).await.unwrap();
    drop(update);
    assert_eq!(NAMES.map(|name| sets(&world, name)), ["three", "one", "two"].map(only));
    assert_eq!(NAMES.map(|name| puts(&world, name)), [2, 2, 3]);
}

/// LB-438: a load balancer without nodes, because others cannot release them, serves no traffic: its Services get an
/// error that names the holders and the reason, and are retried.
#[tokio::test(start_paused = true)]
async fn lb_438_a_load_balancer_without_nodes_says_who_has_them() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    for (name, port) in [("kube", 81), ("second", 82)] {
        again(&world, &program, &format!("on-{name}"), name, port).await.unwrap();
    }
    assert_eq!(["kube", "second"].map(|name| members(&world)[name].len()), [4, 2], "third does not exist");
    refuse(&world, "kube");
    let told = again(&world, &program, "on-third", "third", 83).await.unwrap_err();
    let ServiceError::Retry { message, after, .. } = told else { panic!("{told:?}") };
    assert!(message.contains("load balancer third has no nodes"), "{message}");
    assert!(message.contains("load balancer kube has 2 that belong to it"), "{message}");
    assert!(message.contains("AuthorizationFailed") && message.contains("not you"), "{message}");
    let after = after.unwrap();
    assert!(after <= Duration::from_secs(60) && !after.is_zero(), "{after:?}");
    assert!(program.provider.waits_for_machines());
    again(&world, &program, "more", "second", 91).await.unwrap();
    world.azure.clear_faults();
    sleep(Duration::from_secs(61)).await;
    again(&world, &program, "on-third", "third", 83).await.unwrap();
    assert_eq!(NAMES.map(|name| sets(&world, name)), ["one", "two", "three"].map(only));
}

/// LB-437: nodes whose machines cannot be listed are retried; they fail no Service.
#[tokio::test(start_paused = true)]
async fn lb_437_nodes_whose_sets_are_not_known_are_waited_for() {
    let machines = vec![StandaloneMachine::new("alone")];
    let world = World::of(&Shape { machines, ..shape() });
    let program = world.start_configured(&entries(["pool", "two", "three"]));
    let busy =
        FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no list".into() };
    world.azure.inject(Fault::new(busy).on_method("GET").on_type(MACHINES));
    again(&world, &program, "web", "kube", 80).await.unwrap();
    assert_eq!(members(&world)["kube"].len(), 3);
    assert!(program.provider.waits_for_machines());
    let failure = program.provider.update_nodes(LogicalTime::now()).await.unwrap_err();
    assert!(failure.to_string().contains("no list"), "{failure}");
    world.azure.clear_faults();
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert_eq!(members(&world)["kube"].len(), 4);
    assert!(!program.provider.waits_for_machines());
}

/// An update of nodes uses data read after the event, and does nothing while not all nodes are known.
#[tokio::test(start_paused = true)]
async fn an_update_of_nodes_looks_at_azure_and_needs_all_nodes() {
    let world = three_sets();
    let program = world.start_configured(&entries(["one", "two", "three"]));
    serve_three(&world, &program).await;
    let before = members(&world);
    let second = id("loadBalancers", "second");
    let empty = |document: &mut Value| {
        document["properties"]["backendAddressPools"][0]["properties"]["loadBalancerBackendAddresses"] =
            json!([]);
    };
    world.azure.edit(&second, empty).unwrap();
    assert_eq!(members(&world)["second"].len(), 0);
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(members(&world), before);

    let blind = world.start_before_nodes_are_known(&entries(["two", "one", "three"]));
    world.azure.clear_journal();
    let failure = blind.provider.update_nodes(LogicalTime::now()).await.unwrap_err();
    assert!(failure.to_string().contains("nodes are not all known"), "{failure}");
    assert_eq!(world.all_writes(), [""; 0]);
}

/// LB-251: endpoints that move while the load balancer is being created are in the pool afterwards.
#[tokio::test(start_paused = true)]
async fn lb_251_endpoints_that_move_while_the_load_balancer_is_made_are_not_lost() {
    let world = World::new();
    let program = world.start_configured(&entries(["pool", "two", "three"]));
    program.provider.state().endpoints_are_synced();
    let nodes: Vec<String> = world.nodes.lock().iter().map(|node| node.name().to_owned()).collect();
    let move_to = |node: &str| {
        let slice: EndpointSlice = serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"nodeName": node}],
        }))
        .unwrap();
        program.provider.state().apply_endpoint_slice(&slice);
    };
    move_to(&nodes[0]);
    world.slow();
    let mut local = service("web", &[80]);
    local.spec.external_traffic_policy = "Local".to_owned();
    local.spec.health_check_node_port = 30_080;
    let local = world.apply(&program, local);
    let serve = world.ensure(&program, &local);
    let follow = async {
        // Its public IP takes three seconds, the load balancer ten.
        sleep(Duration::from_secs(8)).await;
        assert_eq!(world.documents(PUBLIC_IPS).len(), 1);
        move_to(&nodes[1]);
        program.provider.update_local_pools(&[key("web")]).await
    };
    let (served, answers) = futures::join!(serve, follow);
    served.unwrap();
    let answers: Vec<_> = answers.into_iter().map(|(key, answer)| (key.name.to_string(), answer)).collect();
    assert_eq!(answers, [("web".to_owned(), Ok(()))]);
    assert_eq!(members(&world)["kube"], BTreeSet::from([nodes[1].clone()]));
}
