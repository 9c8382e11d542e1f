//! The packet oracle over what the simulated Azure itself shows, so that both mean the same by a document.

use std::net::IpAddr;

use azure_simulator::packet::{
    AlwaysHealthy, Network, OutboundMeans, Packet, Protocol, Refusal, Source, Verdict, trace,
};
use azure_simulator::{Options, PowerState};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::common::*;

fn reference(id: &ResourceId) -> Value {
    json!({ "id": id })
}

fn send(client: &Client, from: Source, to: &str, port: u16) -> Verdict {
    trace(&client.azure, &AlwaysHealthy, &Packet::new(from, to.parse().unwrap(), port, Protocol::Tcp))
}

fn internet() -> Source {
    Source::internet("203.0.113.7".parse().unwrap())
}

fn set() -> ResourceId {
    compute_id("virtualMachineScaleSets/pool")
}

/// Two scale set nodes that forward, behind a public balancer `lb` (TCP 80, inbound NAT pool 6000 to 6099
/// for port 22, inbound NAT rule 7000 to 7099 for port 8022) and an internal one `ilb` (TCP 80), a
/// security group that lets the internet reach all that, and a pod range for the first node.
async fn cluster(client: &Client) -> String {
    let group = network_id("networkSecurityGroups/nsg");
    client
        .create(
            &group,
            json!({ "location": "eastus", "properties": { "securityRules": [{ "name": "allow", "properties": {
                "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
                "sourceAddressPrefix": "Internet", "sourcePortRange": "*", "destinationAddressPrefix": "*",
                "destinationPortRanges": ["80", "22", "8022"] } }] } }),
        )
        .await;
    let table = network_id("routeTables/table");
    client
        .create(
            &table,
            json!({ "location": "eastus", "properties": { "routes": [{ "name": "pods", "properties": {
                "addressPrefix": "10.244.0.0/24", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.1.0.4" } }] } }),
        )
        .await;
    let vnet = network_id("virtualNetworks/net");
    let subnet = vnet.child("subnets", "nodes");
    client
        .create(
            &vnet,
            json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["10.0.0.0/12"] },
                "subnets": [
                    { "name": "nodes", "properties": { "addressPrefix": "10.1.0.0/16",
                        "networkSecurityGroup": reference(&group), "routeTable": reference(&table) } },
                    { "name": "link", "properties": { "addressPrefix": "10.2.0.0/24",
                        "privateLinkServiceNetworkPolicies": "Disabled" } },
                ] } }),
        )
        .await;
    let public = client.public_ip("p").await;
    let lb = network_id("loadBalancers/lb");
    let mut document = load_balancer(&lb, &public, &[80]);
    let frontend = reference(&lb.child("frontendIPConfigurations", "f"));
    document["properties"]["inboundNatPools"] = json!([{ "name": "ssh", "properties": {
        "frontendIPConfiguration": frontend, "protocol": "Tcp", "backendPort": 22,
        "frontendPortRangeStart": 6000, "frontendPortRangeEnd": 6099 } }]);
    client.create(&lb, document).await;
    let ilb = network_id("loadBalancers/ilb");
    let mut document = load_balancer(&ilb, &public, &[80]);
    document["properties"]["frontendIPConfigurations"][0]["properties"] = json!({ "subnet": reference(&subnet), "privateIPAddress": "10.1.9.9", "privateIPAllocationMethod": "Static" });
    client.create(&ilb, document).await;
    let pools = [lb.child("backendAddressPools", "p"), ilb.child("backendAddressPools", "p")];
    let mut document = scale_set(2, &subnet, &pools);
    let nic = "/properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/0/properties";
    let nic = document.pointer_mut(nic).unwrap();
    nic["enableIPForwarding"] = json!(true);
    nic["ipConfigurations"][0]["properties"]["loadBalancerInboundNatPools"] =
        json!([reference(&lb.child("inboundNatPools", "ssh"))]);
    client.create(&set(), document).await;
    client.get(&public).await.body["properties"]["ipAddress"].as_str().unwrap().to_owned()
}

fn node(number: u8) -> Source {
    Source::node(format!("10.1.0.{}", 4 + number))
}

#[tokio::test(start_paused = true)]
async fn services_nat_pools_pods_and_power() {
    let client = Client::with_group(Options::default()).await;
    let address = cluster(&client).await;
    let verdict = send(&client, internet(), &address, 80);
    assert!(verdict.arrives, "{verdict}");
    let names: Vec<Option<String>> = [6000, 6001, 6002]
        .map(|port| send(&client, internet(), &address, port).node().map(str::to_owned))
        .into();
    assert_eq!(names, [Some("node000000".to_owned()), Some("node000001".to_owned()), None]);
    // The range of a rule for a pool.
    let lb = network_id("loadBalancers/lb");
    let rule = json!({ "properties": { "protocol": "Tcp", "backendPort": 8022,
        "frontendIPConfiguration": reference(&lb.child("frontendIPConfigurations", "f")),
        "backendAddressPool": reference(&lb.child("backendAddressPools", "p")),
        "frontendPortRangeStart": 7000, "frontendPortRangeEnd": 7099 } });
    client.put(&lb.child("inboundNatRules", "range"), rule).await.expect(201);
    let mut reached: Vec<String> = [7000, 7001]
        .iter()
        .filter_map(|port| send(&client, internet(), &address, *port).node().map(str::to_owned))
        .collect();
    reached.sort();
    assert_eq!(reached, ["node000000", "node000001"]);

    let verdict = send(&client, node(1), "10.244.0.9", 8080);
    assert_eq!(verdict.node(), Some("node000000"), "{verdict}");
    client.azure.set_power_state(&set().child("virtualMachines", "0"), PowerState::Deallocated).unwrap();
    let verdict = send(&client, node(1), "10.244.0.9", 8080);
    assert!(matches!(verdict.refusal, Some(Refusal::MachineOff { .. })), "{verdict}");
    for port in 1..20 {
        let packet =
            Packet::new(internet(), address.parse().unwrap(), 80, Protocol::Tcp).with_source_port(port);
        let verdict = trace(&client.azure, &AlwaysHealthy, &packet);
        assert_eq!(verdict.node(), Some("node000001"), "{verdict}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_way_out_by_rule_outbound_rule_and_gateway() {
    let client = Client::with_group(Options::default()).await;
    let address = cluster(&client).await;
    let outbound = || Network::read(&client.azure).outbound_of("10.1.0.4").unwrap();
    assert!(matches!(outbound().means, OutboundMeans::LoadBalancingRule { .. }));
    assert_eq!(outbound().addresses, [address.parse::<IpAddr>().unwrap()]);

    let lb = network_id("loadBalancers/lb");
    let mut document = client.get(&lb).await.body;
    document["properties"]["loadBalancingRules"][0]["properties"]["disableOutboundSnat"] = json!(true);
    document["properties"]["outboundRules"] = json!([{ "name": "out", "properties": {
        "protocol": "All", "allocatedOutboundPorts": 4096,
        "backendAddressPool": reference(&lb.child("backendAddressPools", "p")),
        "frontendIPConfigurations": [reference(&lb.child("frontendIPConfigurations", "f"))] } }]);
    client.create(&lb, document).await;
    assert!(matches!(outbound().means, OutboundMeans::OutboundRule { .. }));
    assert_eq!(outbound().ports, Some(4096));

    let (gateway, public) = (network_id("natGateways/nat"), client.public_ip("n").await);
    let body = json!({ "location": "eastus", "sku": { "name": "Standard" },
        "properties": { "publicIpAddresses": [reference(&public)] } });
    client.create(&gateway, body).await;
    let subnet = network_id("virtualNetworks/net/subnets/nodes");
    let mut document = client.get(&subnet).await.body;
    document["properties"]["natGateway"] = reference(&gateway);
    client.create(&subnet, document).await;
    assert!(matches!(outbound().means, OutboundMeans::NatGateway { .. }));
    let verdict = send(&client, node(0), "203.0.113.9", 443);
    assert!(verdict.arrives && verdict.sentence().contains("by NAT gateway nat"), "{verdict}");
}

#[tokio::test(start_paused = true)]
async fn a_private_endpoint_from_another_network_and_its_approval() {
    let client = Client::with_group(Options::default()).await;
    cluster(&client).await;
    let service = network_id("privateLinkServices/pls");
    let frontend = network_id("loadBalancers/ilb").child("frontendIPConfigurations", "f");
    let link = network_id("virtualNetworks/net/subnets/link");
    client
        .create(
            &service,
            json!({ "location": "eastus", "properties": {
                "loadBalancerFrontendIpConfigurations": [reference(&frontend)],
                "ipConfigurations": [{ "name": "c", "properties": { "primary": true, "subnet": reference(&link) } }] } }),
        )
        .await;
    let far = network_id("virtualNetworks/far");
    client
        .create(
            &far,
            json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] },
                "subnets": [{ "name": "s", "properties": { "addressPrefix": "172.16.0.0/24" } }] } }),
        )
        .await;
    let endpoint = network_id("privateEndpoints/pe");
    let connection = |member: &str| {
        json!({ "location": "eastus", "properties": { "subnet": reference(&far.child("subnets", "s")),
            member: [{ "name": "x", "properties": { "privateLinkServiceId": service } }] } })
    };
    let made = client.create(&endpoint, connection("manualPrivateLinkServiceConnections")).await;
    let nic = ResourceId::parse(made["properties"]["networkInterfaces"][0]["id"].as_str().unwrap()).unwrap();
    let nic = client.get(&nic).await.body;
    let address =
        nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str().unwrap();
    let guest = || Source::virtual_network("far", "172.16.0.200".parse().unwrap());
    let verdict = send(&client, guest(), address, 80);
    assert!(
        matches!(&verdict.refusal, Some(Refusal::EndpointNotApproved { status, .. }) if status == "Pending"),
        "{verdict}"
    );

    let connections = client.get(&service).await.body["properties"]["privateEndpointConnections"].clone();
    let id = ResourceId::parse(connections[0]["id"].as_str().unwrap()).unwrap();
    let approve = json!({ "properties": { "privateLinkServiceConnectionState": { "status": "Approved" } } });
    client.put(&id, approve).await.expect(200);
    let verdict = send(&client, guest(), address, 80);
    assert!(
        verdict.arrives && verdict.sentence().contains("private link service pls as 10.2.0.4"),
        "{verdict}"
    );
    let verdict = send(&client, Source::private_endpoint("pe"), address, 80);
    assert!(verdict.arrives, "{verdict}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_by_its_own_public_ip_and_the_groups_around_it() {
    let client = Client::with_group(Options::default()).await;
    cluster(&client).await;
    let (nic, id) = (network_id("networkInterfaces/jump"), compute_id("virtualMachines/jump"));
    let public = client.public_ip("j").await;
    let (group, web) = (network_id("networkSecurityGroups/own"), network_id("applicationSecurityGroups/web"));
    client.create(&web, json!({ "location": "eastus", "properties": {} })).await;
    client
        .create(
            &group,
            json!({ "location": "eastus", "properties": { "securityRules": [{ "name": "ssh", "properties": {
                "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
                "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
                "destinationApplicationSecurityGroups": [reference(&web)], "destinationPortRange": "22" } }] } }),
        )
        .await;
    let subnet = network_id("virtualNetworks/net/subnets/nodes");
    let body = |groups: Value| {
        json!({ "location": "eastus", "properties": { "networkSecurityGroup": reference(&group),
        "ipConfigurations": [{ "name": "c", "properties": { "subnet": reference(&subnet),
            "publicIPAddress": reference(&public), "applicationSecurityGroups": groups } }] } })
    };
    client.put(&nic, body(json!([reference(&web)]))).await.expect(201);
    let address = client.get(&public).await.body["properties"]["ipAddress"].as_str().unwrap().to_owned();
    let verdict = send(&client, internet(), &address, 22);
    assert!(matches!(verdict.refusal, Some(Refusal::NoMachine { .. })), "{verdict}");
    client.create(&id, machine(&nic)).await;
    let verdict = send(&client, internet(), &address, 22);
    assert_eq!(verdict.node(), Some("jump"), "{verdict}");
    let rules: Vec<&str> = verdict.decisions().map(|decision| decision.rule.as_str()).collect();
    assert_eq!(rules, ["allow", "ssh"], "the subnet's group, then the interface's");
    let own = Network::read(&client.azure).outbound_of("jump").unwrap();
    assert_eq!(own.addresses, [address.parse::<IpAddr>().unwrap()]);

    client.post(&id, "deallocate", Value::Null).await.expect(202);
    let verdict = send(&client, internet(), &address, 22);
    assert!(matches!(verdict.refusal, Some(Refusal::MachineOff { .. })), "{verdict}");
    client.post(&id, "start", Value::Null).await.expect(202);
    client.put(&nic, body(json!([]))).await.expect(200);
    let verdict = send(&client, internet(), &address, 22);
    assert!(matches!(verdict.refusal, Some(Refusal::Denied { .. })), "{verdict}");
}

