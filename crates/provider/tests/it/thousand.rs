//! The cost of one change in a cluster of a thousand Services and a thousand nodes.

use std::sync::Arc;

use azure_simulator::Options;
use cloud::LogicalTime;
use futures::future::join_all;
use k8s::Service;
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape};

use crate::world::*;

const SERVICES: usize = 1_000;
const NODES_OF_A_SET: u64 = 500;

/// Two scale sets, in an Azure without throttling, because the test counts requests.
fn world() -> World {
    let pools = ["one", "two"].map(|name| NodePool::new(name, name, NODES_OF_A_SET));
    World::laid_out(
        &Shape { pools: pools.to_vec(), ..shape() },
        Options { budgets: None, ..Options::default() },
    )
}

/// Every other Service is internal: a load balancer has 600 frontends.
fn nth(number: usize) -> Service {
    let service = service(&format!("s{number:04}"), &[80]);
    if number.is_multiple_of(2) { service } else { internal(service) }
}

async fn ensure_all(world: &World, program: &Program) {
    let services: Vec<_> = (0..SERVICES).map(|number| world.apply(program, nth(number))).collect();
    let served = services.iter().map(|service| world.ensure(program, service));
    for served in join_all(served).await {
        served.unwrap();
    }
}

fn scale(world: &World, program: &Program, machines: u64) {
    world.azure.scale(&id("virtualMachineScaleSets", "two"), machines).unwrap();
    let before = world.nodes.lock().clone();
    world.register_nodes();
    let after = world.nodes.lock();
    for node in before.iter().filter(|old| !after.iter().any(|new| new.name() == old.name())) {
        program.provider.state().remove_node(node.name());
    }
    for node in after.iter().filter(|new| !before.iter().any(|old| old.name() == new.name())) {
        program.provider.state().apply_node(Arc::clone(node));
    }
}

/// The writes for one new node, one deleted node, and a restart.
async fn writes_of_changes(config: &Value) -> [Vec<String>; 3] {
    let world = world();
    let program = world.start_configured(config);
    ensure_all(&world, &program).await;
    let mut writes = Vec::new();
    for machines in [NODES_OF_A_SET + 1, NODES_OF_A_SET] {
        world.azure.clear_journal();
        scale(&world, &program, machines);
        world.azure.clear_journal();
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        writes.push(world.all_writes());
    }
    world.azure.clear_journal();
    let again = world.start_configured(config);
    ensure_all(&world, &again).await;
    again.provider.update_nodes(LogicalTime::now()).await.unwrap();
    let [come, gone] = [writes.remove(0), writes.remove(0)];
    [come, gone, world.all_writes()]
}

fn is_of(kind: &str) -> impl Fn(&String) -> bool {
    let part = format!("/{kind}/");
    move |write| write.contains(&part)
}

/// LB-187: with pools of addresses, a node that joins or leaves is one write for each load balancer, of a thousand
/// Services together; a restart writes nothing.
#[tokio::test(start_paused = true)]
#[ignore = "a thousand Services and nodes take a minute without optimisation: .ci/run runs it"]
async fn one_node_among_a_thousand_is_one_write_for_each_load_balancer() {
    let by_address = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
    let [come, gone, again] = writes_of_changes(&by_address).await;
    for writes in [come, gone] {
        assert_eq!(writes.len(), 2, "{writes:#?}");
        assert!(writes.iter().all(is_of("loadBalancers")), "{writes:#?}");
    }
    assert_eq!(again, [""; 0]);
}

/// LB-038: with pools of interfaces, a new node is at most one write of its machine, and a deleted node costs none.
#[tokio::test(start_paused = true)]
#[ignore = "a thousand Services and nodes take a minute without optimisation: .ci/run runs it"]
async fn one_node_among_a_thousand_is_one_write_for_its_machine() {
    let [come, gone, again] = writes_of_changes(&json!({})).await;
    assert!(come.len() <= 1 && come.iter().all(is_of("virtualMachines")), "{come:#?}");
    assert_eq!(gone, [""; 0]);
    assert_eq!(again, [""; 0]);
}

/// LB-242, LB-248: with several load balancers it is one write for those that the node belongs to, and none for others.
#[tokio::test(start_paused = true)]
#[ignore = "a thousand Services and nodes take a minute without optimisation: .ci/run runs it"]
async fn one_node_among_a_thousand_is_one_write_for_the_load_balancers_that_have_it() {
    let config = json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": [
            {"name": "kube", "primaryVMSet": "one"}, {"name": "second", "primaryVMSet": "two"},
        ],
    });
    let [come, gone, again] = writes_of_changes(&config).await;
    for writes in [come, gone] {
        assert_eq!(writes.len(), 2, "{writes:#?}");
        assert!(writes.iter().all(|write| write.contains("/loadBalancers/second")), "{writes:#?}");
    }
    assert_eq!(again, [""; 0]);
}

/// LB-414: Services whose packets arrive at nodes contain a thousand nodes each, and Azure accepts the security group:
/// adjacent nodes are one prefix. A restart writes nothing.
#[tokio::test(start_paused = true)]
async fn lb_414_services_without_floating_ip_fit_into_a_security_group() {
    let world = world();
    let config = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
    let at_nodes = |number: usize| {
        let service = service(&format!("s{number}"), &[80 + i32::try_from(number).unwrap()]);
        annotated(service, "azure-disable-load-balancer-floating-ip", "true")
    };
    let program = world.start_configured(&config);
    for number in 0..8 {
        world.serve(&program, at_nodes(number)).await.unwrap();
    }
    let group = world.documents(SECURITY_GROUPS).remove(0);
    let rules = group["properties"]["securityRules"].as_array().unwrap().clone();
    let count =
        |rule: &Value| rule["properties"]["destinationAddressPrefixes"].as_array().map_or(1, Vec::len);
    assert_eq!(rules.len(), 8);
    assert!(
        rules.iter().map(count).sum::<usize>() <= 4000,
        "{:?}",
        rules.iter().map(count).collect::<Vec<_>>()
    );
    world.azure.clear_journal();
    let again = world.start_configured(&config);
    for number in 0..8 {
        world.ensure(&again, &world.stored(&at_nodes(number))).await.unwrap();
    }
    assert_eq!(world.all_writes(), [""; 0]);
}
