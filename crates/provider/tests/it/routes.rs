//! The route table: one write for many nodes, foreign routes, and the owners that a refusal concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use azure_types::ResourceId;
use cloud::{LogicalTime, PodRange, Routes, ServiceError};
use serde_json::{Value, json};

use crate::world::*;

const TABLES: &str = "Microsoft.Network/routeTables";

type Answers = BTreeMap<String, Result<(), ServiceError>>;

fn table() -> ResourceId {
    id("routeTables", "routes")
}

/// A cluster whose table contains these routes: name, prefix, next hop (or its type).
fn world_with(routes: &[(&str, &str, &str)]) -> World {
    let world = World::new();
    let route = |(name, prefix, hop): &(&str, &str, &str)| {
        let properties = match hop.parse::<IpAddr>() {
            Ok(_) => {
                json!({"addressPrefix": prefix, "nextHopType": "VirtualAppliance", "nextHopIpAddress": hop})
            }
            Err(_) => json!({"addressPrefix": prefix, "nextHopType": hop}),
        };
        json!({"name": name, "properties": properties})
    };
    let routes: Vec<Value> = routes.iter().map(route).collect();
    world.azure.put(&table(), json!({"location": "eastus", "properties": {"routes": routes}})).unwrap();
    world
}

fn start(world: &World) -> Program {
    world.start_configured(&json!({"routeTableName": "routes"}))
}

fn wanted(routes: &[(&str, &str, &str)]) -> BTreeMap<PodRange, IpAddr> {
    let route = |(node, range, hop): &(&str, &str, &str)| {
        (PodRange::new(*node, range.parse().unwrap()), hop.parse().unwrap())
    };
    routes.iter().map(route).collect()
}

fn unwanted(routes: &[(&str, &str)]) -> BTreeSet<PodRange> {
    routes.iter().map(|(node, range)| PodRange::new(*node, range.parse().unwrap())).collect()
}

impl World {
    /// The routes as `name prefix hop`, in order.
    fn routes(&self) -> Vec<String> {
        let table = self.azure.document(&table()).unwrap_or_default();
        let routes = table["properties"]["routes"].as_array().cloned().unwrap_or_default();
        let text = |route: &Value| {
            let properties = &route["properties"];
            let hop = properties["nextHopIpAddress"].as_str().or(properties["nextHopType"].as_str());
            let prefix = properties["addressPrefix"].as_str().unwrap();
            format!("{} {prefix} {}", route["name"].as_str().unwrap(), hop.unwrap())
        };
        let mut routes: Vec<String> = routes.iter().map(text).collect();
        routes.sort();
        routes
    }

    fn fail_writes(&self, status: u16, code: &str, message: &str, times: u64) {
        let fault = FaultAction::Fail { status, code: code.into(), message: message.into() };
        self.azure.inject(Fault::new(fault).on_method("PUT").on_type(TABLES).times(times));
    }
}

async fn apply(
    program: &Program,
    wanted: &BTreeMap<PodRange, IpAddr>,
    unwanted: &BTreeSet<PodRange>,
    newer_than: LogicalTime,
) -> Result<Answers, ServiceError> {
    let answers = program.provider.apply(wanted, unwanted, newer_than).await?;
    Ok(answers.into_iter().map(|(range, answer)| (range.to_string(), answer)).collect())
}

/// Applies routes, all successfully.
async fn bring(program: &Program, wanted: &BTreeMap<PodRange, IpAddr>, unwanted: &BTreeSet<PodRange>) {
    let answers = apply(program, wanted, unwanted, LogicalTime::now()).await.unwrap();
    assert!(answers.values().all(Result::is_ok), "{answers:?}");
}

fn words(answer: &Result<(), ServiceError>) -> String {
    answer.as_ref().map_or_else(ToString::to_string, |()| "well".to_owned())
}

