//! Pods with addresses of their own: whether packets arrive, and whether nodes claim so too early.

use std::net::IpAddr;
use std::time::Duration;

use azure_simulator::packet::{Hop, Packet, Protocol, Source};
use azure_simulator::{Fault, FaultAction, LatencyProfile};
use ipnet::IpNet;
use serde_json::{Value, json};
use testkit::{World, run, service};

const TABLES: &str = "Microsoft.Network/routeTables";

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

/// A node's ranges.
fn ranges(world: &World, node: &str) -> Vec<IpNet> {
    let node = world.kubernetes.get("Node", "", node).unwrap();
    strings(&node["spec"]["podCIDRs"]).iter().map(|range| range.parse().unwrap()).collect()
}

/// The address of a pod in a range.
fn pod(range: &IpNet) -> IpAddr {
    range.hosts().nth(6).unwrap()
}

/// The node at which a packet from a node to an address arrives.
fn arrival(world: &World, from: &str, to: IpAddr) -> Option<String> {
    let verdict = world.send(&Packet::new(Source::node(from), to, 8080, Protocol::Tcp));
    verdict.hops.into_iter().find_map(|hop| match hop {
        Hop::Arrived { node, .. } => Some(node.to_lowercase()),
        _ => None,
    })
}

/// Nodes that report their network as available although a packet from another node does not arrive.
fn liars(world: &World) -> Vec<String> {
    let nodes = world.node_names();
    let says = |node: &&String| {
        let object = world.kubernetes.get("Node", "", node).unwrap();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "NetworkUnavailable" && c["status"] == "False")
    };
    let table = world.azure.document(&world.shape.route_table().unwrap()).unwrap_or_default();
    let prefixes: Vec<String> = table["properties"]["routes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|route| route["properties"]["addressPrefix"].as_str().unwrap().to_owned())
        .collect();
    let is_lie =
        |node: &&String| ranges(world, node).iter().any(|range| !prefixes.contains(&range.to_string()));
    nodes.iter().filter(says).filter(is_lie).cloned().collect()
}

fn table_writes(world: &World) -> Vec<u16> {
    let journal = world.azure.journal();
    let writes = journal.entries.iter().filter(|entry| {
        entry.method == "PUT"
            && entry.resource_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case(TABLES))
    });
    writes.map(|entry| entry.status).collect()
}

/// Whether every pod is reached from every other node.
fn assert_all_reached(world: &World) {
    let nodes = world.node_names();
    for to in &nodes {
        let ranges = ranges(world, to);
        assert_eq!(ranges.len(), world.shape.pod_ranges().len(), "{to}");
        for range in &ranges {
            for from in nodes.iter().filter(|from| *from != to) {
                assert_eq!(arrival(world, from, pod(range)).as_ref(), Some(to), "{from} to {to}");
            }
        }
    }
}

/// NODE-101, NODE-113: nodes join, leave and come back with other addresses, in both families; Services are not
/// affected.
#[test]
fn node_101_node_113_pods_are_reached_from_other_nodes() {
    run(async || {
        let mut world = World::builder().routes().dual_stack().start().await;
        assert_all_reached(&world);
        world.create(service("shop/web"));
        world.settle().await;
        assert_eq!(world.reached(world.address("shop/web"), 80), world.node_names());
        let before = table_writes(&world).len();
        world.restart().await;
        world.settle().await;
        assert_eq!(table_writes(&world).len(), before, "a restart writes nothing");
        let lost = world.node_names().remove(1);
        let gone = ranges(&world, &lost);
        let machine = world.machine(&lost);
        world.azure.remove_instance(&world.scale_set(), machine.name()).unwrap();
        world.settle().await;
        assert_all_reached(&world);
        let left = world.node_names().remove(0);
        assert_eq!(arrival(&world, &left, pod(&gone[0])), None);
        let table = world.azure.document(&world.shape.route_table().unwrap()).unwrap();
        assert_eq!(table["properties"]["routes"].as_array().unwrap().len(), 4, "two of each node");
    });
}

