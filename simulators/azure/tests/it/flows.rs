//! Many flows: how they spread, and which of them break when something changes.

use azure_simulator::Edit;
use azure_simulator::packet::{
    AlwaysHealthy, Change, Fate, FlowChange, FlowPlan, FlowReport, Network, ProbeAnswers, Protocol, Source,
    flows,
};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::networks::*;

fn plan(port: u16) -> FlowPlan {
    FlowPlan { flows: 900, ..FlowPlan::new(PUBLIC.parse().unwrap(), port) }
}

fn ask(documents: &DocumentSet, plan: &FlowPlan) -> FlowReport {
    flows(documents, &AlwaysHealthy, plan)
}

fn before(report: &FlowReport) -> Vec<(&str, usize)> {
    report.nodes.iter().map(|flows| (flows.node.as_str(), flows.before)).collect()
}

/// What becomes of flows of port 80 with a change.
fn changed(documents: &DocumentSet, change: Change, protocol: Protocol) -> (FlowReport, FlowChange) {
    let report = ask(documents, &plan(80).over(protocol).with_change(change));
    let change = report.change.clone().unwrap();
    assert_eq!(change.kept + change.moved + change.broken, report.established, "{}", report.sentence());
    (report, change)
}

fn rule() -> ResourceId {
    lb().child("loadBalancingRules", "a1-TCP-80")
}

fn drain(node: &str) -> Change {
    Change::Drain { node: node.into() }
}

fn silence(node: &str) -> Change {
    Change::Silence { node: node.into() }
}

fn stop(node: &str) -> Change {
    Change::Stop { node: node.into() }
}

/// The flows of one node: (before, kept, gained, new).
fn of(report: &FlowReport, node: &str) -> (usize, usize, usize, usize) {
    let found = report.nodes.iter().find(|flows| flows.node == node);
    found.map_or((0, 0, 0, 0), |flows| (flows.before, flows.kept, flows.gained, flows.new))
}

/// Documents in which UDP 80 is open and probed like TCP 80.
fn over_udp() -> DocumentSet {
    let mut documents = cluster();
    documents.change(&lb(), &rule_member(0, "protocol"), json!("Udp"));
    documents
}

#[test]
fn flows_spread_over_all_nodes_and_the_same_way_each_time() {
    let documents = cluster();
    let report = ask(&documents, &plan(80));
    assert_eq!((report.flows, report.established), (900, 900));
    assert!(report.nodes.iter().all(|flows| (240..360).contains(&flows.before)), "{:?}", before(&report));
    assert_eq!(report.nodes.len(), 3);
    assert!(report.change.is_none());
    assert!(report.sentence().starts_with("Of 900 TCP flows to 198.18.0.4:80 900 arrive: node0 "));
    assert_eq!(ask(&documents, &plan(80)), report);
    assert_ne!(before(&ask(&documents, &FlowPlan { seed: 1, ..plan(80) })), before(&report));
    let flows: std::collections::BTreeSet<String> =
        plan(80).packets().iter().map(|packet| format!("{:?} {}", packet.from, packet.source_port)).collect();
    assert_eq!(flows.len(), 900, "no two packets are of one flow");
    let report = ask(&documents, &plan(81));
    assert_eq!(report.established, 0);
    assert!(
        report.sentence().contains("900 do not (mostly because frontend a1 has no rule"),
        "{}",
        report.sentence()
    );
}

#[test]
fn the_distribution_mode_decides_what_of_a_flow_counts() {
    let mut documents = cluster();
    let one_client = FlowPlan { from: Some(Source::internet(CLIENT.parse().unwrap())), ..plan(80) };
    for (mode, nodes) in [("Default", 3), ("SourceIP", 1), ("SourceIPProtocol", 1)] {
        documents.change(&lb(), &rule_member(0, "loadDistribution"), json!(mode));
        assert_eq!(ask(&documents, &one_client).nodes.len(), nodes, "{mode}");
        assert_eq!(ask(&documents, &plan(80)).nodes.len(), 3, "{mode}");
    }
}

#[test]
fn a_drained_node_keeps_its_tcp_flows_and_loses_its_udp_flows() {
    let (report, change) = changed(&cluster(), drain("node1"), Protocol::Tcp);
    assert_eq!((change.moved, change.broken), (0, 0), "{}", report.sentence());
    let (before, kept, _, new) = of(&report, "node1");
    assert_eq!((before, new), (kept, 0));

    let (report, change) = changed(&over_udp(), drain("node1"), Protocol::Udp);
    assert_eq!(change.moved, of(&report, "node1").0);
    assert_eq!(change.broken, 0);
    assert_eq!(of(&report, "node0").2 + of(&report, "node2").2, change.moved);
    assert!(matches!(&change.examples[0].fate, Fate::Moves { to } if to != "node1"));
}