/// NODE-092, NODE-093, NODE-094: the table is created with the routes in it; existing routes are not written again.
#[tokio::test(start_paused = true)]
async fn node_092_node_093_node_094_a_missing_table_is_made_with_its_routes_in_one_write() {
    let world = World::new();
    let program = start(&world);
    let all = wanted(&[
        ("n2", "10.244.2.0/24", "10.0.0.2"),
        ("node", "10.244.3.0/24", "2.4.6.8"),
        ("node", "fd00:10:244:3::/64", "fd00::8"),
    ]);
    assert!(program.provider.owned(LogicalTime::now()).await.unwrap().is_empty());
    bring(&program, &all, &BTreeSet::new()).await;
    let expected = [
        "n2____102442024 10.244.2.0/24 10.0.0.2",
        "node____102443024 10.244.3.0/24 2.4.6.8",
        "node____fd0010244364 fd00:10:244:3::/64 fd00::8",
    ];
    assert_eq!(world.routes(), expected);
    assert_eq!(world.puts(TABLES), [201]);
    let table = world.azure.document(&table()).unwrap();
    assert_eq!(table["properties"]["routes"][1]["properties"]["nextHopType"], "VirtualAppliance");
    let owned: BTreeSet<PodRange> = all.keys().cloned().collect();
    assert_eq!(program.provider.owned(LogicalTime::now()).await.unwrap(), owned);
    bring(&program, &all, &BTreeSet::new()).await;
    assert_eq!(world.puts(TABLES).len(), 1, "nothing differs");
}

/// NODE-094, NODE-095: a failed read or creation is an error, and no route is assumed to exist.
#[tokio::test(start_paused = true)]
async fn node_094_node_095_what_cannot_be_read_or_made_is_an_error() {
    let world = World::new();
    let program = start(&world);
    let one = wanted(&[("n1", "10.244.1.0/24", "10.0.0.1")]);
    world.fail_writes(403, "AuthorizationFailed", "no right to make it", 1);
    let answers = apply(&program, &one, &BTreeSet::new(), LogicalTime::now()).await.unwrap();
    assert!(words(&answers["n1 10.244.1.0/24"]).contains("no right to make it"), "{answers:?}");
    let fault = FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no".into() };
    world.azure.inject(Fault::new(fault).on_method("GET").on_type(TABLES).times(2));
    assert!(program.provider.owned(LogicalTime::now()).await.is_err());
    assert!(apply(&program, &one, &BTreeSet::new(), LogicalTime::now()).await.is_err());
    bring(&program, &one, &BTreeSet::new()).await;
}

/// NODE-230: 250 nodes at once, in a table with foreign routes: one of them leads into the pod ranges.
#[tokio::test(start_paused = true)]
async fn node_230_routes_of_one_moment_are_one_write_and_those_of_others_stay() {
    let foreign = [
        ("to-hub", "0.0.0.0/0", "10.9.9.9"),
        ("pods", "10.244.255.0/24", "10.9.9.8"),
        ("onprem", "172.16.0.0/12", "VirtualNetworkGateway"),
    ];
    let world = world_with(&foreign);
    world.azure.set_latency(LatencyProfile::instant().with("*", TABLES, Duration::from_secs(5)));
    let before = world.azure.document(&table()).unwrap();
    let program = start(&world);
    let mut all = BTreeMap::new();
    for number in 0..250 {
        all.extend(wanted(&[(&format!("n{number}"), &format!("10.244.{number}.0/24"), "10.0.0.1")]));
    }
    bring(&program, &all, &BTreeSet::new()).await;
    assert_eq!(world.puts(TABLES).len(), 1);
    let after = world.azure.document(&table()).unwrap();
    let routes = |document: &Value| document["properties"]["routes"].as_array().unwrap().clone();
    assert_eq!(routes(&after).len(), 253);
    for route in routes(&before) {
        let mut same = routes(&after).into_iter().find(|other| other["name"] == route["name"]).unwrap();
        same["etag"] = route["etag"].clone();
        assert_eq!(same, route, "byte for byte");
    }
    let gone: BTreeSet<PodRange> = all.keys().cloned().collect();
    bring(&program, &BTreeMap::new(), &gone).await;
    assert_eq!(world.puts(TABLES).len(), 2);
    assert_eq!(world.routes().len(), 3, "only what others made");
}

