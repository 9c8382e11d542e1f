//! A full security group: the Services that fit are served, the others are refused, in few passes.

use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{SecurityGroup, SecurityRule};
use k8s::ObjectKey;
use serde_json::{Value, json};

use super::{absent, after, allow, ip, present, run, summary, world};
use crate::order::tests::{Svc, cluster, security_group, svc};
use crate::outcome::Refusal;
use crate::resources::security_group::addresses::recorded;
use crate::resources::security_group::intent::AccessIntent;
use crate::resources::security_group::usage::ClusterUsage;

/// A Service with a port of its own, and so a rule of its own.
fn lonely(number: i32) -> (Svc, String) {
    let address = format!("20.{}.{}.1", number / 200, number % 200);
    (svc(&format!("s{number:05}")).tcp(1 + number).published(&[&address]), address)
}

/// Measures, and prints, how long a plan takes at the limit:
/// `cargo test -p planner --release -- --ignored --nocapture plans_at_the_limit`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_types, clippy::print_stdout, reason = "a measurement of real time")]
fn plans_at_the_limit() {
    for count in [500_usize, 1000, 1200, 1500] {
        let services: Vec<(Svc, String)> = (0..i32::try_from(count).unwrap()).map(lonely).collect();
        let usage = world(&services.iter().map(|(service, _)| service).collect::<Vec<_>>());
        let batch: Vec<AccessIntent> =
            services.iter().map(|(service, address)| present(service, &[address])).collect();
        let group = security_group(json!([]));
        let started = std::time::Instant::now();
        let planned = run(&group, &batch, &usage);
        let first = started.elapsed();
        let full = after(&group, &planned);
        let started = std::time::Instant::now();
        let again = run(&full, &batch, &usage);
        let refused = count.saturating_sub(1000);
        assert_eq!(
            (planned.refused.len(), summary(&full).len()),
            (refused, count - refused),
            "one rule each"
        );
        assert_eq!(
            (again.refused.len(), again.step),
            (refused, None),
            "who was served stays, and nothing is written"
        );
        println!(
            "{count} Services, {} refused: {first:?}; again with the rules in place: {:?}, {} refused",
            planned.refused.len(),
            started.elapsed(),
            again.refused.len(),
        );
    }
}

/// The group with the rules of these Services and a number of foreign ones.
fn filled(foreign: i32, services: &[(Svc, String)]) -> SecurityGroup {
    let rules: Vec<Value> = (0..foreign)
        .map(|n| allow(1000 + n, &format!("theirs-{n}"), "Tcp", "*", &["20.9.9.9"], &["80"]))
        .collect();
    let group = security_group(json!(rules));
    let planned = run(&group, &batch(services), &usage(services));
    assert_eq!(planned.refused, []);
    after(&group, &planned)
}

fn batch(services: &[(Svc, String)]) -> Vec<AccessIntent> {
    services.iter().map(|(service, address)| present(service, &[address])).collect()
}

fn usage(services: &[(Svc, String)]) -> ClusterUsage {
    world(&services.iter().map(|(service, _)| service).collect::<Vec<_>>())
}

fn names(refused: &[(ObjectKey, Refusal)]) -> Vec<&str> {
    refused.iter().map(|(key, _)| &*key.name).collect()
}

/// After a restart all Services come in one batch: the new Service is refused, whatever its name, and the rules of all
/// others stay unchanged.
#[test]
fn who_is_in_a_full_group_stays_and_the_newcomer_is_refused() {
    let mut services: Vec<(Svc, String)> = (0..10).map(lonely).collect();
    let group = filled(990, &services);
    services.insert(0, (svc("a-newcomer").tcp(900), "20.7.7.7".to_owned()));
    let planned = run(&group, &batch(&services), &usage(&services));
    assert_eq!(names(&planned.refused), ["a-newcomer"]);
    assert!(matches!(planned.refused[0].1, Refusal::SecurityGroupFull { what: "rules", count: 1001, .. }));
    assert_eq!(planned.step, None);
}

/// A Service that only changes its rule keeps its place, and room that a leaving Service gives up is used at once.
#[test]
fn room_goes_to_those_who_had_it_and_then_by_name() {
    let mut services: Vec<(Svc, String)> = (0..10).map(lonely).collect();
    let group = filled(990, &services);
    let moved = services[9].0.clone().change(|s| s.spec.ports[0].port = 700);
    services[9].0 = moved;
    let gone = services.remove(0);
    for (name, port) in [("b-second", 901), ("a-first", 902), ("c-third", 903)] {
        services.push((svc(name).tcp(port), format!("20.7.7.{port}").replace(".90", ".")));
    }
    let mut batch = batch(&services);
    batch.push(absent(&gone.0.clone().deleting(), &[&gone.1]));
    let planned = run(&group, &batch, &usage(&services));
    assert_eq!(names(&planned.refused), ["b-second", "c-third"]);
    let rules = summary(&after(&group, &planned));
    assert_eq!(rules.len(), 1000);
    assert!(rules.iter().any(|rule| rule.ends_with(" 700")), "moved");
    assert!(rules.iter().any(|rule| rule.ends_with(" 902")), "the first by name");
}

