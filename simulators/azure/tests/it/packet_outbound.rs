//! Outbound connections: which public address, by whose means, with how many ports, or none.

use azure_simulator::packet::{Network, NoOutbound, Outbound, OutboundMeans, Protocol, Refusal};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::networks::*;

fn outbound(documents: &DocumentSet, node: &str) -> Outbound {
    Network::read(documents).outbound_of(node).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn no_outbound(documents: &DocumentSet, node: &str) -> NoOutbound {
    match Network::read(documents).outbound_of(node) {
        Err(Refusal::NoOutbound { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

fn public_ip(documents: &mut DocumentSet, name: &str, address: &str) -> Value {
    let id = network("publicIPAddresses", name);
    documents.put(&id, json!({ "sku": { "name": "Standard" }, "properties": { "ipAddress": address } }));
    reference(&id)
}

fn nodes() -> ResourceId {
    network("virtualNetworks", "vnet").child("subnets", "nodes")
}

fn disable_lending(documents: &mut DocumentSet) {
    for at in 0..3 {
        documents.change(&lb(), &rule_member(at, "disableOutboundSnat"), json!(true));
    }
}

fn outbound_rule(documents: &mut DocumentSet, ports: u32) {
    let frontend = lb().child("frontendIPConfigurations", "out");
    let public = public_ip(documents, "out", "198.18.0.60");
    let frontends =
        documents.0.get_mut(&lb()).unwrap()["properties"]["frontendIPConfigurations"].as_array_mut().unwrap();
    frontends.push(json!({ "id": frontend, "name": "out", "properties": { "publicIPAddress": public } }));
    documents.change(
        &lb(),
        "/properties/outboundRules",
        json!([{ "id": lb().child("outboundRules", "out"), "name": "out", "properties": {
            "allocatedOutboundPorts": ports,
            "backendAddressPool": reference(&lb().child("backendAddressPools", "kubernetes")),
            "frontendIPConfigurations": [reference(&frontend)] } }]),
    );
}

#[test]
fn means_go_before_each_other_in_azures_order() {
    let mut documents = cluster();
    machine(&mut documents, "single", "10.0.0.50", &nodes());

    // A machine without any other outbound access gets an unknown address.
    let found = outbound(&documents, "single");
    assert_eq!((found.means, found.addresses.len()), (OutboundMeans::DefaultAccess, 0));

    let found = outbound(&documents, "node0");
    assert!(matches!(&found.means, OutboundMeans::LoadBalancingRule { id } if id.name() == "a1-TCP-80"));
    assert_eq!((found.addresses[0].to_string().as_str(), found.ports), (PUBLIC, Some(1024)));

    outbound_rule(&mut documents, 8000);
    let found = outbound(&documents, "node0");
    assert!(matches!(&found.means, OutboundMeans::OutboundRule { id } if id.name() == "out"));
    assert_eq!((found.addresses[0].to_string().as_str(), found.ports), ("198.18.0.60", Some(8000)));

    let nic = network("networkInterfaces", "single-nic");
    let own = public_ip(&mut documents, "own", "198.18.0.61");
    documents.change(&nic, "/properties/ipConfigurations/0/properties/publicIPAddress", own);
    let pool = json!([reference(&lb().child("backendAddressPools", "kubernetes"))]);
    documents.change(&nic, "/properties/ipConfigurations/0/properties/loadBalancerBackendAddressPools", pool);
    let found = outbound(&documents, "single");
    assert!(matches!(&found.means, OutboundMeans::PublicAddress { id } if id.name() == "own"));
    assert_eq!(found.ports, None, "an address of its own");

    let gateway = network("natGateways", "nat");
    let addresses =
        [public_ip(&mut documents, "g1", "198.18.0.70"), public_ip(&mut documents, "g2", "198.18.0.71")];
    documents.put(&gateway, json!({ "properties": { "publicIpAddresses": addresses } }));
    let vnet = network("virtualNetworks", "vnet");
    documents.change(&vnet, "/properties/subnets/0/properties/natGateway", reference(&gateway));
    for node in ["node0", "single"] {
        let found = outbound(&documents, node);
        assert!(matches!(&found.means, OutboundMeans::NatGateway { id } if id.name() == "nat"), "{node}");
        assert_eq!((found.addresses.len(), found.ports), (2, Some(2 * 64_512)));
    }

    // A user route goes before even that.
    routes(&mut documents, &[("all", "0.0.0.0/0", "None", None)]);
    let verdict = send(&documents, &from_node("node0", "203.0.113.9", 443));
    assert!(matches!(refusal(&verdict), Refusal::BlackHole { .. }), "{verdict}");
}

#[test]
fn a_prefix_of_a_nat_gateway_gives_all_its_addresses() {
    let mut documents = cluster();
    let (gateway, prefix) = (network("natGateways", "nat"), network("publicIPPrefixes", "prefix"));
    documents.put(&prefix, json!({ "properties": { "ipPrefix": "198.18.1.0/30" } }));
    documents.put(&gateway, json!({ "properties": { "publicIpPrefixes": [reference(&prefix)] } }));
    let vnet = network("virtualNetworks", "vnet");
    documents.change(&vnet, "/properties/subnets/0/properties/natGateway", reference(&gateway));
    let found = outbound(&documents, "node0");
    assert_eq!((found.addresses.len(), found.ports), (4, Some(4 * 64_512)));
}

#[test]
fn without_any_means_there_is_no_way_out() {
    let mut documents = cluster();
    machine(&mut documents, "single", "10.0.0.50", &nodes());
    disable_lending(&mut documents);
    assert!(matches!(no_outbound(&documents, "node0"), NoOutbound::BehindBalancer { .. }));
    let verdict = send(&documents, &from_node("node0", "203.0.113.9", 443));
    assert!(matches!(refusal(&verdict), Refusal::NoOutbound { .. }), "{verdict}");
    assert!(verdict.sentence().contains("lends it no public address"), "{verdict}");

    let vnet = network("virtualNetworks", "vnet");
    documents.change(&vnet, "/properties/subnets/0/properties/defaultOutboundAccess", json!(false));
    assert!(matches!(no_outbound(&documents, "single"), NoOutbound::PrivateSubnet { .. }));
    documents.change(&vnet, "/properties/subnets/0/properties/defaultOutboundAccess", json!(true));
    let flexible = group().resource("Microsoft.Compute", "virtualMachineScaleSets", "flex");
    let machine = group().resource("Microsoft.Compute", "virtualMachines", "single");
    documents.change(&machine, "/properties/virtualMachineScaleSet", reference(&flexible));
    assert!(matches!(no_outbound(&documents, "single"), NoOutbound::FlexibleScaleSet));
}

#[test]
fn ports_that_nobody_allotted_follow_from_the_size_of_the_pool() {
    for (members, ports) in [(3, 1024), (50, 1024), (51, 512), (101, 256), (401, 64)] {
        let mut documents = cluster();
        outbound_rule(&mut documents, 0);
        let entries: Vec<Value> = (3..members)
            .map(|number| {
                json!({ "name": number.to_string(), "properties": {
                "ipAddress": format!("10.0.{}.{}", 100 + number / 200, number % 200) } })
            })
            .collect();
        documents.change(
            &lb(),
            "/properties/backendAddressPools/0/properties/loadBalancerBackendAddresses",
            json!(entries),
        );
        assert_eq!(outbound(&documents, "node0").ports, Some(ports), "{members} members");
    }
}

#[test]
fn what_no_public_ip_of_this_azure_has_is_outside() {
    let documents = cluster();
    let verdict = send(&documents, &from_node("node0", "203.0.113.9", 443));
    assert!(verdict.arrives && verdict.node().is_none(), "{verdict}");
    assert!(verdict.sentence().contains("leaves for the internet"), "{verdict}");
    let verdict = send(&documents, &from_node("node0", "20.38.98.7", 443));
    assert!(verdict.sentence().contains("leaves for a service of Azure"), "{verdict}");
    // Simulated public addresses that are not allocated have no owner.
    let verdict = send(&documents, &from_node("node0", "198.18.7.7", 443));
    assert!(matches!(refusal(&verdict), Refusal::NoSuchAddress { .. }), "{verdict}");
}

#[test]
fn addresses_are_lent_for_the_protocol_of_a_rule() {
    let mut documents = cluster();
    for rule in [1, 2] {
        documents.change(&lb(), &rule_member(rule, "disableOutboundSnat"), json!(true));
    }
    let mut packet = from_node("node0", "203.0.113.9", 53);
    assert!(send(&documents, &packet).arrives);
    packet.protocol = Protocol::Udp;
    let verdict = send(&documents, &packet);
    assert!(matches!(refusal(&verdict), Refusal::NoOutbound { .. }), "{verdict}");
}

#[test]
fn a_frontend_lends_the_addresses_of_its_prefix() {
    let mut documents = cluster();
    outbound_rule(&mut documents, 1000);
    let prefix = network("publicIPPrefixes", "prefix");
    documents.put(&prefix, json!({ "properties": { "ipPrefix": "198.18.1.0/31" } }));
    let frontends =
        documents.0.get_mut(&lb()).unwrap()["properties"]["frontendIPConfigurations"].as_array_mut().unwrap();
    frontends.last_mut().unwrap()["properties"] = json!({ "publicIPPrefix": reference(&prefix) });
    let found = outbound(&documents, "node0");
    assert!(matches!(&found.means, OutboundMeans::OutboundRule { id } if id.name() == "out"));
    assert_eq!(found.addresses.len(), 2);
}

#[test]
fn who_joined_a_pool_by_address_keeps_default_access() {
    let mut documents = cluster();
    disable_lending(&mut documents);
    machine(&mut documents, "single", "10.0.0.50", &nodes());
    documents.change(
        &lb(),
        "/properties/backendAddressPools/0/properties/loadBalancerBackendAddresses",
        json!([{ "name": "single", "properties": { "ipAddress": "10.0.0.50" } }]),
    );
    assert_eq!(outbound(&documents, "single").means, OutboundMeans::DefaultAccess);
    assert!(matches!(no_outbound(&documents, "node0"), NoOutbound::BehindBalancer { .. }));
}