/// NODE-099, NODE-102: nothing of `n10` is deleted with `n1`; the route of an old release is.
#[tokio::test(start_paused = true)]
async fn node_099_node_102_a_route_that_goes_is_that_nodes_alone() {
    let world = world_with(&[
        ("n1____102441024", "10.244.1.0/24", "10.0.0.1"),
        ("n1", "10.244.7.0/24", "10.0.0.1"),
        ("n10____1024410024", "10.244.100.0/24", "10.0.0.10"),
    ]);
    let program = start(&world);
    let gone = unwanted(&[("n1", "10.244.1.0/24"), ("n1", "10.244.7.0/24")]);
    bring(&program, &BTreeMap::new(), &gone).await;
    assert_eq!(world.routes(), ["n10____1024410024 10.244.100.0/24 10.0.0.10"]);
    bring(&program, &BTreeMap::new(), &gone).await;
    assert_eq!(world.puts(TABLES).len(), 1, "what is gone needs no write");
}

/// NODE-101: a refused write is an error of the ranges that it concerns; a range that already has a route keeps it.
#[tokio::test(start_paused = true)]
async fn node_101_a_refused_write_is_an_error_of_those_who_needed_it() {
    for (status, code) in [(403, "AuthorizationFailed"), (409, "RouteTableInUse")] {
        let world = world_with(&[("n1____102441024", "10.244.1.0/24", "10.0.0.1")]);
        let program = start(&world);
        let two = wanted(&[("n1", "10.244.1.0/24", "10.0.0.1"), ("n2", "10.244.2.0/24", "10.0.0.2")]);
        world.fail_writes(status, code, "not now", 20);
        let answers = apply(&program, &two, &BTreeSet::new(), LogicalTime::now()).await.unwrap();
        assert_eq!(words(&answers["n1 10.244.1.0/24"]), "well");
        let told = words(&answers["n2 10.244.2.0/24"]);
        assert!(told.contains("not now") && told.contains("route table routes"), "{told}");
        assert_eq!(world.routes(), ["n1____102441024 10.244.1.0/24 10.0.0.1"]);
    }
    // NODE-101: the same holds for a range outside of the cluster's ranges.
    let world = world_with(&[("n1____102500024", "10.250.0.0/24", "10.0.0.1")]);
    let program = start(&world);
    let two = wanted(&[("n1", "10.250.0.0/24", "10.0.0.1"), ("n2", "10.244.2.0/24", "10.0.0.2")]);
    world.fail_writes(403, "AuthorizationFailed", "not now", 20);
    let answers = apply(&program, &two, &BTreeSet::new(), LogicalTime::now()).await.unwrap();
    assert_eq!(words(&answers["n1 10.250.0.0/24"]), "well");
    assert!(words(&answers["n2 10.244.2.0/24"]).contains("not now"));
    assert!(program.provider.owned(LogicalTime::now()).await.unwrap().is_empty(), "it is never removed");
}

/// NODE-104: another client writes between read and write: that write is kept.
#[tokio::test(start_paused = true)]
async fn node_104_a_lost_race_is_read_and_planned_again() {
    let world = world_with(&[]);
    let program = start(&world);
    bring(&program, &wanted(&[("n1", "10.244.1.0/24", "10.0.0.1")]), &BTreeSet::new()).await;
    let seen = LogicalTime::BEGINNING;
    let theirs =
        json!({"name": "theirs", "properties": {"addressPrefix": "192.168.0.0/16", "nextHopType": "None"}});
    let edit = |document: &mut Value| {
        document["properties"]["routes"].as_array_mut().unwrap().push(theirs.clone());
    };
    world.azure.edit(&table(), edit).unwrap();
    world.azure.clear_journal();
    let both = wanted(&[("n1", "10.244.1.0/24", "10.0.0.1"), ("n2", "10.244.2.0/24", "10.0.0.2")]);
    let answers = apply(&program, &both, &BTreeSet::new(), seen).await.unwrap();
    assert!(answers.values().all(Result::is_ok), "{answers:?}");
    assert_eq!(world.puts(TABLES), [412, 200]);
    assert_eq!(world.routes().len(), 3);
}