/// NODE-101, NODE-250: many nodes, a slow and faulty Azure, and foreign routes in the table.
#[test]
fn node_101_node_250_no_node_says_that_it_is_reached_before_it_is() {
    for (status, code) in [
        (403, "AuthorizationFailed"),
        (409, "AnotherOperationInProgress"),
        (412, "PreconditionFailed"),
        (429, "TooManyRequests"),
    ] {
        run(async || {
            let mut world = World::builder()
                .routes()
                .nodes(40)
                .latency(LatencyProfile::instant().with("*", TABLES, Duration::from_secs(5)))
                .build();
            let table = world.shape.route_table().unwrap();
            let theirs = json!([
                {"name": "to-hub", "properties": {
                    "addressPrefix": "0.0.0.0/0", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.240.250.4"}},
                {"name": "theirs", "properties": {"addressPrefix": "10.244.200.0/24", "nextHopType": "None"}},
            ]);
            world.put_foreign(&table, json!({"location": "westeurope", "properties": {"routes": theirs}}));
            let fault = FaultAction::Fail { status, code: code.into(), message: "not now".into() };
            world.azure.inject(Fault::new(fault).on_method("PUT").on_type(TABLES).times(2));
            world.start();
            for _ in 0..400 {
                tokio::time::sleep(Duration::from_millis(300)).await;
                assert_eq!(liars(&world), [""; 0], "{status}");
            }
            world.come_to_rest().await;
            assert_eq!(world.node_names().len(), 40);
            let routes = world.azure.document(&table).unwrap()["properties"]["routes"].clone();
            let names: Vec<&str> =
                routes.as_array().unwrap().iter().map(|route| route["name"].as_str().unwrap()).collect();
            assert_eq!((names.len(), &names[..2]), (42, &["to-hub", "theirs"][..]), "{status}");
            assert!(table_writes(&world).len() <= 8, "{status}: {:?}", table_writes(&world));
            let (one, other) = (world.node_names().remove(3), world.node_names().remove(30));
            assert_eq!(arrival(&world, &one, pod(&ranges(&world, &other)[0])), Some(other));
        });
    }
}

/// NODE-272: the writes to the route table are exactly those of the preview.
#[test]
fn node_272_what_a_preview_says_of_routes_is_what_is_written() {
    run(async || {
        let mut world = World::builder().routes().dual_stack().start().await;
        world.settle().await;
        world.stop().await;
        let table = world.shape.route_table().unwrap();
        let left = world.node_names().remove(0);
        let gone = world.node_names().remove(1);
        world
            .azure
            .edit(&table, |document| {
                let routes = document["properties"]["routes"].as_array_mut().unwrap();
                let name = |route: &Value| route["name"].as_str().unwrap().to_owned();
                routes.retain(|route| !name(route).starts_with(&left));
                routes.push(json!({"name": "theirs", "properties": {"addressPrefix": "0.0.0.0/0", "nextHopType": "None"}}));
            })
            .unwrap();
        world.kubernetes.delete("Node", "", &gone).unwrap();
        let plan = world.preview().await.unwrap();
        assert_eq!(plan.warnings, [""; 0]);
        let [step] = &plan.plan.steps[..] else { panic!("{plan}") };
        let changes: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes.len(), 4, "two come and two go: {changes:?}");
        let planned = serde_json::to_value(step.document.as_ref().unwrap()).unwrap();
        let written = table_writes(&world).len();
        world.end_stand_ins();
        world.start();
        world.come_to_rest().await;
        assert_eq!(table_writes(&world).len(), written + 1);
        let routes = |document: &Value| {
            let mut routes: Vec<String> = (document["properties"]["routes"].as_array().unwrap().iter())
                .map(|route| format!("{} {}", route["name"], route["properties"]["nextHopIpAddress"]))
                .collect();
            routes.sort();
            routes
        };
        assert_eq!(routes(&world.azure.document(&table).unwrap()), routes(&planned));
    });
}
