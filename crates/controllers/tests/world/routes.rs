//! The route controller in a cloud that has a route table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloud::{LogicalTime, PodRange, Routes, ServiceError};
use controllers::{Controllers, Options};
use kubernetes_simulator::Kubernetes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cloud::retry;
use crate::world::{World, seconds};

#[derive(Default)]
struct Table {
    routes: BTreeMap<PodRange, IpAddr>,
    /// Failures by node.
    failures: BTreeMap<String, ServiceError>,
    unreadable: bool,
    /// Number of reads, where one read serves all requests for nothing newer.
    reads: usize,
    read: Option<LogicalTime>,
    /// The requests of each call that changed anything.
    writes: Vec<(Vec<String>, Vec<String>)>,
    takes: Duration,
    /// Nodes that reported an available network although the table contained no route to them.
    liars: Vec<String>,
}

/// A route table with recorded calls.
#[derive(Clone, Default)]
struct TestRoutes(Arc<Mutex<Table>>);

fn texts<'a>(ranges: impl IntoIterator<Item = &'a PodRange>) -> Vec<String> {
    ranges.into_iter().map(ToString::to_string).collect()
}

#[async_trait]
impl Routes for TestRoutes {
    async fn owned(&self, newer_than: LogicalTime) -> Result<BTreeSet<PodRange>, ServiceError> {
        let mut table = self.0.lock();
        if table.unreadable {
            return Err(retry("503 from Azure", None));
        }
        if table.read.is_none_or(|read| read <= newer_than) {
            table.read = Some(LogicalTime::now());
            table.reads += 1;
        }
        Ok(table.routes.keys().cloned().collect())
    }

    async fn apply(
        &self,
        wanted: &BTreeMap<PodRange, IpAddr>,
        unwanted: &BTreeSet<PodRange>,
        _newer_than: LogicalTime,
    ) -> Result<BTreeMap<PodRange, Result<(), ServiceError>>, ServiceError> {
        let due: BTreeMap<PodRange, IpAddr> = {
            let table = self.0.lock();
            let differs = |(range, hop): &(&PodRange, &IpAddr)| table.routes.get(range) != Some(hop);
            wanted.iter().filter(differs).map(|(range, hop)| (range.clone(), *hop)).collect()
        };
        if !due.is_empty() || !unwanted.is_empty() {
            let takes = self.0.lock().takes;
            tokio::time::sleep(takes).await;
            self.0.lock().writes.push((texts(due.keys()), texts(unwanted)));
        }
        let mut table = self.0.lock();
        let mut answers = BTreeMap::new();
        for (range, hop) in wanted {
            let failure = table.failures.get(&range.node).filter(|_| due.contains_key(range)).cloned();
            if failure.is_none() {
                table.routes.insert(range.clone(), *hop);
            }
            answers.insert(range.clone(), failure.map_or(Ok(()), Err));
        }
        for range in unwanted {
            table.routes.remove(range);
            answers.insert(range.clone(), Ok(()));
        }
        Ok(answers)
    }
}

fn options() -> Options {
    Options { controllers: Controllers { route: true, ..Controllers::NONE }, ..Options::default() }
}

/// A node with an address and a range.
fn with_range(number: u8) -> Value {
    json!({
        "spec": {"podCIDR": format!("10.244.{number}.0/24"), "podCIDRs": [format!("10.244.{number}.0/24")]},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("10.240.0.{number}")}]},
    })
}

fn range(node: &str, number: u8) -> PodRange {
    PodRange::new(node, format!("10.244.{number}.0/24").parse().unwrap())
}

impl TestRoutes {
    /// Checks every change of a node from now on.
    fn watch(&self, kubernetes: &Kubernetes) {
        let (routes, kubernetes) = (self.clone(), kubernetes.clone());
        tokio::spawn(async move {
            for look in 0_u32.. {
                for node in kubernetes.list("Node") {
                    let name = node["metadata"]["name"].as_str().unwrap().to_owned();
                    let said = condition(node.value());
                    let mut table = routes.0.lock();
                    let is_there = table.routes.keys().any(|range| range.node == name);
                    if said.starts_with("False RouteCreated") && !is_there {
                        table.liars.push(name);
                    }
                }
                // The first minute counts most, and the ten minutes after that cost most.
                tokio::time::sleep(Duration::from_millis(if look < 240 { 250 } else { 5000 })).await;
            }
        });
    }
}