/// NODE-103: tags that differ are written alone, and change no route; they are no reason to create a missing table.
#[tokio::test(start_paused = true)]
async fn node_103_tags_are_brought_to_a_table_that_is_there() {
    let config = json!({"routeTableName": "routes", "tags": "team=network"});
    let world = World::new();
    let program = world.start_configured(&config);
    assert!(
        apply(&program, &BTreeMap::new(), &BTreeSet::new(), LogicalTime::now()).await.unwrap().is_empty()
    );
    assert_eq!(world.puts(TABLES).len(), 0);
    let world = world_with(&[("n1____102441024", "10.244.1.0/24", "10.0.0.1")]);
    let program = world.start_configured(&config);
    let one = wanted(&[("n1", "10.244.1.0/24", "10.0.0.1")]);
    bring(&program, &one, &BTreeSet::new()).await;
    assert_eq!(world.azure.document(&table()).unwrap()["tags"]["team"], "network");
    assert_eq!((world.routes().len(), world.puts(TABLES).len()), (1, 1));
    bring(&program, &one, &BTreeSet::new()).await;
    assert_eq!(world.puts(TABLES).len(), 1);
}

/// NODE-231: a range that already belongs to another owner refuses that node alone; so does a refusal of Azure.
#[tokio::test(start_paused = true)]
async fn node_231_one_node_that_cannot_have_a_route_keeps_no_other_from_it() {
    let world = world_with(&[("mine", "10.244.2.0/24", "10.9.9.9")]);
    let program = start(&world);
    let three = wanted(&[
        ("n1", "10.244.1.0/24", "10.0.0.1"),
        ("n2", "10.244.2.0/24", "10.0.0.2"),
        ("n3", "10.244.3.0/24", "10.0.0.3"),
    ]);
    let answers = apply(&program, &three, &BTreeSet::new(), LogicalTime::now()).await.unwrap();
    let failed: Vec<&String> = answers.iter().filter(|(_, a)| a.is_err()).map(|(range, _)| range).collect();
    assert_eq!(failed, ["n2 10.244.2.0/24"]);
    assert!(words(&answers["n2 10.244.2.0/24"]).contains("route mine leads to 10.244.2.0/24 already"));
    assert_eq!(world.routes().len(), 3, "{:?}", world.routes());
}

/// NODE-254: a full table takes as many routes as fit: the others fail with Azure's words, and cost few writes.
#[tokio::test(start_paused = true)]
async fn node_254_a_full_table_takes_whom_it_can() {
    let world = world_with(&[]);
    world.azure.set_limits([("network.routesPerTable".to_owned(), 40)].into()).unwrap();
    let program = start(&world);
    let mut all = BTreeMap::new();
    for number in 0..45 {
        all.extend(wanted(&[(&format!("n{number:02}"), &format!("10.244.{number}.0/24"), "10.0.0.1")]));
    }
    let answers = apply(&program, &all, &BTreeSet::new(), LogicalTime::now()).await.unwrap();
    let failed: Vec<String> = answers.values().filter(|answer| answer.is_err()).map(words).collect();
    assert_eq!((failed.len(), world.routes().len()), (5, 40));
    assert!(failed.iter().all(|told| told.contains("RouteTableRouteCountLimitReached")), "{failed:?}");
    assert!(world.puts(TABLES).len() < 25, "{:?}", world.puts(TABLES));
}

/// A machine with a new address, and a range that a new node has now: repaired in one write (NODE-232).
#[tokio::test(start_paused = true)]
async fn node_232_addresses_that_changed_and_ranges_that_were_given_on_are_one_write() {
    let world = world_with(&[
        ("n1____102441024", "10.244.1.0/24", "10.0.0.1"),
        ("old____102442024", "10.244.2.0/24", "10.0.0.2"),
    ]);
    let program = start(&world);
    let now = wanted(&[("n1", "10.244.1.0/24", "10.0.0.77"), ("new", "10.244.2.0/24", "10.0.0.3")]);
    bring(&program, &now, &unwanted(&[("old", "10.244.2.0/24")])).await;
    assert_eq!(
        world.routes(),
        ["n1____102441024 10.244.1.0/24 10.0.0.77", "new____102442024 10.244.2.0/24 10.0.0.3"]
    );
    assert_eq!(world.puts(TABLES).len(), 1);
}