/// Existing rules may stay, even if there are more than Azure's limit.
#[test]
fn a_group_beyond_the_limit_refuses_growth_alone() {
    let services: Vec<(Svc, String)> = (0..3).map(lonely).collect();
    let mut group = filled(997, &services);
    let mut one_more = group.properties.as_ref().unwrap().security_rules.as_ref().unwrap()[0].clone();
    one_more.name = Some("theirs-more".into());
    one_more.properties.as_mut().unwrap().priority = Some(4000);
    group.properties.as_mut().unwrap().security_rules.as_mut().unwrap().push(one_more);
    let planned = run(&group, &batch(&services), &usage(&services));
    assert_eq!((planned.refused, planned.step), (Vec::new(), None));
}

#[test]
fn sources_and_destinations_are_counted_too() {
    let ranges: Vec<String> = (0..4001).map(|n| format!("10.{}.{}.0/25", n / 250, n % 250)).collect();
    let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
    let (many, few) = (svc("a-many").tcp(80).ranges(&ranges), svc("b-few").tcp(81));
    let batch = [present(&many, &["20.0.0.1"]), present(&few, &["20.0.0.2"])];
    let planned = run(&security_group(json!([])), &batch, &world(&[&many, &few]));
    assert_eq!(names(&planned.refused), ["a-many"]);
    let Refusal::SecurityGroupFull { what, count: 4001, limit: 4000, .. } = planned.refused[0].1 else {
        panic!()
    };
    assert_eq!(what, "source IP addresses");
    assert_eq!(planned.step.unwrap().on_behalf_of, [few.0.key()], "the other is served");
}

/// Services without floating IP in a cluster with these nodes.
fn at_nodes(count: u32, nodes: &[IpAddr]) -> (Vec<Svc>, Vec<AccessIntent>) {
    let off = |n: u32| {
        svc(&format!("s{n}")).tcp(80).annotate("azure-disable-load-balancer-floating-ip", "true").change(
            |s| {
                s.spec.ports[0].node_port = 30_000 + i32::try_from(n).unwrap();
            },
        )
    };
    let services: Vec<Svc> = (0..count).map(off).collect();
    let intent = |service: &Svc| AccessIntent::Present {
        service: service.intent(&cluster()),
        addresses: vec![ip("20.0.0.1")],
        node_addresses: nodes.to_vec(),
    };
    let batch = services.iter().map(intent).collect();
    (services, batch)
}

fn usage_of(services: &[Svc], nodes: &[IpAddr]) -> ClusterUsage {
    let mut usage = world(&services.iter().collect::<Vec<_>>());
    usage.node_addresses = Arc::new(nodes.iter().copied().collect());
    usage
}

fn stored_destinations(group: &SecurityGroup) -> Vec<usize> {
    let rules = group.properties.as_ref().unwrap().security_rules.as_ref().unwrap();
    let count = |rule: &SecurityRule| {
        let p = rule.properties.as_ref().unwrap();
        p.destination_address_prefixes.as_ref().map_or(1, Vec::len)
    };
    rules.iter().map(count).collect()
}

/// LB-294: a Service whose packets arrive at nodes names each node once per rule, in its own families. With a thousand
/// nodes without adjacent addresses Azure accepts four such rules, and the fifth is refused with that number.
#[test]
fn lb_294_a_thousand_scattered_nodes_leave_room_for_four_rules_at_nodes() {
    let nodes: Vec<IpAddr> = (0..1000).map(|n| ip(&format!("10.1.{}.{}", n / 100, n % 100 * 2))).collect();
    let (services, batch) = at_nodes(5, &nodes);
    let planned = run(&security_group(json!([])), &batch, &usage_of(&services, &nodes));
    assert_eq!(names(&planned.refused), ["s4"]);
    let full = matches!(planned.refused[0].1, Refusal::SecurityGroupFull { count: 5000, limit: 4000, .. });
    assert!(full, "{}", planned.refused[0].1);
    assert_eq!(planned.step.unwrap().on_behalf_of.len(), 4);
}

