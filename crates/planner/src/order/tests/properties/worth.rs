//! The properties are not vacuous: most drawn cases make frontends, rules and members, and are seldom refused.

use std::collections::BTreeMap;

use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;

/// The number of drawn cases.
const DRAWN: usize = 300;

fn of_ours<'a>(names: impl IntoIterator<Item = &'a str>) -> usize {
    names.into_iter().filter(|name| *name != "theirs").count()
}

/// The shares, in percent.
fn shares(drawn: usize, counts: &BTreeMap<&'static str, usize>) -> BTreeMap<&'static str, usize> {
    counts.iter().map(|(what, count)| (*what, count * 100 / drawn)).collect()
}

#[test]
fn what_is_drawn_is_written_to_azure() {
    let mut runner = TestRunner::deterministic();
    let drawing = (prop::collection::vec(choice(), 1..6), some_nodes());
    let (mut counts, mut asked, mut refused) = (BTreeMap::new(), 0, 0);
    for _ in 0..DRAWN {
        let (choices, nodes) = drawing.new_tree(&mut runner).unwrap().current();
        let mut azure = world();
        // Each time there are foreign parts on the load balancer, in the security group and in pools of machines.
        assert_eq!(foreign(&azure)["members"].as_array().unwrap().len(), 5);
        let services = arcs(&services(&choices));
        let steps = azure.plan(&services, &nodes).plan.steps.len();
        let end = azure.converge(&services, &nodes);
        (asked, refused) = (asked + services.len(), refused + end.refused.len());
        let balancers = &azure.observed.load_balancers;
        let frontends = balancers.iter().flat_map(|one| {
            let properties = one.properties.as_ref().unwrap();
            properties.frontend_ip_configurations.iter().flatten().map(frontend::name_of)
        });
        let group = azure.observed.security_group.as_ref().unwrap().properties.as_ref().unwrap();
        let access = group.security_rules.iter().flatten().filter_map(|rule| rule.name.as_deref());
        let machines = &azure.observed.machines;
        let instances = machines.scale_sets.iter().flat_map(|(_, instances)| instances);
        let in_pools = instances.filter(|instance| {
            serde_json::to_string(instance).unwrap().contains("/backendAddressPools/testCluster")
        });
        for (what, holds) in [
            ("frontends", of_ours(frontends) > 0),
            ("rules", of_ours(balancers.iter().flat_map(|one| rule_names(one))) > 0),
            ("probes", of_ours(balancers.iter().flat_map(|one| probe_names(one))) > 0),
            ("security rules", of_ours(access) > 0),
            ("both load balancers", balancers.len() > 1),
            ("private links", !azure.observed.private_links.is_empty()),
            ("nodes", !nodes.is_empty()),
            ("members", in_pools.count() > 0),
            ("more than two steps", steps > 2),
            ("none refused", end.refused.is_empty()),
        ] {
            *counts.entry(what).or_insert(0) += usize::from(holds);
        }
    }
    let shares = shares(DRAWN, &counts);
    for (what, least) in [
        ("frontends", 90),
        ("rules", 90),
        ("probes", 75),
        ("security rules", 75),
        ("both load balancers", 50),
        ("private links", 25),
        ("nodes", 90),
        ("members", 60),
        ("more than two steps", 75),
        ("none refused", 25),
    ] {
        assert!(shares[what] >= least, "{what}: {shares:?}");
    }
    assert!(refused * 3 < asked, "{refused} of {asked} Services are refused");
}
