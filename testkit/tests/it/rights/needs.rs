//! What `cerulean rights` prints for a cluster is enough, and no scope has an action that is not needed.

use std::collections::BTreeSet;
use std::time::Duration;

use azure_types::ResourceId;
use k8s::{Node, Service};
use rights::need::{Run, Subject, needs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::{NodePool, StandaloneMachine, World, run, service};

use super::stage::{
    Allowed, MINUTE, allow, builder, connect_customer, give_public_address, linked, refused, without,
};

/// Groups beside that of the cluster.
const GROUPS: [&str; 5] = ["addresses", "balancers", "links", "machines", "networks"];

/// Every part of the cluster in a group of its own.
fn scattered() -> World {
    let world = builder()
        .pool(NodePool::new("public", "public", 1).with_public_addresses())
        .machine(StandaloneMachine::new("alone").in_group("machines"))
        .subnet("links", &["10.241.0.0/24"])
        .routes()
        .config(&json!({
            "loadBalancerResourceGroup": "balancers", "privateLinkServiceResourceGroup": "links",
        }))
        .change_shape(|shape| shape.network_group = Some("networks".to_owned()))
        .build();
    for group in GROUPS {
        world.azure.put(&group_of(&world, group), json!({"location": "westeurope"})).unwrap();
    }
    give_public_address(&world, "alone");
    world.create(service("shop/web"));
    world.create(service("shop/far").tcp(81).annotation("azure-load-balancer-resource-group", "addresses"));
    world.create(linked("shop/linked"));
    world
}

/// Pools of addresses, several load balancers.
fn several() -> World {
    let balancers = json!([
        {"name": "kubernetes", "primaryVMSet": "workers"},
        {"name": "second", "primaryVMSet": "second"},
    ]);
    let world = builder()
        .pool(NodePool::new("second", "second", 1))
        .config(&json!({
            "multipleStandardLoadBalancerConfigurations": balancers,
            "loadBalancerBackendPoolConfigurationType": "nodeIP",
        }))
        .build();
    world.create(service("shop/web").local());
    world.create(service("shop/inside").tcp(82).internal());
    world
}

fn group_of(world: &World, group: &str) -> ResourceId {
    ResourceId::group(&world.shape.subscription, group)
}

fn objects<K: DeserializeOwned>(world: &World, kind: &str) -> Vec<K> {
    world.kubernetes.list(kind).iter().map(|it| serde_json::from_value(it.value().clone()).unwrap()).collect()
}

/// The Nodes of a world in which nothing is refused: their provider IDs come with the controllers.
async fn nodes_of(build: fn() -> World) -> Vec<Node> {
    let mut world = build();
    world.start();
    tokio::time::sleep(2 * MINUTE).await;
    let nodes = objects::<Node>(&world, "Node");
    assert!(!nodes.is_empty() && nodes.iter().all(|node| !node.spec.provider_id.is_empty()), "{nodes:?}");
    nodes
}

/// What the cluster needs, by its azure.json, its Services and its Nodes.
fn needed(world: &World, nodes: &[Node]) -> Vec<Allowed> {
    let run = Run {
        election: None,
        secret: None,
        services: true,
        nodes: true,
        node_lifecycle: true,
        routes: world.shape.route_table.is_some(),
        pod_ranges: world.shape.route_table.is_some(),
        pod_ranges_by_tags: false,
        metrics: false,
    };
    let (cluster, services) = (world.cluster(), objects::<Service>(world, "Service"));
    let needs = needs(&Subject { cluster: &cluster, run: &run, services: &services, nodes, more: &[] });
    assert_eq!(needs.notes, Vec::<String>::new());
    let owned = |action: &&str| (*action).to_owned();
    needs
        .azure_roles()
        .iter()
        .flat_map(|role| {
            let actions: BTreeSet<String> = role.actions.iter().map(owned).collect();
            role.scopes.iter().map(move |scope| (scope.clone(), actions.clone()))
        })
        .collect()
}

async fn live(world: &mut World, pause: Duration) {
    world.start();
    tokio::time::sleep(pause).await;
    connect_customer(world, &group_of(world, "links"));
    for service in objects::<Service>(world, "Service") {
        if service.key().to_string().starts_with("shop/") {
            world.delete(&service.key().to_string());
        }
    }
    tokio::time::sleep(pause).await;
}

#[test]
fn the_printed_roles_are_enough() {
    run(async || {
        for build in [scattered as fn() -> World, several] {
            let nodes = nodes_of(build).await;
            let mut world = build();
            allow(&world, &needed(&world, &nodes));
            live(&mut world, 20 * MINUTE).await;
            assert_eq!(refused(&world), BTreeSet::new());
            let left = world.azure.documents_of_type("Microsoft.Network/loadBalancers");
            assert_eq!(left, Vec::<Value>::new());
        }
    });
}

/// Actions that this cluster does not need in a group, and what needs them there.
const ELSEWHERE: [(&str, &str, &str); 4] = [
    ("Microsoft.Resources/subscriptions/providers/read", "subscription", "the program alone reads zones"),
    ("Microsoft.Compute/virtualMachines/read", "cluster", "machines of nodes without a provider ID"),
    ("Microsoft.Network/networkInterfaces/read", "cluster", "machines of nodes without a provider ID"),
    ("Microsoft.Network/networkInterfaces/write", "cluster", "machines of nodes without a provider ID"),
];

#[test]
fn each_printed_action_is_needed_at_its_scope() {
    run(async || {
        let nodes = nodes_of(scattered).await;
        let all = needed(&scattered(), &nodes);
        let mut idle = Vec::new();
        for (scope, actions) in &all {
            for action in actions {
                let place = scope.group_name().unwrap_or("subscription");
                let is_elsewhere =
                    ELSEWHERE.iter().any(|(other, at, _)| (*other, *at) == (action.as_str(), place));
                // For results of operations, a right on anything in their subscription is enough.
                if is_elsewhere || action.contains("/locations/") {
                    continue;
                }
                let mut world = scattered();
                allow(&world, &without(&all, action, Some(scope)));
                live(&mut world, 6 * MINUTE).await;
                let (action, scope) = (action.to_ascii_lowercase(), scope.as_str().to_ascii_lowercase());
                let is_it = |(refused, at): &(String, String)| *refused == action && at.starts_with(&scope);
                if !refused(&world).iter().any(is_it) {
                    idle.push(format!("{place}: {action}"));
                }
            }
        }
        assert_eq!(idle, Vec::<String>::new(), "nothing was refused without these");
    });
}
