//! Routes: user routes, pod ranges, appliances, peerings, and who may send what from where.

use azure_simulator::packet::{Hop, Network, NextHop, Packet, Refusal, Source};
use serde_json::json;

use crate::networks::*;

const POD: &str = "10.244.1.17";

/// Every node has a pod range by a route: 10.244.{number}.0/24.
fn with_pods() -> DocumentSet {
    let mut documents = cluster();
    // Pods are outside of the network's own addresses, as with kubenet.
    let vnet = network("virtualNetworks", "vnet");
    documents.change(&vnet, "/properties/addressSpace/addressPrefixes", json!(["10.0.0.0/16"]));
    routes(
        &mut documents,
        &[
            ("node0", "10.244.0.0/24", "VirtualAppliance", Some("10.0.0.4")),
            ("node1", "10.244.1.0/24", "VirtualAppliance", Some("10.0.0.5")),
            ("node2", "10.244.2.0/24", "VirtualAppliance", Some("10.0.0.6")),
        ],
    );
    forward(&mut documents);
    documents
}

fn from_pod(pod: &str, to: &str, port: u16) -> Packet {
    Packet { from: Source::pod(pod.parse().unwrap()), ..tcp(to, port) }
}

#[test]
fn a_pod_range_is_reached_by_the_node_that_its_route_names() {
    let documents = with_pods();
    let verdict = send(&documents, &from_node("node0", POD, 8080));
    assert_eq!(verdict.node(), Some("node1"), "{verdict}");
    assert!(verdict.sentence().contains("route node1 (10.244.1.0/24)"), "{verdict}");
    let rules: Vec<&str> = verdict.decisions().map(|decision| decision.rule.as_str()).collect();
    assert_eq!(rules, ["AllowVnetOutBound", "AllowVnetInBound"], "user routes count as the virtual network");
    let verdict = send(&documents, &from_pod("10.244.2.9", POD, 8080));
    assert_eq!(verdict.node(), Some("node1"), "{verdict}");
    assert!(matches!(&verdict.hops[0], Hop::Sender { node, .. } if node == "node2"));
}

#[test]
fn a_pod_range_without_its_route_is_nobodys() {
    let verdict = send(&with_pods(), &from_node("node0", "10.244.7.1", 8080));
    assert!(matches!(refusal(&verdict), Refusal::NoSuchAddress { .. }), "{verdict}");
    let verdict = send(&with_pods(), &from_pod("10.244.7.1", POD, 8080));
    assert!(matches!(refusal(&verdict), Refusal::NoSuchSender { .. }), "{verdict}");
}

#[test]
fn interfaces_without_ip_forwarding_drop_what_bears_other_addresses() {
    let mut documents = with_pods();
    let nic = instance(1).child("networkInterfaces", "nic");
    documents.change(&nic, "/properties/enableIPForwarding", json!(false));
    let verdict = send(&documents, &from_node("node0", POD, 8080));
    assert!(matches!(refusal(&verdict), Refusal::NotForwarding { node, .. } if node == "node1"), "{verdict}");
    let verdict = send(&documents, &from_pod(POD, "10.244.0.9", 8080));
    assert!(matches!(refusal(&verdict), Refusal::NotForwarding { node, .. } if node == "node1"), "{verdict}");
    // To the outside a node sends with its own address.
    let verdict = send(&documents, &from_pod(POD, "203.0.113.9", 443));
    assert!(verdict.arrives, "{verdict}");
}

#[test]
fn a_route_to_a_node_that_does_not_run_or_is_not_there_leads_nowhere() {
    let mut documents = with_pods();
    documents.change(
        &instance(1),
        "/properties/instanceView",
        json!({ "statuses": [{ "code": "PowerState/deallocated" }] }),
    );
    let verdict = send(&documents, &from_node("node0", POD, 8080));
    assert!(matches!(refusal(&verdict), Refusal::MachineOff { node, .. } if node == "node1"), "{verdict}");
    routes(&mut documents, &[("gone", "10.244.1.0/24", "VirtualAppliance", Some("10.0.0.99"))]);
    let verdict = send(&documents, &from_node("node0", POD, 8080));
    assert!(matches!(refusal(&verdict), Refusal::NoAppliance { .. }), "{verdict}");
}