#[tokio::test(start_paused = true)]
async fn machines_of_a_flexible_scale_set_are_machines_like_any_other() {
    let client = Client::with_group(Options::default()).await;
    let address = cluster(&client).await;
    let subnet = network_id("virtualNetworks/net/subnets/nodes");
    let flexible = compute_id("virtualMachineScaleSets/flex");
    let pools = |pools: &[ResourceId]| {
        let mut body = scale_set(2, &subnet, pools);
        body["properties"]["orchestrationMode"] = json!("Flexible");
        body["properties"]["platformFaultDomainCount"] = json!(1);
        body["properties"]["virtualMachineProfile"]["networkProfile"]["networkApiVersion"] =
            json!("2020-11-01");
        body["properties"]["virtualMachineProfile"]["storageProfile"] = json!({ "imageReference":
            { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" } });
        body["properties"]["virtualMachineProfile"]["priority"] = json!("Spot");
        body["properties"]["virtualMachineProfile"]["evictionPolicy"] = json!("Deallocate");
        body
    };
    client.create(&flexible, pools(&[network_id("loadBalancers/lb/backendAddressPools/p")])).await;
    let topology = azure_simulator::view::Topology::read(&client.azure, &AlwaysHealthy);
    let of_flexible: Vec<_> = topology.nodes.iter().filter(|node| node.flexible).collect();
    assert_eq!((topology.nodes.len(), of_flexible.len()), (4, 2), "{:?}", topology.nodes);
    assert!(
        of_flexible.iter().all(|node| node.scale_set.as_deref() == Some("flex") && node.addresses.len() == 1)
    );
    let network = Network::read(&client.azure);
    let reached: std::collections::BTreeSet<String> = (1..80)
        .filter_map(|port| {
            let packet =
                Packet::new(internet(), address.parse().unwrap(), 80, Protocol::Tcp).with_source_port(port);
            network.trace(&AlwaysHealthy, &packet).node().map(str::to_owned)
        })
        .collect();
    assert_eq!(reached.len(), 4, "{reached:?}");

    let market = azure_simulator::Actor::new(
        "market",
        azure_simulator::ActorAction::Evict { share: 1.0, notice_seconds: 0 },
    )
    .on_type("*/virtualMachineScaleSets")
    .every(std::time::Duration::from_secs(60));
    client.azure.set_actor(market);
    tokio::time::sleep(std::time::Duration::from_secs(90)).await;
    let topology = azure_simulator::view::Topology::read(&client.azure, &AlwaysHealthy);
    let off = topology.nodes.iter().filter(|node| node.power == "deallocated");
    assert!(off.clone().all(|node| node.flexible), "{:?}", topology.nodes);
    assert_eq!(off.count(), 2, "{:?}", topology.nodes);
}
