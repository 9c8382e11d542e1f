//! Properties of every plan of a route table, over random tables and batches.

use std::collections::BTreeSet;

use azure_types::{Route, RouteTable};
use ipnet::IpNet;
use proptest::prelude::*;
use serde_json::Value;

use super::properties::cases;
use super::route_cases::{Member, key, net, ranges, route, routes_of, table, table_id, table_of};
use super::*;
use crate::resources::route::{RouteIntent, RouteKey, RoutePlan, owned, plan_table, route_name};

const NODES: [&str; 4] = ["node-1", "node-10", "a", "b"];

/// Two ranges have the same name without dots; that one and the last are outside of the cluster.
const RANGES: [&str; 7] = [
    "10.244.1.0/24",
    "10.244.2.0/24",
    "10.244.11.0/24",
    "10.24.41.0/24",
    "fd00:10:0:1::/64",
    "fd00:10:0:2::/64",
    "192.168.0.0/24",
];

fn any_key() -> impl Strategy<Value = RouteKey> {
    (prop::sample::select(NODES.to_vec()), prop::sample::select(RANGES.to_vec()))
        .prop_map(|(node, range)| key(node, range))
}

fn hop(range: &IpNet, number: u8) -> String {
    if range.addr().is_ipv4() { format!("10.0.1.{number}") } else { format!("fd00:1::{number}") }
}

/// Keys without duplicates, as a writer has them.
fn batch() -> impl Strategy<Value = Vec<Member>> {
    let intent = prop::option::weighted(0.7, 1..4_u8);
    prop::collection::btree_map(any_key(), intent, 0..8).prop_map(|members| {
        let one = |(key, number): (RouteKey, Option<u8>)| {
            let present =
                |number| RouteIntent::Present { next_hop: hop(&key.range, number).parse().unwrap() };
            let intent = number.map_or(RouteIntent::Absent, present);
            (key, intent)
        };
        members.into_iter().map(one).collect()
    })
}

/// Any existing route: ours, one of an old release, one that was changed by hand, or a foreign one.
fn any_route() -> impl Strategy<Value = Value> {
    (any_key(), 0..5_u8, prop::sample::select(RANGES.to_vec()), 1..4_u8).prop_map(
        |(key, kind, other, number)| {
            let (name, prefix) = match kind {
                0 => (key.node.clone(), key.range),
                1 => (route_name(&key.node, &key.range), net(other)),
                2 => (format!("{}____custom", key.node), key.range),
                3 => ("theirs".to_owned(), key.range),
                _ => (route_name(&key.node, &key.range).to_uppercase(), key.range),
            };
            let mut document = route(&name, &prefix.to_string(), &hop(&prefix, number));
            if number == 3 {
                document["properties"]["nextHopType"] = "None".into();
                document["properties"].as_object_mut().unwrap().remove("nextHopIpAddress");
            }
            document
        },
    )
}

/// Tables that Azure accepts: no duplicate names or prefixes.
fn any_table() -> impl Strategy<Value = RouteTable> {
    prop::collection::vec(any_route(), 0..8).prop_map(|routes| {
        let mut seen = BTreeSet::new();
        let is_new = |route: &Value| {
            let name = route["name"].as_str().unwrap().to_lowercase();
            let prefix = route["properties"]["addressPrefix"].as_str().unwrap().to_owned();
            !seen.contains(&name) && !seen.contains(&prefix) && seen.insert(name) && seen.insert(prefix)
        };
        let routes: Vec<Value> = routes.into_iter().filter(is_new).collect();
        table(&routes)
    })
}

fn planned(observed: Option<&RouteTable>, batch: &[Member]) -> RoutePlan {
    plan_table(&cluster(), &table_id(), &ranges(), observed, batch)
}

/// The table after a plan.
fn after(observed: Option<&RouteTable>, plan: &RoutePlan) -> Option<RouteTable> {
    plan.step.as_ref().map(table_of).or(observed).cloned()
}

fn lower(text: &Option<String>) -> String {
    text.as_deref().unwrap_or_default().to_lowercase()
}

/// The routes of no key of the batch, by name and range.
fn foreign(table: &RouteTable, batch: &[Member]) -> Vec<Value> {
    let is_of_batch = |name: &str, prefix: &str| {
        let is_of = |key: &RouteKey| {
            name == route_name(&key.node, &key.range) || name == key.node && net(prefix) == key.range
        };
        batch.iter().any(|(key, _)| is_of(key))
    };
    let prefix = |route: &Route| route.properties.as_ref().unwrap().address_prefix.clone().unwrap();
    let routes = routes_of(table).iter().filter(|route| !is_of_batch(&lower(&route.name), &prefix(route)));
    routes.map(|route| serde_json::to_value(route).unwrap()).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    /// From any table: one write and nothing to do afterwards, each route that is not refused is as desired, nothing
    /// foreign changes, the order of the batch does not matter, and Azure accepts the table.
    #[test]
    fn route_tables_converge_and_keep_what_is_foreign(
        observed in prop::option::weighted(0.9, any_table()),
        batch in batch(),
        seed in any::<u64>(),
    ) {
        let plan = planned(observed.as_ref(), &batch);
        let mut shuffled = batch.clone();
        shuffled.sort_by_key(|(key, _)| {
            let bytes = key.to_string().into_bytes();
            bytes.iter().fold(seed, |sum, byte| sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(*byte)))
        });
        prop_assert_eq!(&planned(observed.as_ref(), &shuffled), &plan);

        let Some(table) = after(observed.as_ref(), &plan) else {
            prop_assert!(batch.iter().all(|(_, intent)| *intent == RouteIntent::Absent));
            return Ok(());
        };
        let again = planned(Some(&table), &batch);
        prop_assert_eq!(&again.step, &None);
        // If one key conflicts with several others, another of them may be reported.
        let keys = |plan: &RoutePlan| plan.refused.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        prop_assert_eq!(keys(&again), keys(&plan));
        let before = observed.clone().unwrap_or_else(|| crate::order::tests::route_cases::table(&[]));
        prop_assert_eq!(foreign(&table, &batch), foreign(&before, &batch));

        let mut seen = BTreeSet::new();
        for route in routes_of(&table) {
            let prefix = route.properties.as_ref().unwrap().address_prefix.clone().unwrap();
            prop_assert!(seen.insert(lower(&route.name)) && seen.insert(prefix), "{:?} twice", route.name);
        }
        let has = owned(&[net("0.0.0.0/0"), net("::/0")], Some(&table), |_| true);
        for (key, intent) in &batch {
            let of_key: Vec<_> = has.iter().filter(|one| one.key == *key).collect();
            let is_refused = plan.refused.iter().any(|(refused, _)| refused == key);
            match intent {
                RouteIntent::Present { next_hop } if !is_refused => {
                    prop_assert!(
                        matches!(of_key[..], [one] if one.next_hop == Some(*next_hop) && !one.is_legacy),
                        "{key}: {of_key:?}"
                    );
                }
                RouteIntent::Absent if ranges().iter().any(|whole| whole.contains(&key.range)) => prop_assert!(of_key.is_empty(), "{key}"),
                _ => {}
            }
        }
    }
}
