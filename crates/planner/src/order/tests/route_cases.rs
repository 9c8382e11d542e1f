//! Cases of `docs/rules/routes.md`.

use azure_types::{Route, RouteTable};
use ipnet::IpNet;
use serde_json::{Value, json};

use super::*;
use crate::outcome::change::in_words;
use crate::outcome::{Action, Purpose};
use crate::resources::route::{
    OwnedRoute, RouteIntent, RouteKey, RoutePlan, RouteRefusal, keys_named_in, owned, plan_table, restore,
    route_name, subnet_overlaps, unused_table,
};

pub(super) fn table_id() -> ResourceId {
    cluster().network_group("rg").resource("Microsoft.Network", "routeTables", "nodes")
}

pub(super) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// The ranges of the cluster of all test cases.
pub(super) fn ranges() -> Vec<IpNet> {
    ["10.244.0.0/16", "fd00:10::/48"].map(net).to_vec()
}

pub(super) fn key(node: &str, range: &str) -> RouteKey {
    RouteKey { node: node.to_owned(), range: net(range) }
}

pub(super) type Member = (RouteKey, RouteIntent);

fn present(node: &str, range: &str, next_hop: &str) -> Member {
    (key(node, range), RouteIntent::Present { next_hop: next_hop.parse().unwrap() })
}

fn absent(node: &str, range: &str) -> Member {
    (key(node, range), RouteIntent::Absent)
}

/// A route as Azure returns it.
pub(super) fn route(name: &str, prefix: &str, next_hop: &str) -> Value {
    json!({"id": table_id().child("routes", name), "name": name, "etag": "t0", "unknown": 1, "properties": {
        "provisioningState": "Succeeded", "addressPrefix": prefix, "nextHopType": "VirtualAppliance",
        "nextHopIpAddress": next_hop, "hasBgpOverride": false}})
}

pub(super) fn table(routes: &[Value]) -> RouteTable {
    serde_json::from_value(json!({
        "id": table_id(), "name": "nodes", "location": "westus", "etag": "t0", "tags": {"theirs": "yes"},
        "properties": {"provisioningState": "Succeeded", "disableBgpRoutePropagation": true, "routes": routes},
    }))
    .unwrap()
}

fn planned(observed: Option<&RouteTable>, batch: &[Member]) -> RoutePlan {
    plan_table(&cluster(), &table_id(), &ranges(), observed, batch)
}

pub(super) fn table_of(step: &Step) -> &RouteTable {
    match &step.document {
        Some(Document::RouteTable(document)) => document,
        other => panic!("no route table: {other:?}"),
    }
}

pub(super) fn routes_of(table: &RouteTable) -> &[Route] {
    table.properties.as_ref().unwrap().routes.as_deref().unwrap()
}

fn names_of(table: &RouteTable) -> Vec<&str> {
    routes_of(table).iter().map(|route| route.name.as_deref().unwrap()).collect()
}

/// Plans, and checks that nothing is left to do afterwards. Returns the table and the changes.
fn brought(observed: Option<&RouteTable>, batch: &[Member]) -> (RouteTable, String) {
    let plan = planned(observed, batch);
    assert_eq!(plan.refused, []);
    let step = plan.step.expect("something differs");
    let after = table_of(&step).clone();
    assert_eq!(planned(Some(&after), batch), RoutePlan::default(), "planned again");
    (after, in_words(&step.changes))
}

/// NODE-091: of IPv4. NODE-105: of IPv6.
#[test]
fn node_091_node_105_names_of_routes() {
    for (range, expected) in [
        ("1.2.3.4/24", "node____123424"),
        ("10.244.3.0/24", "node____102443024"),
        ("fd00:10::/64", "node____fd001064"),
        ("2001:db8:0:1::/64", "node____2001db80164"),
    ] {
        assert_eq!(route_name("node", &net(range)), expected, "{range}");
    }
}