fn condition(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let network = conditions.iter().find(|condition| condition["type"] == "NetworkUnavailable");
    network.map_or_else(String::new, |condition| {
        let text = |member: &str| condition[member].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    })
}

const REACHABLE: &str = "False RouteCreated: RouteController created a route";
const UNREACHABLE: &str = "True NoRouteCreated: RouteController failed to create a route";

async fn world_with(routes: &TestRoutes) -> World {
    let mut world = World::new();
    routes.watch(&world.kubernetes);
    let cloud = world.cloud.ports().with_routes(routes.clone());
    world.start_in(cloud, options()).await;
    world
}

impl World {
    fn network_of(&self, name: &str) -> String {
        condition(&self.get_node(name))
    }
}

/// NODE-101: no node is marked as reachable before the table contains the route, even if the write fails for long.
#[tokio::test(start_paused = true)]
async fn node_101_a_node_is_available_only_with_its_route() {
    let routes = TestRoutes::default();
    routes.0.lock().takes = Duration::from_secs(5);
    routes.0.lock().failures.insert("a2".into(), retry("403 AuthorizationFailed: no right", None));
    let world = world_with(&routes).await;
    for number in 1..=3 {
        world.node(&format!("a{number}"), with_range(number));
    }
    seconds(4).await;
    assert_eq!(world.network_of("a1"), "", "the write is under way");
    seconds(20).await;
    assert_eq!((world.network_of("a1"), world.network_of("a3")), (REACHABLE.into(), REACHABLE.into()));
    assert_eq!(world.network_of("a2"), UNREACHABLE);
    let told = "route_controller Warning FailedToCreateRoute: Could not create route for node a2: to 10.244.2.0/24: 403 \
                AuthorizationFailed: no right";
    assert_eq!(world.events("a2"), [told]);
    assert_eq!(world.network_of("n1"), "", "a node without ranges and routes is left alone");
    seconds(600).await;
    assert_eq!(world.events("a2").len(), 1, "retried repeatedly, reported once");
    let tries = routes.0.lock().writes.len();
    assert!((8..=30).contains(&tries), "{tries}");
    routes.0.lock().failures.clear();
    seconds(90).await;
    assert_eq!(world.network_of("a2"), REACHABLE);
    assert_eq!(routes.0.lock().liars, [""; 0]);
}

/// NODE-268: a range that contains a node's address gets no route; a node that had one before keeps its condition.
#[tokio::test(start_paused = true)]
async fn node_268_a_range_with_a_node_in_it_is_told_and_keeps_what_it_has() {
    let routes = TestRoutes::default();
    let world = world_with(&routes).await;
    let mut inside = with_range(3);
    let address = |text| json!({"type": "InternalIP", "address": text});
    inside["status"]["addresses"] = json!([address("10.244.1.9"), address("10.244.2.9")]);
    world.node("inside", inside);
    seconds(1).await;
    routes.0.lock().routes.insert(range("old", 1), "10.240.0.1".parse().unwrap());
    world.node("old", with_range(1));
    world.node("new", with_range(2));
    seconds(5).await;
    assert_eq!((world.network_of("old"), world.network_of("new")), (REACHABLE.into(), UNREACHABLE.into()));
    for node in ["old", "new"] {
        let told = world.events(node).pop().unwrap_or_default();
        assert!(told.contains("the address of node inside: a route to it would take"), "{node}: {told}");
    }
    let asked: Vec<String> = routes.0.lock().writes.iter().flat_map(|(wanted, _)| wanted.clone()).collect();
    assert_eq!(asked, ["inside 10.244.3.0/24"]);
    assert!(routes.0.lock().routes.contains_key(&range("old", 1)), "it stays");
}

