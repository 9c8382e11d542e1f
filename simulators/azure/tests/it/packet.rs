//! The packet oracle over small named networks.

use std::collections::BTreeSet;

use azure_simulator::packet::{
    AlwaysHealthy, Health, Hop, Network, Packet, Protocol, Refusal, Source, trace,
};
use serde_json::{Value, json};

use crate::networks::*;

#[test]
fn the_internet_reaches_a_public_service_by_all_nodes() {
    let documents = cluster();
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    assert!(verdict.arrives, "{verdict}");
    let kinds: Vec<&str> = verdict
        .hops
        .iter()
        .map(|hop| match hop {
            Hop::PublicAddress { .. } => "public",
            Hop::Frontend { internal: false, .. } => "frontend",
            Hop::Rule { floating_ip: true, .. } => "rule",
            Hop::Probe { port: 30080, .. } => "probe",
            Hop::Pool { members, .. } if members.len() == 3 => "pool",
            Hop::Chosen { .. } => "chosen",
            Hop::Security { .. } => "security",
            Hop::Arrived { .. } => "arrived",
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["public", "frontend", "rule", "probe", "pool", "chosen", "security", "arrived"]);
    // Floating IP: the node sees the service's address and port.
    let Some(Hop::Arrived { destination, port, .. }) = verdict.hops.last() else { panic!("{verdict}") };
    assert_eq!((destination.to_string().as_str(), *port), (PUBLIC, 80));
    let decision = verdict.decisions().next().unwrap();
    assert_eq!((decision.rule.as_str(), decision.priority), ("allow-services", 500));
    let sentence = verdict.sentence();
    for part in ["arrives at node", "kubernetes-a1", "a1-TCP-80", "3 of 3", "allow-services (500)"] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    let all: BTreeSet<String> = ["node0", "node1", "node2"].map(str::to_owned).into();
    assert_eq!(nodes_reached(&documents, &AlwaysHealthy, &tcp(PUBLIC, 80)), all);
    assert_eq!(send(&documents, &tcp(PUBLIC, 80)), verdict, "the same flow goes the same way");
}

#[test]
fn nothing_has_an_unknown_address() {
    let verdict = send(&cluster(), &tcp("198.18.9.9", 80));
    assert!(matches!(refusal(&verdict), Refusal::NoSuchAddress { .. }), "{verdict}");
}

#[test]
fn a_public_ip_that_nothing_uses_leads_nowhere() {
    let mut documents = cluster();
    let spare = network("publicIPAddresses", "spare");
    documents.put(&spare, json!({ "properties": { "ipAddress": "198.18.0.5" } }));
    let verdict = send(&documents, &tcp("198.18.0.5", 80));
    assert!(matches!(refusal(&verdict), Refusal::Unattached { .. }), "{verdict}");
}

#[test]
fn a_port_or_protocol_without_a_rule_is_refused_with_what_there_is() {
    let documents = cluster();
    let udp = Packet { protocol: Protocol::Udp, ..tcp(PUBLIC, 80) };
    for packet in [tcp(PUBLIC, 81), udp] {
        let verdict = send(&documents, &packet);
        let Refusal::NoRule { offered, .. } = refusal(&verdict) else { panic!("{verdict}") };
        assert_eq!(*offered, ["TCP 80", "UDP 53"]);
        assert!(verdict.sentence().contains("it has rules for TCP 80, UDP 53"), "{verdict}");
    }
}

#[test]
fn an_unprobed_udp_rule_reaches_every_node() {
    let udp = Packet { protocol: Protocol::Udp, ..tcp(PUBLIC, 53) };
    assert_eq!(nodes_reached(&cluster(), &Only(&[]), &udp).len(), 3);
}

#[test]
fn only_nodes_that_answer_the_probe_take_connections() {
    let documents = cluster();
    let reached = nodes_reached(&documents, &Only(&["10.0.0.5"]), &tcp(PUBLIC, 80));
    assert_eq!(reached, BTreeSet::from(["node1".to_owned()]));
    let verdict = trace(&documents, &Only(&[]), &tcp(PUBLIC, 80));
    let Refusal::NoHealthyMember { members, .. } = refusal(&verdict) else { panic!("{verdict}") };
    assert!(members.iter().all(|member| member.health == Health::Silent));
    assert!(verdict.sentence().contains("node2 does not answer the probe"), "{verdict}");
}

#[test]
fn an_empty_pool_is_told_apart_from_an_unhealthy_one() {
    let mut documents = cluster();
    for number in 0..3 {
        let path = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
        documents.change(&instance(number), path, json!([]));
    }
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    assert!(matches!(refusal(&verdict), Refusal::EmptyPool { .. }), "{verdict}");
}

fn power(documents: &mut DocumentSet, number: usize, state: &str) {
    let statuses = json!([{ "code": format!("PowerState/{state}") }]);
    documents.change(&instance(number), "/properties/instanceView/statuses", statuses);
}

#[test]
fn machines_that_do_not_run_never_answer() {
    let mut documents = cluster();
    power(&mut documents, 0, "stopped");
    power(&mut documents, 1, "deallocated");
    let reached = nodes_reached(&documents, &AlwaysHealthy, &tcp(PUBLIC, 80));
    assert_eq!(reached, BTreeSet::from(["node2".to_owned()]), "probes keep stopped machines out");
    // Without a probe Azure goes on sending to a machine that is stopped, though not to a deallocated one.
    let udp = Packet { protocol: Protocol::Udp, ..tcp(PUBLIC, 53) };
    let network = Network::read(&documents);
    let lost = (0..64)
        .map(|port| network.trace(&AlwaysHealthy, &udp.clone().with_source_port(port)))
        .filter(|verdict| !verdict.arrives)
        .inspect(|verdict| {
            let Refusal::MachineOff { node, .. } = refusal(verdict) else { panic!("{verdict}") };
            assert_eq!(node, "node0");
        })
        .count();
    assert!((10..54).contains(&lost), "about half: {lost}");
    power(&mut documents, 2, "stopped");
    assert!(!send(&documents, &tcp(PUBLIC, 80)).arrives);
}

#[test]
fn security_rules_decide_by_priority() {
    let deny = |priority| {
        let mut documents = cluster();
        documents.rule("deny-client", priority, "Deny", json!({ "sourceAddressPrefix": "203.0.113.0/24" }));
        send(&documents, &tcp(PUBLIC, 80))
    };
    let verdict = deny(400);
    let Refusal::Denied { decision } = refusal(&verdict) else { panic!("{verdict}") };
    assert_eq!((decision.rule.as_str(), decision.priority), ("deny-client", 400));
    assert!(
        verdict.sentence().contains("security rule deny-client (priority 400) of nsg denies it"),
        "{verdict}"
    );
    assert!(deny(600).arrives);
}

#[test]
fn without_a_rule_that_allows_it_the_default_rules_deny_the_internet() {
    let mut documents = cluster();
    documents.change(&network("networkSecurityGroups", "nsg"), "/properties/securityRules", json!([]));
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    let Refusal::Denied { decision } = refusal(&verdict) else { panic!("{verdict}") };
    assert_eq!((decision.rule.as_str(), decision.is_default), ("DenyAllInBound", true));
}

#[test]
fn security_rules_match_by_prefix_list_port_range_protocol_and_tag() {
    let matching = [
        json!({ "sourceAddressPrefixes": ["192.0.2.0/24", "203.0.113.7"], "sourceAddressPrefix": null }),
        json!({ "sourceAddressPrefix": "0.0.0.0/0" }),
        json!({ "sourceAddressPrefix": "internet" }),
        json!({ "destinationPortRange": "79-80" }),
        json!({ "destinationPortRanges": ["443", "80"], "destinationPortRange": null }),
        json!({ "protocol": "tcp" }),
        json!({ "destinationAddressPrefixes": ["10.9.9.9", PUBLIC], "destinationAddressPrefix": null }),
    ];
    let other = [
        json!({ "sourceAddressPrefix": "203.0.113.8/32" }),
        json!({ "sourceAddressPrefix": "VirtualNetwork" }),
        json!({ "sourceAddressPrefix": "AzureLoadBalancer", "destinationAddressPrefix": PUBLIC }),
        json!({ "sourceAddressPrefix": "AzureCloud" }),
        json!({ "destinationPortRange": "81-90" }),
        json!({ "protocol": "Udp" }),
        json!({ "destinationAddressPrefix": "192.168.0.0/16" }),
        json!({ "sourcePortRange": "1-1024" }),
        json!({ "direction": "Outbound" }),
    ];
    for (properties, denies) in matching.iter().map(|p| (p, true)).chain(other.iter().map(|p| (p, false))) {
        let mut documents = cluster();
        documents.rule("deny", 100, "Deny", properties.clone());
        assert_eq!(!send(&documents, &tcp(PUBLIC, 80)).arrives, denies, "{properties}");
    }
    let mut documents = cluster();
    documents.rule("deny", 100, "Deny", json!({ "sourceAddressPrefix": "AzureCloud" }));
    let network =
        Network::read(&documents).with_service_tag("AzureCloud", vec!["203.0.113.0/24".parse().unwrap()]);
    assert!(!network.trace(&AlwaysHealthy, &tcp(PUBLIC, 80)).arrives, "a tag whose prefixes were configured");
}

#[test]
fn without_floating_ip_rules_see_the_node_and_its_port() {
    let mut documents = cluster();
    documents.change(&lb(), &rule_member(0, "enableFloatingIP"), json!(false));
    documents.change(&lb(), &rule_member(0, "backendPort"), json!(30080));
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    assert!(
        matches!(refusal(&verdict), Refusal::Denied { .. }),
        "allowed is the service's address: {verdict}"
    );
    documents.rule(
        "allow-nodes",
        501,
        "Allow",
        json!({ "sourceAddressPrefix": "Internet", "destinationAddressPrefix": "10.0.0.0/29",
                "destinationPortRange": "30080" }),
    );
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    let Some(Hop::Arrived { address, destination, port, .. }) = verdict.hops.last() else {
        panic!("{verdict}")
    };
    assert_eq!((address == destination, *port), (true, 30080));
    assert!(verdict.sentence().contains("on port 30080"), "{verdict}");
}

#[test]
fn the_group_of_the_interface_is_asked_after_the_subnets() {
    let mut documents = cluster();
    let second = network("networkSecurityGroups", "nic-nsg");
    documents.put(&second, json!({ "properties": { "securityRules": [] } }));
    for number in 0..3 {
        let nic = instance(number).child("networkInterfaces", "nic");
        documents.change(&nic, "/properties/networkSecurityGroup", reference(&second));
    }
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    let groups: Vec<&str> = verdict.decisions().map(|decision| decision.group.name()).collect();
    assert_eq!(groups, ["nsg", "nic-nsg"]);
    assert!(matches!(refusal(&verdict), Refusal::Denied { .. }), "{verdict}");
}

#[test]
fn a_standard_address_is_closed_without_any_security_group() {
    let mut documents = cluster();
    let subnets = "/properties/subnets/0/properties/networkSecurityGroup";
    documents.change(&network("virtualNetworks", "vnet"), subnets, Value::Null);
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    assert!(matches!(refusal(&verdict), Refusal::NoSecurityGroup { .. }), "{verdict}");
    documents.change(&lb(), "/sku/name", json!("Basic"));
    assert!(send(&documents, &tcp(PUBLIC, 80)).arrives);
}

#[test]
fn a_rule_that_keeps_probes_away_makes_nodes_unhealthy() {
    let mut documents = cluster();
    documents.rule("deny-probes", 100, "Deny", json!({ "sourceAddressPrefix": "AzureLoadBalancer" }));
    let verdict = send(&documents, &tcp(PUBLIC, 80));
    let Refusal::NoHealthyMember { members, .. } = refusal(&verdict) else { panic!("{verdict}") };
    assert!(members.iter().all(|member| matches!(&member.health, Health::ProbeDenied { decision }
        if decision.rule == "deny-probes")));
}

#[test]
fn the_administrative_state_goes_before_the_probe() {
    let mut documents = cluster();
    let entry = |number: usize, state: &str| {
        let nic = instance(number).child("networkInterfaces", "nic");
        json!({ "name": number.to_string(), "properties": { "adminState": state,
            "networkInterfaceIPConfiguration": reference(&nic.child("ipConfigurations", "ipconfig")) } })
    };
    documents.change(
        &lb(),
        "/properties/backendAddressPools/0/properties/loadBalancerBackendAddresses",
        json!([entry(0, "Down"), entry(1, "Up"), entry(2, "None")]),
    );
    let packet = tcp(PUBLIC, 80);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(nodes_reached(&documents, &AlwaysHealthy, &packet), names(&["node1", "node2"]));
    assert_eq!(nodes_reached(&documents, &Only(&[]), &packet), names(&["node1"]));
}

#[test]
fn pools_of_addresses_find_the_machines_that_have_them() {
    let mut documents = cluster();
    for number in 0..3 {
        let path = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
        documents.change(&instance(number), path, json!([]));
    }
    let vnet = network("virtualNetworks", "vnet");
    let entry = |address: &str| json!({ "name": address, "properties": { "ipAddress": address } });
    documents.change(
        &lb(),
        "/properties/backendAddressPools/0/properties",
        json!({ "virtualNetwork": reference(&vnet),
                "loadBalancerBackendAddresses": [entry("10.0.0.5"), entry("10.0.77.77")] }),
    );
    let packet = tcp(PUBLIC, 80);
    assert_eq!(nodes_reached(&documents, &AlwaysHealthy, &packet), BTreeSet::from(["node1".to_owned()]));
    let verdict = send(&documents, &packet);
    let members = verdict.hops.iter().find_map(|hop| match hop {
        Hop::Pool { members, .. } => Some(members),
        _ => None,
    });
    let strange = members.unwrap().iter().find(|member| member.node == "10.0.77.77").unwrap();
    assert_eq!(strange.health, Health::NoMachine);
}

#[test]
fn ordinary_machines_and_their_own_public_addresses_are_reached() {
    let mut documents = cluster();
    let machine = group().resource("Microsoft.Compute", "virtualMachines", "vm");
    let nic = network("networkInterfaces", "vm-nic");
    let configuration = nic.child("ipConfigurations", "ipconfig");
    let pip = network("publicIPAddresses", "vm-pip");
    let subnet = network("virtualNetworks", "vnet").child("subnets", "nodes");
    documents.put(&machine, json!({ "properties": { "osProfile": { "computerName": "jumphost" } } }));
    documents.put(
        &nic,
        json!({ "properties": { "virtualMachine": reference(&machine), "ipConfigurations": [{
            "id": configuration, "name": "ipconfig", "properties": {
                "privateIPAddress": "10.0.0.50", "subnet": reference(&subnet), "publicIPAddress": reference(&pip),
                "loadBalancerBackendAddressPools": [reference(&lb().child("backendAddressPools", "kubernetes"))],
            } }] } }),
    );
    documents.put(
        &pip,
        json!({ "sku": { "name": "Standard" },
                "properties": { "ipAddress": "198.18.0.9", "ipConfiguration": reference(&configuration) } }),
    );
    assert!(nodes_reached(&documents, &AlwaysHealthy, &tcp(PUBLIC, 80)).contains("jumphost"), "by its pool");
    assert!(!send(&documents, &tcp("198.18.0.9", 22)).arrives, "the group does not allow it yet");
    let nodes = json!({ "destinationAddressPrefix": "10.0.0.50", "destinationPortRange": "22" });
    documents.rule("allow-ssh", 510, "Allow", nodes);
    assert_eq!(send(&documents, &tcp("198.18.0.9", 22)).node(), Some("jumphost"));
    // A machine with an address of its own shows it to the internet.
    documents.rule("allow-jumphost", 100, "Allow", json!({ "sourceAddressPrefix": "198.18.0.9" }));
    let verdict = send(&documents, &from_node("jumphost", PUBLIC, 80));
    assert_eq!(verdict.decisions().last().unwrap().rule, "allow-jumphost", "{verdict}");
}

#[test]
fn internal_addresses_are_for_the_virtual_network_alone() {
    let documents = cluster();
    let verdict = send(&documents, &tcp(INTERNAL, 80));
    assert!(matches!(refusal(&verdict), Refusal::PrivateAddress { .. }), "{verdict}");
    let verdict = send(&documents, &from_node("node0", INTERNAL, 80));
    assert!(verdict.arrives, "{verdict}");
    let rules: Vec<&str> = verdict.decisions().map(|decision| decision.rule.as_str()).collect();
    assert_eq!(rules, ["AllowVnetOutBound", "AllowVnetInBound"]);
    for name in ["10.0.0.4", "0", "NODE0"] {
        assert!(send(&documents, &from_node(name, INTERNAL, 80)).arrives, "{name}");
    }
    let verdict = send(&documents, &from_node("nobody", INTERNAL, 80));
    assert!(matches!(refusal(&verdict), Refusal::NoSuchSender { .. }), "{verdict}");
}

#[test]
fn virtual_networks_are_apart_until_they_are_peered() {
    let mut documents = cluster();
    let (vnet, other) = (network("virtualNetworks", "vnet"), network("virtualNetworks", "other"));
    let subnet = virtual_network(&mut documents, "other", "172.16.0.0/16");
    machine(&mut documents, "far", "172.16.0.4", &subnet);
    let verdict = send(&documents, &from_node("far", INTERNAL, 80));
    assert!(matches!(refusal(&verdict), Refusal::OtherVirtualNetwork { .. }), "{verdict}");
    peer(&mut documents, &vnet, &other);
    let verdict = send(&documents, &from_node("far", INTERNAL, 80));
    assert!(verdict.arrives, "{verdict}");
}

#[test]
fn a_node_reaches_public_services_by_the_address_that_its_balancer_lends() {
    let verdict = send(&cluster(), &from_node("node0", PUBLIC, 80));
    assert!(verdict.arrives, "{verdict}");
    assert!(
        verdict.hops.iter().any(|hop| matches!(hop, Hop::OutboundAddress { address: Some(address), .. }
            if address.to_string() == PUBLIC)),
        "{verdict}"
    );
}

#[test]
fn a_nat_gateway_goes_before_the_balancers_address() {
    let mut documents = cluster();
    let (gateway, pip) = (network("natGateways", "nat"), network("publicIPAddresses", "nat-pip"));
    documents
        .put(&pip, json!({ "sku": { "name": "Standard" }, "properties": { "ipAddress": "198.18.0.77" } }));
    documents.put(&gateway, json!({ "properties": { "publicIpAddresses": [reference(&pip)] } }));
    let vnet = network("virtualNetworks", "vnet");
    documents.change(&vnet, "/properties/subnets/0/properties/natGateway", reference(&gateway));
    let verdict = send(&documents, &from_node("node0", PUBLIC, 80));
    assert!(verdict.arrives && verdict.sentence().contains("198.18.0.77 by NAT gateway nat"), "{verdict}");
}

#[test]
fn source_affinity_keeps_a_client_on_one_node() {
    let mut documents = cluster();
    documents.change(&lb(), &rule_member(0, "loadDistribution"), json!("SourceIP"));
    assert_eq!(nodes_reached(&documents, &AlwaysHealthy, &tcp(PUBLIC, 80)).len(), 1);
    let network = Network::read(&documents);
    let by_clients: BTreeSet<String> = (1..60)
        .filter_map(|last| {
            let from = Source::internet([203, 0, 113, last].into());
            network.trace(&AlwaysHealthy, &Packet { from, ..tcp(PUBLIC, 80) }).node().map(str::to_owned)
        })
        .collect();
    assert_eq!(by_clients.len(), 3);
}

#[test]
fn a_rule_for_every_port_takes_any() {
    let mut documents = cluster();
    for (member, value) in [
        ("protocol", json!("All")),
        ("frontendPort", json!(0)),
        ("backendPort", json!(0)),
        ("enableFloatingIP", json!(false)),
    ] {
        documents.change(&lb(), &rule_member(2, member), value);
    }
    for port in [1, 443, 9000] {
        let from = Source::virtual_network("vnet", "10.0.200.1".parse().unwrap());
        let verdict = send(&documents, &Packet { from, ..tcp(INTERNAL, port) });
        let Some(Hop::Arrived { port: arrived, .. }) = verdict.hops.last() else { panic!("{verdict}") };
        assert_eq!(*arrived, port);
    }
}

#[test]
fn an_inbound_nat_rule_leads_to_its_machine() {
    let mut documents = cluster();
    let target = instance(1).child("networkInterfaces", "nic").child("ipConfigurations", "ipconfig");
    let name = "ssh";
    documents.change(
        &lb(),
        "/properties/inboundNatRules",
        json!([{ "id": lb().child("inboundNatRules", name), "name": name, "properties": {
            "protocol": "Tcp", "frontendPort": 2222, "backendPort": 22,
            "frontendIPConfiguration": reference(&lb().child("frontendIPConfigurations", "a1")),
            "backendIPConfiguration": reference(&target) } }]),
    );
    documents.rule("allow-ssh", 510, "Allow", json!({ "destinationPortRange": "22" }));
    let verdict = send(&documents, &tcp(PUBLIC, 2222));
    assert_eq!(verdict.node(), Some("node1"), "{verdict}");
    assert!(verdict.sentence().contains("on port 22"), "{verdict}");
}

#[test]
fn addresses_of_the_other_family_are_out_of_reach() {
    let verdict = send(&cluster(), &tcp("2001:db8::1", 80));
    assert!(matches!(refusal(&verdict), Refusal::WrongFamily { .. }), "{verdict}");
    let verdict = send(&cluster(), &from_node("node0", "2001:db8::1", 80));
    assert!(matches!(refusal(&verdict), Refusal::WrongFamily { .. }), "{verdict}");
}

#[test]
fn documents_that_make_no_sense_are_skipped() {
    let mut documents = cluster();
    for kind in [
        "loadBalancers",
        "publicIPAddresses",
        "networkSecurityGroups",
        "virtualNetworks",
        "networkInterfaces",
    ] {
        documents.put(&network(kind, "odd"), json!({ "properties": { "subnets": 7, "ipConfigurations": [3, {}],
            "frontendIPConfigurations": [null], "loadBalancingRules": [{ "id": 5 }], "securityRules": "x" } }));
    }
    assert!(send(&documents, &tcp(PUBLIC, 80)).arrives);
}

#[test]
fn verdicts_are_data_too() {
    let data = serde_json::to_value(send(&cluster(), &tcp(PUBLIC, 80))).unwrap();
    assert_eq!(data["arrives"], true);
    assert_eq!(data["hops"][0]["kind"], "public_address");
    assert!(data["sentence"].as_str().unwrap().starts_with("TCP from 203.0.113.7 to 198.18.0.4:80 arrives"));
}