/// NODE-092: a missing route. NODE-093: an existing one.
#[test]
fn node_092_node_093_a_missing_route_is_added_and_an_equal_one_is_left() {
    let theirs = route("theirs", "0.0.0.0/0", "10.0.0.4");
    let before = table(std::slice::from_ref(&theirs));
    let wanted =
        [present("node", "10.244.3.0/24", "10.0.1.10"), present("node", "fd00:10::/64", "fd00:1::10")];
    let plan = planned(Some(&before), &wanted);
    let step = plan.step.as_ref().unwrap();
    assert_eq!(
        (step.action, step.if_match.as_deref(), &step.target),
        (Action::Update, Some("t0"), &table_id())
    );
    let (after, changes) = brought(Some(&before), &wanted);
    assert_eq!(
        changes,
        "route node____102443024 added: 10.244.3.0/24 → 10.0.1.10; \
         route node____fd001064 added: fd00:10::/64 → fd00:1::10"
    );
    let added = serde_json::to_value(&routes_of(&after)[1]).unwrap();
    let expected = json!({"name": "node____102443024", "properties": {
        "addressPrefix": "10.244.3.0/24", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.1.10"}});
    assert_eq!(added, expected);
    assert_eq!(serde_json::to_value(&routes_of(&after)[0]).unwrap(), theirs);
    // Azure spells it differently.
    let spelled = route("Node____FD001064", "FD00:10:0:0::/64", "fd00:1:0::10");
    assert_eq!(planned(Some(&table(&[spelled])), &wanted[1..]), RoutePlan::default());
}

#[test]
fn a_table_that_is_not_there_is_created_with_its_routes() {
    let (after, _) = brought(None, &[present("node", "10.244.3.0/24", "10.0.1.10")]);
    assert_eq!((after.location.as_deref(), names_of(&after)), (Some("westus"), vec!["node____102443024"]));
    let step = planned(None, &[present("node", "10.244.3.0/24", "10.0.1.10")]).step.unwrap();
    assert_eq!((step.action, step.if_match), (Action::Create, None));
    assert_eq!(planned(None, &[absent("node", "10.244.3.0/24")]), RoutePlan::default());
}

#[test]
fn a_route_that_leads_elsewhere_is_set_right_and_keeps_its_other_members() {
    let mut elsewhere = route("node____102443024", "10.244.3.0/24", "10.0.1.99");
    let wanted = [present("node", "10.244.3.0/24", "10.0.1.10")];
    let (after, changes) = brought(Some(&table(&[elsewhere.clone()])), &wanted);
    assert_eq!(changes, "route node____102443024: next hop 10.0.1.99 → 10.0.1.10");
    elsewhere["properties"]["nextHopIpAddress"] = json!("10.0.1.10");
    assert_eq!(serde_json::to_value(&routes_of(&after)[0]).unwrap(), elsewhere);
    elsewhere["properties"]["nextHopType"] = json!("None");
    elsewhere["properties"].as_object_mut().unwrap().remove("nextHopIpAddress");
    elsewhere["properties"]["addressPrefix"] = json!("10.244.9.0/24");
    let (_, changes) = brought(Some(&table(&[elsewhere])), &wanted);
    assert_eq!(
        changes,
        "route node____102443024: prefix 10.244.9.0/24 → 10.244.3.0/24; \
         route node____102443024: next hop type None → VirtualAppliance; \
         route node____102443024: next hop none → 10.0.1.10"
    );
}

/// NODE-099: with a name of old releases. NODE-102: not of nodes whose names begin alike.
#[test]
fn node_099_node_102_what_is_removed_is_of_that_node_alone() {
    let before = table(&[
        route("node-1____102441024", "10.244.1.0/24", "10.0.1.1"),
        route("node-1", "10.244.2.0/24", "10.0.1.1"),
        route("node-10____102443024", "10.244.3.0/24", "10.0.1.10"),
        route("node-10", "10.244.4.0/24", "10.0.1.10"),
        route("node-1____custom", "10.244.5.0/24", "10.0.1.1"),
        route("node", "10.244.6.0/24", "10.0.1.1"),
    ]);
    let (after, changes) =
        brought(Some(&before), &[absent("node-1", "10.244.1.0/24"), absent("node-1", "10.244.2.0/24")]);
    assert_eq!(names_of(&after), ["node-10____102443024", "node-10", "node-1____custom", "node"]);
    assert_eq!(
        changes,
        "route node-1____102441024 to 10.244.1.0/24 removed; route node-1 to 10.244.2.0/24 removed"
    );
    let there =
        [absent("node-1", "10.244.9.0/24"), absent("node-1", "10.244.5.0/24"), absent("x", "10.244.1.0/24")];
    assert_eq!(planned(Some(&before), &there), RoutePlan::default(), "no route of theirs is there");
}

/// NODE-100.
#[test]
fn node_100_the_routes_of_nodes_are_read_from_the_table() {
    let ranges = [net("1.2.0.0/16")];
    let is_node = |name: &str| name == "name";
    let listed = owned(&ranges, Some(&table(&[route("name", "1.2.3.4/16", "10.0.1.1")])), is_node);
    let expected = OwnedRoute {
        key: key("name", "1.2.0.0/16"),
        name: "name".to_owned(),
        next_hop: "10.0.1.1".parse().ok(),
        is_legacy: true,
        is_within: true,
    };
    assert_eq!(listed, [expected]);
    assert_eq!(owned(&ranges, None, is_node), []);
}

/// NODE-230: the owner of a route.
#[test]
fn node_230_a_route_is_ours_by_its_whole_name_within_the_clusters_ranges() {
    let mut to_nowhere = route("gone____102448024", "10.244.8.0/24", "10.0.1.8");
    to_nowhere["properties"]["nextHopType"] = json!("None");
    let table = table(&[
        route("theirs", "10.244.1.0/24", "10.0.1.1"),
        route("theirs____custom", "10.244.2.0/24", "10.0.1.1"),
        route("node____102443024", "10.244.4.0/24", "10.0.1.1"),
        route("node____1921680024", "192.168.0.0/24", "10.0.1.1"),
        route("NODE____102445024", "10.244.5.0/24", "10.0.1.5"),
        route("gone____fd001064", "FD00:10:0::/64", "fd00:1::8"),
        route("storage", "Storage", "10.0.1.1"),
        to_nowhere,
    ]);
    let listed = owned(&ranges(), Some(&table), |name| name == "node");
    let outside = listed.iter().filter(|one| !one.is_within).map(|one| one.key.to_string());
    assert_eq!(outside.collect::<Vec<_>>(), ["node 192.168.0.0/24"]);
    let listed: Vec<String> = (listed.iter().filter(|one| one.is_within))
        .map(|one| format!("{} {:?} {}", one.key, one.next_hop, one.is_legacy))
        .collect();
    assert_eq!(
        listed,
        [
            "node 10.244.5.0/24 Some(10.0.1.5) false",
            "gone fd00:10::/64 Some(fd00:1::8) false",
            "gone 10.244.8.0/24 None false",
        ]
    );
    let out_of_range = [absent("node", "192.168.0.0/24"), absent("node", "10.244.4.0/24")];
    assert_eq!(planned(Some(&table), &out_of_range), RoutePlan::default());
}

/// NODE-231: a foreign route, and one of another node, to the desired range.
#[test]
fn node_231_a_range_that_has_a_route_already_is_refused_alone() {
    for name in ["theirs", "other____102443024"] {
        let before = table(&[route(name, "10.244.3.0/24", "10.0.0.4")]);
        let batch = [present("a", "10.244.1.0/24", "10.0.1.1"), present("b", "10.244.3.0/24", "10.0.1.2")];
        let plan = planned(Some(&before), &batch);
        let refusal =
            RouteRefusal::PrefixTaken { table: "nodes".into(), by: name.into(), range: net("10.244.3.0/24") };
        assert_eq!(plan.refused, [(key("b", "10.244.3.0/24"), refusal)]);
        assert_eq!(names_of(table_of(&plan.step.unwrap())), [name, "a____102441024"]);
    }
    // Two nodes with one range: the one that has the route keeps it.
    let both = [present("a", "10.244.3.0/24", "10.0.1.1"), present("b", "10.244.3.0/24", "10.0.1.2")];
    let of_b = table(&[route("b____102443024", "10.244.3.0/24", "10.0.1.2")]);
    let plan = planned(Some(&of_b), &both);
    assert_eq!((plan.step, plan.refused[0].0.node.as_str()), (None, "a"));
}

/// A route of the desired name that leads to another range is set aside for the route to be added. If that cannot be
/// added, it stays, unless its own range is taken by now.
#[test]
fn a_route_that_was_set_aside_in_vain_stays() {
    let aside = route("a____102444024", "10.244.1.0/24", "10.0.1.1");
    let before = table(&[aside, route("theirs", "10.244.4.0/24", "10.0.0.4")]);
    let (vain, other) =
        (present("a", "10.244.4.0/24", "10.0.1.1"), present("b", "10.244.1.0/24", "10.0.1.2"));
    for (batch, expected) in [
        (vec![vain.clone()], ["a____102444024", "theirs"]),
        (vec![vain, other], ["b____102441024", "theirs"]),
    ] {
        let plan = planned(Some(&before), &batch);
        assert_eq!(plan.refused.len(), 1);
        let after = plan.step.map_or(before.clone(), |step| table_of(&step).clone());
        let mut names = names_of(&after);
        names.sort_unstable();
        assert_eq!(names, expected);
    }
}

/// NODE-232: a range that moves from node to node, or from an old name to the current one.
#[test]
fn node_232_a_range_that_is_given_on_changes_its_route_in_one_write() {
    let before = table(&[route("old____102443024", "10.244.3.0/24", "10.0.1.1")]);
    let batch = [present("new", "10.244.3.0/24", "10.0.1.2"), absent("old", "10.244.3.0/24")];
    let (after, _) = brought(Some(&before), &batch);
    assert_eq!(names_of(&after), ["new____102443024"]);
    let legacy = table(&[route("node", "10.244.3.0/24", "10.0.1.1")]);
    let (after, changes) = brought(Some(&legacy), &[present("node", "10.244.3.0/24", "10.0.1.1")]);
    assert_eq!(names_of(&after), ["node____102443024"]);
    assert_eq!(
        changes,
        "route node to 10.244.3.0/24 removed; route node____102443024 added: 10.244.3.0/24 → 10.0.1.1"
    );
}

/// NODE-103.
#[test]
fn node_103_tags_are_written_with_the_routes_or_alone() {
    let tagged = cluster_with(json!({"tags": "owner=us"}));
    let plan = |cluster: &Cluster, table: &ResourceId, observed: Option<&RouteTable>, batch: &[Member]| {
        plan_table(cluster, table, &ranges(), observed, batch).step
    };
    assert_eq!(plan(&tagged, &table_id(), None, &[]), None, "no table");
    let before = table(&[route("node____102443024", "10.244.3.0/24", "10.0.1.1")]);
    let step = plan(&tagged, &table_id(), Some(&before), &[]).unwrap();
    assert_eq!(in_words(&step.changes), "tag owner=us added");
    let after = table_of(&step);
    assert_eq!((routes_of(after), after.tags.as_ref().unwrap().len()), (routes_of(&before), 2));
    assert_eq!(plan(&tagged, &table_id(), Some(after), &[]), None);
    let elsewhere = cluster().network_group("other").resource("Microsoft.Network", "routeTables", "nodes");
    assert_eq!(plan(&tagged, &elsewhere, Some(&before), &[]), None, "a table of another group's");
    let created = plan(&tagged, &table_id(), None, &[present("a", "10.244.1.0/24", "10.0.1.1")]).unwrap();
    assert_eq!(table_of(&created).tags.as_ref().unwrap().get("owner").map(String::as_str), Some("us"));
}

/// NODE-233: a route that cannot be written refuses only its range, and says what to do.
#[test]
fn node_233_names_that_azure_does_not_take_and_tables_that_say_nothing() {
    let long = "n".repeat(70);
    let batch = [present(&long, "10.244.3.0/24", "10.0.1.1"), present("a", "10.244.1.0/24", "10.0.1.2")];
    let plan = planned(Some(&table(&[])), &batch);
    let text = plan.refused[0].1.to_string();
    assert!(
        text.contains("a name of 83 characters, and Azure takes 80") && text.contains("shorter"),
        "{text}"
    );
    assert_eq!(names_of(table_of(&plan.step.unwrap())), ["a____102441024"]);
    // Both names are the same without dots.
    let batch = [present("a", "10.1.11.0/24", "10.0.1.1"), present("a", "10.11.1.0/24", "10.0.1.1")];
    let plan = planned(Some(&table(&[])), &batch);
    assert!(matches!(&plan.refused[..], [(key, RouteRefusal::NameTaken { .. })] if *key == batch[1].0));
    let mut silent = table(&[]);
    silent.properties.as_mut().unwrap().routes = None;
    let plan = planned(Some(&silent), &batch);
    assert_eq!((plan.step, plan.refused.len()), (None, 2));
}

#[test]
fn a_table_that_azure_did_not_finish_is_written_again() {
    let mut failed = table(&[route("node____102443024", "10.244.3.0/24", "10.0.1.1")]);
    failed.properties.as_mut().unwrap().provisioning_state = Some("Failed".into());
    let step = planned(Some(&failed), &[]).step.unwrap();
    assert_eq!((step.purpose, table_of(&step)), (Purpose::Repair, &failed));
    let mut before = table(&[]);
    assert_eq!(restore(&cluster(), &table_id(), &before, &failed), None, "nothing was written");
    before.etag = Some("t-1".to_owned());
    let step = restore(&cluster(), &table_id(), &before, &failed).unwrap();
    assert_eq!(
        (step.if_match.as_deref(), step.purpose, table_of(&step)),
        (Some("t0"), Purpose::Restore, &before)
    );
    assert_eq!(restore(&cluster(), &table_id(), &before, &table(&[])), None, "it was taken");
}

#[test]
fn azures_words_name_the_ranges_that_they_are_about() {
    let batch = [
        present("node-1", "10.244.1.0/24", "10.0.1.1"),
        present("node-10", "10.244.3.0/24", "10.0.1.2"),
        absent("gone", "10.244.4.0/24"),
    ];
    let named = |text: &str| -> Vec<String> {
        keys_named_in(text, &batch).iter().map(|key| key.node.clone()).collect()
    };
    let words = "Route: node-10____102443024 conflicts with Route: theirs.";
    assert_eq!(named(words), ["node-10"]);
    assert_eq!(named("Route /subscriptions/s/routes/NODE-1____102441024 has the prefix"), ["node-1"]);
    assert_eq!(named("the address prefix '10.244.4.0/24'"), ["gone"]);
    assert_eq!(named("Cannot create more than 400 routes"), [""; 0]);
}

fn subnet(document: Value) -> azure_types::Subnet {
    serde_json::from_value(json!({"name": "nodes", "properties": document})).unwrap()
}

/// NODE-265: ranges of pods are compared with every range of the nodes' subnet.
#[test]
fn node_265_ranges_of_pods_in_the_nodes_subnet_are_found() {
    let both = subnet(json!({"addressPrefixes": ["10.240.0.0/16", "fd00:1::/64"]}));
    let one = subnet(json!({"addressPrefix": "10.240.0.0/16"}));
    let found = |range: &str, subnet| -> Vec<(String, bool)> {
        let overlaps = subnet_overlaps(&[net(range)], "nodes", subnet);
        overlaps.iter().map(|overlap| (overlap.reason(), overlap.is_whole())).collect()
    };
    for subnet in [&both, &one] {
        let of = "the range 10.240.0.0/16 of the nodes' subnet nodes";
        assert_eq!(found("10.240.0.0/16", subnet), [(format!("is {of}"), true)]);
        assert_eq!(found("10.240.128.0/17", subnet), [(format!("lies in {of}"), true)]);
        assert_eq!(found("10.0.0.0/8", subnet), [(format!("holds {of}"), false)]);
        assert_eq!(found("10.244.0.0/16", subnet), []);
    }
    assert_eq!(found("fd00:1::/56", &both).len(), 1);
    assert_eq!(found("fd00:1::/56", &one), []);
    assert_eq!(found("10.240.0.0/16", &subnet(json!({}))), []);
}

/// NODE-266: a table that a subnet uses is fine, even if it is another subnet than the configured one.
#[test]
fn node_266_a_table_that_no_subnet_uses_is_told() {
    let (mut used, unused) = (table(&[]), table(&[]));
    used.properties.get_or_insert_default().subnets = Some(vec![azure_types::SubResource::default()]);
    let other = cluster().network_group("rg").resource("Microsoft.Network", "routeTables", "routes");
    let elsewhere = subnet(json!({"routeTable": {"id": other}}));
    let here = subnet(json!({"routeTable": {"id": table_id().as_str().to_uppercase()}}));
    let nowhere = subnet(json!({}));
    let told = |table: Option<&RouteTable>, subnet| unused_table(&table_id(), table, "sub", subnet);
    for table in [None, Some(&unused)] {
        let text = told(table, &elsewhere).unwrap();
        assert!(
            text.contains(
                "route table nodes is not assigned to any subnet; subnet sub has \"routes\": correct"
            ),
            "{text}"
        );
        assert!(told(table, &nowhere).unwrap().contains("subnet sub has none: assign nodes to the subnet"));
        assert_eq!(told(table, &here), None);
    }
    assert_eq!((told(Some(&used), &elsewhere), told(Some(&used), &nowhere)), (None, None));
}
