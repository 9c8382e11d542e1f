//! The checker finds the problems of a world.

use serde_json::{Value, json};
use testkit::types::{PUBLIC_IPS, SECURITY_GROUPS};
use testkit::{Finding, World, run, service};

const WEB: &str = "shop/web";

/// A world at rest that serves one Service, without controllers that would repair anything.
async fn at_rest() -> World {
    let mut world = World::builder().nodes(2).start().await;
    world.create(service(WEB));
    world.settle().await;
    world.stop().await;
    assert_eq!(world.check().await, []);
    world
}

fn rules(group: &mut Value) -> &mut Vec<Value> {
    group["properties"]["securityRules"].as_array_mut().unwrap()
}

fn kinds(findings: &[Finding]) -> Vec<String> {
    let word = |finding: &Finding| format!("{finding:?}").split_whitespace().next().unwrap().to_owned();
    let mut kinds: Vec<String> = findings.iter().map(word).collect();
    kinds.dedup();
    kinds
}

#[test]
fn what_a_gone_service_left_behind_is_found() {
    run(async || {
        let world = at_rest().await;
        // No controller handles it any more, and yet it is deleted: its finalizer is removed by hand.
        world.change(WEB, &json!({"metadata": {"finalizers": null}}));
        world.delete(WEB);
        let kinds = kinds(&world.check().await);
        for kind in [
            "FrontendWithoutService",
            "RuleWithoutService",
            "PublicIpWithoutService",
            "SecurityRuleWithoutDestination",
        ] {
            assert!(kinds.iter().any(|found| found == kind), "{kind} is not among {kinds:?}");
        }
    });
}

#[test]
fn a_probe_that_no_rule_uses_is_found() {
    run(async || {
        let world = at_rest().await;
        world
            .azure
            .edit(&world.load_balancer(), |balancer| balancer["properties"]["loadBalancingRules"] = json!([]))
            .unwrap();
        assert!(kinds(&world.check().await).contains(&"ProbeWithoutRule".to_owned()));
    });
}

#[test]
fn a_pool_member_without_a_machine_is_found() {
    run(async || {
        let world = at_rest().await;
        let network = json!({"id": world.shape.network()});
        world
            .azure
            .edit(&world.load_balancer(), |balancer| {
                let pools = balancer["properties"]["backendAddressPools"].as_array_mut().unwrap();
                pools.push(json!({"name": "by-address", "properties": {"loadBalancerBackendAddresses": [
                    {"name": "gone", "properties": {"ipAddress": "10.240.77.7", "virtualNetwork": network}}]}}));
            })
            .unwrap();
        assert_eq!(kinds(&world.check().await), ["MemberWithoutMachine"]);
    });
}

#[test]
fn a_foreign_part_that_was_touched_is_found() {
    run(async || {
        let world = at_rest().await;
        let group = world.security_group();
        world.edit_foreign(&group, |group| {
            group["tags"] = json!({"owner": "somebody"});
            rules(group).push(json!({"name": "theirs", "properties": {
                "priority": 4000, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
                "sourceAddressPrefix": "192.0.2.99", "sourcePortRange": "*",
                "destinationAddressPrefix": "10.240.0.4", "destinationPortRange": "22"}}));
        });
        assert_eq!(world.check().await, []);
        world
            .azure
            .edit(&group, |group| {
                let theirs = rules(group).iter_mut().find(|rule| rule["name"] == "theirs").unwrap();
                theirs["properties"]["priority"] = 4001.into();
            })
            .unwrap();
        let findings = world.check().await;
        let [Finding::ForeignChanged { member, was, is, .. }] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!(member, "/properties/securityRules/theirs/properties/priority");
        assert_eq!((was, is), (&json!(4000), &json!(4001)));
    });
}

#[test]
fn an_address_that_does_not_answer_is_found_and_so_is_what_is_left_to_do() {
    run(async || {
        let world = at_rest().await;
        world.azure.edit(&world.security_group(), |group| rules(group).clear()).unwrap();
        let findings = world.check().await;
        assert_eq!(kinds(&findings), ["PlanNotEmpty", "Unreachable"], "{findings:#?}");
    });
}

#[test]
fn an_address_that_answers_strangers_is_found() {
    run(async || {
        let mut world = World::builder().nodes(1).start().await;
        world.create(service(WEB).source_ranges(&["198.51.100.0/24"]));
        world.settle().await;
        world.stop().await;
        world
            .azure
            .edit(&world.security_group(), |group| {
                rules(group).push(json!({"name": "too-much", "properties": {
                    "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "*",
                    "sourceAddressPrefix": "*", "sourcePortRange": "*",
                    "destinationAddressPrefix": "*", "destinationPortRange": "*"}}));
            })
            .unwrap();
        let findings = world.check().await;
        assert_eq!(kinds(&findings), ["Open"], "{findings:#?}");
        // Only the Service's own port has a rule on the load balancer.
        assert!(findings.iter().all(|finding| matches!(finding, Finding::Open { port: 80, .. })));
    });
}

#[test]
fn a_service_that_nobody_serves_and_nobody_explains_is_found() {
    run(async || {
        let mut world = World::builder().nodes(1).start().await;
        world.stop().await;
        world.create(service(WEB));
        assert_eq!(kinds(&world.check().await), ["Unserved", "PlanNotEmpty"]);
        world.create(
            service("shop/contradictory")
                .source_ranges(&["192.0.2.0/24"])
                .annotation("azure-allowed-ip-ranges", "198.51.100.0/24"),
        );
        let kinds = kinds(&world.check().await);
        assert!(kinds.contains(&"RefusedInSilence".to_owned()), "{kinds:?}");
        world.start();
        world.settle().await;
        assert!(world.is_refused("shop/contradictory"));
    });
}

#[test]
fn looking_leaves_no_trace_and_an_expected_finding_is_no_failure() {
    run(async || {
        let world = World::builder().nodes(1).start().await;
        world.create(service(WEB));
        world.settle().await;
        world.azure.clear_journal();
        assert_eq!(world.check().await, []);
        assert_eq!(world.azure.journal().counts.reads, 0);
        let strange = world.network("networkSecurityGroups", "strange");
        world.put_foreign(&strange, json!({"location": "westeurope"}));
        world.azure.delete(&strange).unwrap();
        let findings =
            world.settle_despite(|finding| matches!(finding, Finding::ForeignChanged { .. })).await;
        assert_eq!(kinds(&findings), ["ForeignChanged"]);
        assert_eq!((world.writes(PUBLIC_IPS), world.writes(SECURITY_GROUPS)), (0, 0));
    });
}