/// LB-414: if a group would hold too many destinations, adjacent ones are merged into prefixes that cover exactly them.
/// Nothing is written twice for it; nodes come and go; and as long as there is room, each destination is an entry of
/// its own.
#[test]
fn lb_414_destinations_side_by_side_are_gathered_where_there_are_too_many() {
    let nodes: Vec<IpAddr> = (4..1004).map(|n| ip(&format!("10.1.{}.{}", n / 256, n % 256))).collect();
    let (services, batch) = at_nodes(20, &nodes);
    let usage = usage_of(&services, &nodes);
    let empty = security_group(json!([]));
    let few = after(&empty, &run(&empty, &batch[..4], &usage));
    assert_eq!(stored_destinations(&few), [1000; 4], "there is room");

    let planned = run(&few, &batch, &usage);
    assert_eq!(planned.refused, []);
    let all = after(&few, &planned);
    let stored = stored_destinations(&all);
    assert!(stored.len() == 20 && stored.iter().all(|count| *count < 20), "{stored:?}");
    assert_eq!(run(&all, &batch, &usage).step, None);
    // The same for one Service alone, and for one whose packets do not arrive at nodes.
    assert_eq!(run(&all, &batch[7..8], &usage).step, None);
    let other = svc("other").tcp(443);
    let with_other = after(&all, &run(&all, &[present(&other, &["20.0.0.9"])], &usage));
    let stored = stored_destinations(&with_other);
    assert_eq!((stored.len(), stored[20]), (21, 1));

    // A node is removed: each rule still allows exactly the remaining ones.
    let fewer: Vec<IpAddr> = nodes.iter().copied().filter(|node| *node != nodes[500]).collect();
    let (_, without) = at_nodes(20, &fewer);
    let seen = || usage_of(&services, &fewer).with_proofs([(nodes[500], recorded(&cluster()))]);
    let now = after(&all, &run(&all, &without, &seen()));
    let rules = now.properties.as_ref().unwrap().security_rules.as_ref().unwrap();
    for rule in rules {
        let prefixes = rule.properties.as_ref().unwrap().destination_address_prefixes.clone().unwrap();
        let networks: Vec<ipnet::IpNet> =
            prefixes.iter().map(|one| one.parse().unwrap_or_else(|_| ip(one).into())).collect();
        let holds = |address: &IpAddr| networks.iter().any(|network| network.contains(address));
        assert!(fewer.iter().all(holds) && !holds(&nodes[500]) && !holds(&ip("10.1.0.3")), "{prefixes:?}");
    }
    // A Service that leaves removes only its own.
    let gone = absent(&services[0].clone().deleting(), &["20.0.0.1"]);
    let left = after(&all, &run(&all, &[gone], &usage_of(&services[1..], &nodes)));
    assert_eq!(stored_destinations(&left), stored_destinations(&all)[1..]);
    // Once there is room again, entries are written one by one.
    let most: Vec<_> =
        services[3..].iter().map(|one| absent(&one.clone().deleting(), &["20.0.0.1"])).collect();
    let room = after(&all, &run(&all, &most, &usage_of(&services[..3], &nodes)));
    assert_eq!(
        run(&room, &batch[..3], &usage_of(&services[..3], &nodes)).step,
        None,
        "the same destinations"
    );
    let (_, three) = at_nodes(3, &fewer);
    let seen = usage_of(&services[..3], &fewer).with_proofs([(nodes[500], recorded(&cluster()))]);
    let spread = after(&room, &run(&room, &three, &seen));
    assert_eq!(stored_destinations(&spread), [999; 3]);
}

#[test]
fn priorities_are_given_out_once_and_their_end_is_told() {
    let taken: Vec<Value> =
        (500..4095).map(|n| allow(n, &format!("theirs-{n}"), "Tcp", "*", &["20.9.9.9"], &["80"])).collect();
    let group = security_group(json!(taken));
    let (a, b) = (svc("a1").tcp(80), svc("b1").tcp(81));
    let batch = [present(&a, &["20.0.0.1"]), present(&b, &["20.0.0.2"])];
    let planned = run(&group, &batch, &world(&[&a, &b]));
    assert_eq!(names(&planned.refused), ["a1", "b1"], "more than 1000 rules: nothing can be added");
    let few: Vec<Value> =
        (500..1400).map(|n| allow(n, &format!("theirs-{n}"), "Tcp", "*", &["20.9.9.9"], &["80"])).collect();
    let group = security_group(json!(few));
    let rules = summary(&after(&group, &run(&group, &batch, &world(&[&a, &b]))));
    assert!(rules[900].starts_with("1400 ") && rules[901].starts_with("1401 "), "{:?}", &rules[900..]);
}

/// In a full group, a Service whose rules exist may still get destinations more.
#[test]
fn a_rule_that_exists_grows_in_a_full_group() {
    let services: Vec<(Svc, String)> = (0..10).map(lonely).collect();
    let group = filled(990, &services);
    let grown = present(&services[3].0, &[&services[3].1, "20.8.8.8"]);
    let planned = run(&group, &[grown], &usage(&services));
    assert_eq!(planned.refused, []);
    let grown = summary(&after(&group, &planned)).into_iter().find(|line| line.contains("20.8.8.8")).unwrap();
    assert!(grown.contains(&*services[3].1), "{grown}");
}