#[test]
fn a_drained_node_behind_a_rule_without_probe_goes_on() {
    let mut documents = cluster();
    documents.change(&lb(), &rule_member(0, "probe"), Value::Null);
    let (report, change) = changed(&documents, drain("node1"), Protocol::Tcp);
    assert_eq!(change.kept, 900);
    assert!(of(&report, "node1").3 > 0, "administrative states need a probe");
}

#[test]
fn a_failing_probe_ends_no_tcp_flow_as_long_as_others_answer() {
    let (report, change) = changed(&cluster(), silence("node1"), Protocol::Tcp);
    assert_eq!((change.kept, of(&report, "node1").3), (900, 0));
    let (report, change) = changed(&over_udp(), silence("node1"), Protocol::Udp);
    assert_eq!((change.moved, change.broken), (of(&report, "node1").0, 0));
}

#[test]
fn when_every_probe_fails_only_standard_balancers_keep_tcp_flows() {
    let silent = |documents: &DocumentSet, protocol: Protocol| {
        let plan = ["node0", "node1", "node2"]
            .into_iter()
            .fold(plan(80).over(protocol), |plan, node| plan.with_change(silence(node)));
        ask(documents, &plan).change.unwrap()
    };
    let change = silent(&cluster(), Protocol::Tcp);
    assert_eq!((change.kept, change.accepted), (900, 0));
    assert!(change.refused[0].why.contains("takes new connections"));
    assert_eq!(silent(&over_udp(), Protocol::Udp).broken, 900);
    let mut basic = cluster();
    basic.change(&lb(), "/sku/name", json!("Basic"));
    let change = silent(&basic, Protocol::Tcp);
    assert_eq!(change.broken, 900);
    assert_eq!(change.reasons[0].why, "no member of the pool answers its probe");

    let mut alone = cluster();
    for number in 1..3 {
        let path = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
        alone.change(&instance(number), path, json!([]));
    }
    assert_eq!(silent(&alone, Protocol::Tcp).broken, 900, "the only member");
}

#[test]
fn who_leaves_the_pool_or_stops_takes_its_flows_along() {
    for change in [
        stop("node2"),
        Change::Edit {
            id: instance(2),
            edit: Edit::setting(
                "properties/networkProfileConfiguration/networkInterfaceConfigurations/nic/properties/ipConfigurations/ipconfig/properties/loadBalancerBackendAddressPools",
                json!([]),
            ),
        },
        Change::Remove { id: instance(2) },
    ] {
        let (report, found) = changed(&cluster(), change.clone(), Protocol::Tcp);
        assert_eq!(found.broken, of(&report, "node2").0, "{change:?}: {}", report.sentence());
        assert_eq!(found.moved, 0);
        assert!(found.reasons[0].why.starts_with("node2"), "{:?}", found.reasons);
        let (report, found) = changed(&over_udp(), change, Protocol::Udp);
        assert_eq!((found.moved, found.broken), (of(&report, "node2").0, 0));
    }
}

#[test]
fn a_rule_that_goes_or_translates_otherwise_ends_its_flows() {
    let edit = |member: &str, value: Value| Change::Edit {
        id: rule(),
        edit: Edit::setting(&format!("properties/{member}"), value),
    };
    for (change, broken) in [
        (Change::Remove { id: rule() }, 900),
        (edit("frontendPort", json!(81)), 900),
        (edit("enableFloatingIP", json!(false)), 900),
        (edit("backendPort", json!(8080)), 0),
        (edit("idleTimeoutInMinutes", json!(30)), 0),
        (Change::Remove { id: network("publicIPAddresses", "kubernetes-a1") }, 900),
    ] {
        let (report, found) = changed(&cluster(), change.clone(), Protocol::Tcp);
        assert_eq!(found.broken, broken, "{change:?}: {}", report.sentence());
    }
}

#[test]
fn security_rules_judge_new_flows_alone() {
    let deny = json!({ "name": "shut", "properties": { "priority": 100, "direction": "Inbound", "access": "Deny",
        "protocol": "*", "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
        "destinationAddressPrefix": "*", "destinationPortRange": "*" } });
    let group = network("networkSecurityGroups", "nsg");
    let shut = Change::Edit { id: group, edit: Edit::setting("properties/securityRules/shut", deny) };
    let (report, change) = changed(&cluster(), shut, Protocol::Tcp);
    assert_eq!((change.kept, change.accepted), (900, 0), "{}", report.sentence());
    assert!(report.sentence().contains("900 new flows are refused (mostly because security rule shut"));
}