/// NODE-250: 400 nodes that join within a few seconds, and the cost afterwards.
#[tokio::test(start_paused = true)]
async fn node_250_nodes_that_join_together_share_writes() {
    let routes = TestRoutes::default();
    routes.0.lock().takes = Duration::from_secs(5);
    let world = world_with(&routes).await;
    for number in 0..400_u16 {
        let (high, low) = (244 + number / 250, number % 250);
        world.node(
            &format!("m{number:03}"),
            json!({
                "spec": {"podCIDRs": [format!("10.{high}.{low}.0/24")]},
                "status": {"addresses": [{"type": "InternalIP", "address": format!("10.240.{high}.{low}")}]},
            }),
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    seconds(30).await;
    let writes = routes.0.lock().writes.len();
    assert!(writes <= 3, "{writes}");
    assert_eq!((world.network_of("m000"), world.network_of("m399")), (REACHABLE.into(), REACHABLE.into()));
    assert_eq!(world.kubernetes.requests("patch", "nodes/status"), 400);
    assert_eq!(routes.0.lock().liars, [""; 0]);
    let (writes, reads) = {
        let table = routes.0.lock();
        (table.writes.len(), table.reads)
    };
    seconds(600).await;
    assert_eq!(routes.0.lock().writes.len(), writes, "at rest nothing is written");
    let reads = routes.0.lock().reads - reads;
    assert!(reads <= 11, "{reads} reads in ten minutes");
    assert_eq!(world.kubernetes.requests("patch", "nodes/status"), 400);
}

/// NODE-098: nothing is written before all nodes are known: a route could seem to have no node.
#[tokio::test(start_paused = true)]
async fn node_098_nothing_is_written_before_the_nodes_are_known() {
    let routes = TestRoutes::default();
    routes.0.lock().routes.insert(range("a1", 1), "10.240.0.1".parse().unwrap());
    let mut world = World::new();
    world.node("a1", with_range(1));
    let fault = kubernetes_simulator::Fault::status(503);
    world.kubernetes.inject(fault.verb("list").resource("nodes").times(5));
    let cloud = world.cloud.ports().with_routes(routes.clone());
    world.start_in(cloud, options()).await;
    assert_eq!(routes.0.lock().reads, 0);
    seconds(120).await;
    assert_eq!(routes.0.lock().writes.len(), 0);
    assert_eq!(world.network_of("a1"), REACHABLE);
}

/// NODE-251: a route is deleted with its node, but not because the node is not watched.
#[tokio::test(start_paused = true)]
async fn node_251_a_route_goes_only_if_the_node_is_known_to_be_gone() {
    let routes = TestRoutes::default();
    routes.0.lock().routes.insert(range("gone", 9), "10.240.0.9".parse().unwrap());
    let mut world = World::new();
    let labels = json!({"metadata": {"labels": {"watched": "yes"}}});
    let mut watched = with_range(1);
    crate::world::merge(&mut watched, &labels);
    world.node("a1", watched);
    world.node("hidden", with_range(2));
    routes.0.lock().routes.insert(range("hidden", 2), "10.240.0.2".parse().unwrap());
    let cloud = world.cloud.ports().with_routes(routes.clone());
    let options = Options { node_selector: Some("watched=yes".into()), ..options() };
    world.start_in(cloud, options).await;
    seconds(5).await;
    let expected = (vec!["a1 10.244.1.0/24".to_owned()], vec!["gone 10.244.9.0/24".to_owned()]);
    assert_eq!(routes.0.lock().writes, [expected]);
    world.kubernetes.delete("Node", "", "a1").unwrap();
    seconds(5).await;
    assert_eq!(texts(routes.0.lock().routes.keys()), ["hidden 10.244.2.0/24"]);
}

/// NODE-097: an unmanaged node costs no call, keeps its routes, and is not held back.
#[tokio::test(start_paused = true)]
async fn node_097_unmanaged_nodes_are_satisfied_without_a_route() {
    let routes = TestRoutes::default();
    let world = world_with(&routes).await;
    let mut unmanaged = with_range(1);
    crate::world::merge(
        &mut unmanaged,
        &json!({"metadata": {"labels": {"kubernetes.azure.com/managed": "false"}}}),
    );
    world.node("edge", unmanaged);
    seconds(5).await;
    assert_eq!(world.network_of("edge"), REACHABLE);
    assert_eq!(routes.0.lock().writes.len(), 0);
    world.kubernetes.delete("Node", "", "edge").unwrap();
    seconds(60).await;
    assert_eq!(routes.0.lock().writes.len(), 0);
}

/// NODE-096, NODE-252: a node without an address has no route; that is reported once it is not new, and repaired when
/// the address appears.
#[tokio::test(start_paused = true)]
async fn node_096_node_252_a_node_without_an_address_waits_for_one() {
    let routes = TestRoutes::default();
    let world = world_with(&routes).await;
    let mut new = with_range(1);
    new["status"] = json!({});
    world.node("a1", new);
    seconds(30).await;
    assert_eq!(world.network_of("a1"), UNREACHABLE);
    assert_eq!(world.events("a1").len(), 0, "it is new");
    seconds(60).await;
    let events = world.events("a1");
    assert!(
        events.len() == 1 && events[0].contains("node a1 has no InternalIP of the family of 10.244.1.0/24"),
        "{events:?}"
    );
    let address =
        |address: &str| json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
    world.kubernetes.merge_status("Node", "", "a1", &address("10.240.0.1")).unwrap();
    seconds(1).await;
    assert_eq!(world.network_of("a1"), REACHABLE);
    world.kubernetes.merge_status("Node", "", "a1", &address("10.240.0.7")).unwrap();
    seconds(1).await;
    assert_eq!(routes.0.lock().routes[&range("a1", 1)], "10.240.0.7".parse::<IpAddr>().unwrap(), "repaired");
}

/// NODE-243: if no address of a family is known, a node with an existing route stays reachable, and is not written;
/// once its machine has an address, it gets its route.
#[tokio::test(start_paused = true)]
async fn node_243_a_node_with_its_routes_needs_no_address() {
    let routes = TestRoutes::default();
    let six = |node: &str| PodRange::new(node, "fd00:1::/64".parse().unwrap());
    routes.0.lock().routes.insert(six("a1"), "fd00::1".parse().unwrap());
    let mut world = World::new();
    let mut both = with_range(1);
    both["spec"]["podCIDRs"] = json!(["10.244.1.0/24", "fd00:1::/64"]);
    both["spec"]["providerID"] = "azure:///1".into();
    world.node("a1", both.clone());
    world.node("a2", both);
    world.start_in(world.cloud.ports().with_routes(routes.clone()), options()).await;
    seconds(90).await;
    assert_eq!((world.network_of("a1"), world.network_of("a2")), (REACHABLE.into(), UNREACHABLE.into()));
    assert_eq!(world.events("a1").len(), 0);
    let addresses = ["10.240.0.1", "fd00::2"]
        .map(|address| k8s::NodeAddress { kind: "InternalIP".into(), address: address.to_owned() });
    let machine = cloud::Instance { addresses: addresses.into(), ..Default::default() };
    world.cloud.set_instance("a2", cloud::Existence::Present(machine));
    seconds(61).await;
    assert_eq!(world.network_of("a2"), REACHABLE);
    let led: Vec<IpAddr> = ["a1", "a2"].map(|node| routes.0.lock().routes[&six(node)]).into();
    assert_eq!(
        led,
        ["fd00::1".parse::<IpAddr>().unwrap(), "fd00::2".parse().unwrap()],
        "one stayed, one came"
    );
}

/// NODE-253: while Azure cannot be read nothing changes: neither routes nor nodes' conditions.
#[tokio::test(start_paused = true)]
async fn node_253_nodes_stay_as_they_are_while_the_table_cannot_be_read() {
    let routes = TestRoutes::default();
    let world = world_with(&routes).await;
    world.node("a1", with_range(1));
    seconds(5).await;
    routes.0.lock().unreadable = true;
    world.node("a2", with_range(2));
    seconds(300).await;
    assert_eq!((world.network_of("a1"), world.network_of("a2")), (REACHABLE.into(), String::new()));
    routes.0.lock().unreadable = false;
    seconds(61).await;
    assert_eq!(world.network_of("a2"), REACHABLE);
}

/// A node that another program marked as having no network is reconciled at once, so that the resulting taint is
/// removed.
#[tokio::test(start_paused = true)]
async fn a_condition_that_somebody_else_wrote_is_replaced_at_once() {
    let routes = TestRoutes::default();
    let world = world_with(&routes).await;
    world.node("a1", with_range(1));
    seconds(5).await;
    let waits = json!({"type": "NetworkUnavailable", "status": "True", "reason": "NodeInitialization", "message": ""});
    world.kubernetes.merge_status("Node", "", "a1", &json!({"status": {"conditions": [waits]}})).unwrap();
    seconds(1).await;
    assert_eq!(world.network_of("a1"), REACHABLE);
}
