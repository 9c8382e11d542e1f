//! The topology that pages draw: networks, interfaces, private endpoints, inbound NAT.

use azure_simulator::packet::AlwaysHealthy;
use azure_simulator::view::Topology;
use serde_json::{Value, json};

use crate::networks::*;

fn read(documents: &DocumentSet) -> Value {
    serde_json::to_value(Topology::read(documents, &AlwaysHealthy)).unwrap()
}

#[test]
fn machines_show_their_interfaces_and_scale_sets() {
    let mut documents = cluster();
    forward(&mut documents);
    let subnet = network("virtualNetworks", "vnet").child("subnets", "nodes");
    let nic = machine(&mut documents, "single", "10.0.0.50", &subnet);
    let flexible = group().resource("Microsoft.Compute", "virtualMachineScaleSets", "flex");
    let id = group().resource("Microsoft.Compute", "virtualMachines", "single");
    documents.change(&id, "/properties/virtualMachineScaleSet", reference(&flexible));
    let own = network("publicIPAddresses", "own");
    documents
        .put(&own, json!({ "sku": { "name": "Standard" }, "properties": { "ipAddress": "198.18.0.61" } }));
    documents.change(&nic, "/properties/ipConfigurations/0/properties/publicIPAddress", reference(&own));
    let topology = read(&documents);
    let nodes = topology["nodes"].as_array().unwrap();
    let single = nodes.iter().find(|node| node["name"] == "single").unwrap();
    assert_eq!((&single["scale_set"], &single["flexible"]), (&json!("flex"), &json!(true)));
    assert_eq!(single["interfaces"][0]["public_addresses"], json!(["198.18.0.61"]));
    assert_eq!(single["interfaces"][0]["subnet"], "vnet/nodes");
    let instance = nodes.iter().find(|node| node["name"] == "node0").unwrap();
    assert_eq!((&instance["scale_set"], &instance["flexible"]), (&json!("pool"), &json!(false)));
    assert_eq!(instance["interfaces"][0]["pools"], json!(["kubernetes"]));
    assert_eq!(instance["interfaces"][0]["forwards"], true);
    let addresses = topology["addresses"].as_array().unwrap();
    let own = addresses.iter().find(|address| address["address"] == "198.18.0.61").unwrap();
    assert_eq!(own["node"], "single");
    assert_eq!(topology["interfaces"], json!([]));
    documents.change(&nic, "/properties/virtualMachine", Value::Null);
    assert_eq!(read(&documents)["interfaces"][0]["name"], "single-nic");
}

#[test]
fn networks_show_what_holds_in_their_subnets() {
    let mut documents = cluster();
    virtual_network(&mut documents, "other", "172.16.0.0/16");
    peer(&mut documents, &network("virtualNetworks", "vnet"), &network("virtualNetworks", "other"));
    routes(&mut documents, &[("pods", "10.244.0.0/24", "VirtualAppliance", Some("10.0.0.4"))]);
    let networks = read(&documents)["networks"].clone();
    assert_eq!(networks[0]["name"], "other");
    assert_eq!(networks[1]["peers"], json!(["other"]));
    let subnet = &networks[1]["subnets"][0];
    assert_eq!(subnet["security_group"], "nsg");
    assert_eq!(subnet["routes"], json!(["route pods (10.244.0.0/24) to appliance 10.0.0.4"]));
}

#[test]
fn frontends_show_inbound_nat_rules_and_who_offers_them() {
    let mut documents = cluster();
    let frontend = lb().child("frontendIPConfigurations", "b2");
    let target = instance(1).child("networkInterfaces", "nic").child("ipConfigurations", "ipconfig");
    documents.change(
        &lb(),
        "/properties/inboundNatRules",
        json!([{ "id": lb().child("inboundNatRules", "ssh"), "name": "ssh", "properties": { "protocol": "Tcp",
            "frontendPort": 2222, "backendPort": 22, "frontendIPConfiguration": reference(&frontend),
            "backendIPConfiguration": reference(&target) } }]),
    );
    let service = network("privateLinkServices", "pls");
    documents.put(
        &service,
        json!({ "properties": { "loadBalancerFrontendIpConfigurations": [reference(&frontend)] } }),
    );
    documents.put(
        &network("privateEndpoints", "pe"),
        json!({ "properties": { "privateLinkServiceConnections": [{ "name": "x", "properties": {
            "privateLinkServiceId": service, "privateLinkServiceConnectionState": { "status": "Pending" } } }] } }),
    );
    let topology = read(&documents);
    let address =
        topology["addresses"].as_array().unwrap().iter().find(|a| a["frontend"] == "b2").unwrap().clone();
    assert_eq!(
        address["nat_rules"],
        json!([
        { "name": "ssh", "protocol": "Tcp", "port": 2222, "backend_port": 22, "node": "node1" }])
    );
    assert_eq!(address["link_services"], json!(["pls"]));
    assert_eq!(
        topology["endpoints"],
        json!([
        { "name": "pe", "addresses": [], "status": "Pending", "leads_to": "pls" }])
    );
}
