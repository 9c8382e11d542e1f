//! What happens when the security group is full: who fits is served, the rest is told so, in few passes.

use std::net::IpAddr;

use azure_types::SecurityGroup;
use k8s::ObjectKey;
use serde_json::{Value, json};

use super::{Refusal, absent, after, allow, ip, present, run, told, world};
use crate::security_group::{AccessIntent, ClusterUsage};
use crate::tests::{Svc, cluster, security_group, svc};

/// A Service with a port, and so a rule, of its own.
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
    for count in [500, 1000, 1200, 1500] {
        let services: Vec<(Svc, String)> = (0..count).map(lonely).collect();
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
        println!(
            "{count} Services, {} refused: {first:?}; again with the rules in place: {:?}, {} refused",
            planned.refused.len(),
            started.elapsed(),
            again.refused.len(),
        );
    }
}

/// The group that holds the rules of these Services and so many foreign ones.
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
    refused.iter().map(|(key, _)| key.name.as_str()).collect()
}

/// After a restart all Services come in one batch: the newcomer is refused, whatever its name, and nobody
/// else's rules change.
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

/// A Service that only changes its rule keeps its place, and what a leaving one gives up is used at once.
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
    let rules = told(&after(&group, &planned));
    assert_eq!(rules.len(), 1000);
    assert!(rules.iter().any(|rule| rule.ends_with(" 700")), "moved");
    assert!(rules.iter().any(|rule| rule.ends_with(" 902")), "the first by name");
}

/// What is there may stay, even if it is more than Azure takes today.
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

/// LB-294: a Service whose packets arrive at nodes names each node once for each rule, in its own families: of a thousand
/// nodes Azure takes four such rules, and the fifth is refused with that number.
#[test]
fn lb_294_a_thousand_nodes_leave_room_for_four_rules_at_nodes() {
    let nodes: Vec<IpAddr> = (0..1000).map(|n| ip(&format!("10.1.{}.{}", n / 250, n % 250))).collect();
    let off = |n: u32| {
        svc(&format!("s{n}")).tcp(80).annotate("azure-disable-load-balancer-floating-ip", "true").change(
            |s| {
                s.spec.ports[0].node_port = 30_000 + i32::try_from(n).unwrap();
            },
        )
    };
    let services: Vec<Svc> = (0..5).map(off).collect();
    let batch: Vec<AccessIntent> = services
        .iter()
        .map(|service| AccessIntent::Present {
            service: service.intent(&cluster()),
            addresses: vec![ip("20.0.0.1")],
            node_addresses: nodes.clone(),
        })
        .collect();
    let planned = run(&security_group(json!([])), &batch, &world(&services.iter().collect::<Vec<_>>()));
    assert_eq!(names(&planned.refused), ["s4"]);
    let full = matches!(planned.refused[0].1, Refusal::SecurityGroupFull { count: 5000, limit: 4000, .. });
    assert!(full, "{}", planned.refused[0].1);
    assert_eq!(planned.step.unwrap().on_behalf_of.len(), 4);
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
    let rules = told(&after(&group, &run(&group, &batch, &world(&[&a, &b]))));
    assert!(rules[900].starts_with("1400 ") && rules[901].starts_with("1401 "), "{:?}", &rules[900..]);
}