#[test]
fn a_new_member_moves_no_flow_but_may_get_the_next_one() {
    let two = {
        let mut documents = cluster();
        documents.change(
            &instance(2),
            "/properties/networkProfileConfiguration/networkInterfaceConfigurations",
            json!([]),
        );
        documents
    };
    let (two, three) = (Network::read(&two), Network::read(&cluster()));
    let report = two.flows_after(&AlwaysHealthy, &three, &AlwaysHealthy, &plan(80));
    let change = report.change.clone().unwrap();
    assert_eq!((change.kept, change.moved, change.broken), (900, 0, 0));
    let (before, kept, _, new) = of(&report, "node2");
    assert_eq!((before, kept), (0, 0));
    assert_eq!(new, change.next_elsewhere, "only the new member takes flows from others");
    assert!(new > 200);
}

#[test]
fn an_outbound_flow_ends_when_its_public_address_changes() {
    let mut documents = cluster();
    let (gateway, pip) = (network("natGateways", "nat"), network("publicIPAddresses", "nat-pip"));
    documents
        .put(&pip, json!({ "sku": { "name": "Standard" }, "properties": { "ipAddress": "198.18.0.77" } }));
    documents.put(&gateway, json!({ "properties": { "publicIpAddresses": [reference(&pip)] } }));
    let plan = FlowPlan {
        from: Some(Source::node("node0")),
        flows: 50,
        changes: vec![Change::Edit {
            id: network("virtualNetworks", "vnet").child("subnets", "nodes"),
            edit: Edit::setting("properties/natGateway", reference(&gateway)),
        }],
        ..FlowPlan::new("203.0.113.9".parse().unwrap(), 443)
    };
    let change = ask(&documents, &plan).change.unwrap();
    assert_eq!((change.broken, change.accepted), (50, 50));
    assert_eq!(change.reasons[0].why, "its public address changed on the way out");
}

#[test]
fn changes_of_what_is_not_there_change_nothing() {
    for change in [
        Change::Remove { id: lb().child("loadBalancingRules", "none") },
        Change::Edit { id: lb().child("probes", "none"), edit: Edit::merging(json!({ "properties": {} })) },
        drain("nobody"),
        silence("nobody"),
    ] {
        let (report, found) = changed(&cluster(), change, Protocol::Tcp);
        assert_eq!(found.kept, 900);
        assert!(report.nodes.iter().all(|flows| flows.before == flows.new));
    }
}

#[test]
fn plans_and_reports_are_data() {
    let plan: FlowPlan = serde_json::from_value(json!({
        "to": PUBLIC, "port": 80, "flows": 90,
        "changes": [{ "drain": { "node": "node0" } }, { "remove": { "id": rule() } }],
    }))
    .unwrap();
    assert_eq!(plan.changes[1], Change::Remove { id: rule() });
    let report = serde_json::to_value(ask(&cluster(), &plan)).unwrap();
    assert_eq!(report["change"]["broken"], 90);
    assert_eq!(report["change"]["examples"][0]["fate"], "breaks");
    assert!(serde_json::from_value::<FlowPlan>(json!({ "to": PUBLIC, "port": 80, "flow": 3 })).is_err());
    for member in ["flows", "clients"] {
        let mut plan = json!({ "to": PUBLIC, "port": 80 });
        plan[member] = json!(20_001);
        let said = serde_json::from_value::<FlowPlan>(plan).unwrap_err().to_string();
        assert!(said.contains("20001 are too many: 20000"), "{said}");
    }
}

#[test]
fn a_change_names_a_machine_by_its_id_too() {
    for node in ["node1", instance(1).as_str()] {
        for change in [Change::Drain { node: node.into() }, Change::Stop { node: node.into() }, silence(node)]
        {
            let report = flows(&cluster(), &AlwaysHealthy, &plan(80).with_change(change));
            assert_eq!(of(&report, "node1").3, 0, "{node}");
        }
    }
}

#[test]
fn probes_are_asked_in_both_states() {
    struct Two;
    impl ProbeAnswers for Two {
        fn answers(&self, id: &ResourceId, _: std::net::IpAddr, _: &str, _: u16, _: Option<&str>) -> bool {
            id.name() != "0"
        }
    }
    let report = flows(&cluster(), &Two, &plan(80).with_change(silence("node1")));
    assert_eq!(of(&report, "node0"), (0, 0, 0, 0));
    assert_eq!(of(&report, "node1").3, 0);
    assert_eq!(of(&report, "node2").3, 900);
}