#[test]
fn the_longest_prefix_wins_and_of_equal_ones_the_users() {
    let mut documents = cluster();
    machine(
        &mut documents,
        "peer",
        "10.0.3.7",
        &network("virtualNetworks", "vnet").child("subnets", "nodes"),
    );
    for (table, arrives) in [
        (&[("hole", "10.0.3.0/24", "None", None)][..], false),
        (&[("hole", "10.0.0.0/8", "None", None)], false),
        (&[("hole", "10.0.0.0/7", "None", None)], true),
        (&[("hole", "10.0.3.0/24", "None", None), ("way", "10.0.3.7/32", "VnetLocal", None)], true),
        (&[("vpn", "10.0.3.0/24", "VirtualNetworkGateway", None)], false),
    ] {
        routes(&mut documents, table);
        let verdict = send(&documents, &from_node("node0", "10.0.3.7", 22));
        assert_eq!(verdict.arrives, arrives, "{table:?}: {verdict}");
        if !arrives {
            assert!(matches!(refusal(&verdict), Refusal::BlackHole { .. } | Refusal::NoGateway { .. }));
        }
    }
    let subnet = network("virtualNetworks", "vnet").child("subnets", "nodes");
    let effective = Network::read(&documents).effective_routes(&subnet);
    let prefixes: Vec<String> = effective.iter().map(|route| route.prefix.to_string()).collect();
    assert_eq!(
        prefixes,
        [
            "10.0.3.0/24",
            "192.168.0.0/16",
            "172.16.0.0/12",
            "100.64.0.0/10",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0"
        ]
    );
    assert_eq!(
        effective[4].next_hop,
        NextHop::VirtualNetwork,
        "the network's own route, not the one that drops"
    );
}

#[test]
fn a_firewall_passes_on_what_a_default_route_sends_it() {
    let mut documents = cluster();
    let vnet = network("virtualNetworks", "vnet");
    let edge = vnet.child("subnets", "edge");
    let subnets = documents.0.get_mut(&vnet).unwrap()["properties"]["subnets"].as_array_mut().unwrap();
    subnets.push(json!({ "id": edge, "name": "edge", "properties": { "addressPrefix": "10.9.0.0/24" } }));
    let nic = machine(&mut documents, "firewall", "10.9.0.4", &edge);
    routes(&mut documents, &[("all", "0.0.0.0/0", "VirtualAppliance", Some("10.9.0.4"))]);
    let packet = from_node("node0", "203.0.113.9", 443);
    let verdict = send(&documents, &packet);
    assert!(
        matches!(refusal(&verdict), Refusal::NotForwarding { node, .. } if node == "firewall"),
        "{verdict}"
    );
    documents.change(&nic, "/properties/enableIPForwarding", json!(true));
    let verdict = send(&documents, &packet);
    assert!(verdict.arrives, "{verdict}");
    assert!(verdict.sentence().contains("passed on by firewall (10.9.0.4)"), "{verdict}");
    // It leaves with what the firewall has, not with what the balancer lends the node.
    assert!(verdict.sentence().contains("default outbound access"), "{verdict}");
    // Two firewalls that send to each other.
    let table = network("routeTables", "table");
    documents.change(&vnet, "/properties/subnets/1/properties/routeTable", reference(&table));
    let verdict = send(&documents, &packet);
    assert!(matches!(refusal(&verdict), Refusal::Loop { .. }), "{verdict}");
}

#[test]
fn a_host_of_a_peered_network_reaches_the_internal_service() {
    let mut documents = cluster();
    let (vnet, other) = (network("virtualNetworks", "vnet"), network("virtualNetworks", "other"));
    virtual_network(&mut documents, "other", "172.16.0.0/16");
    let from = |network: &str, address: &str| Packet {
        from: Source::virtual_network(network, address.parse().unwrap()),
        ..tcp(INTERNAL, 80)
    };
    let verdict = send(&documents, &from("other", "172.16.0.9"));
    assert!(matches!(refusal(&verdict), Refusal::OtherVirtualNetwork { .. }), "{verdict}");
    peer(&mut documents, &vnet, &other);
    let verdict = send(&documents, &from("other", "172.16.0.9"));
    assert!(verdict.arrives, "{verdict}");
    assert!(verdict.sentence().contains("peered network vnet"), "{verdict}");
    documents.change(
        &other,
        "/properties/virtualNetworkPeerings/0/properties/allowVirtualNetworkAccess",
        json!(false),
    );
    assert!(!send(&documents, &from("other", "172.16.0.9")).arrives);
    for (network, address) in [("other", "172.17.0.9"), ("nowhere", "172.16.0.9")] {
        let verdict = send(&documents, &from(network, address));
        assert!(matches!(refusal(&verdict), Refusal::NoSuchSender { .. }), "{verdict}");
    }
}

#[test]
fn a_member_of_the_pool_does_not_reach_itself_by_the_internal_frontend() {
    let documents = cluster();
    let network = Network::read(&documents);
    let packet = from_node("node1", INTERNAL, 80);
    let verdicts: Vec<_> = (0..40)
        .map(|port| {
            network.trace(
                &azure_simulator::packet::AlwaysHealthy,
                &packet.clone().with_source_port(50_000 + port),
            )
        })
        .collect();
    assert!(verdicts.iter().all(|verdict| verdict.node() != Some("node1")));
    assert!(verdicts.iter().any(|verdict| matches!(verdict.refusal, Some(Refusal::Hairpin { .. }))));
    assert!(verdicts.iter().any(|verdict| verdict.arrives));
}

#[test]
fn the_host_answers_for_instance_metadata() {
    let verdict = send(&cluster(), &from_node("node0", "169.254.169.254", 80));
    assert!(verdict.arrives && verdict.node().is_none(), "{verdict}");
    assert!(verdict.sentence().contains("instance metadata"), "{verdict}");
}
