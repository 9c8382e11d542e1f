//! Ways in beside load balancing rules, and who security rules mean: private endpoints, inbound NAT,
//! service tags, application security groups.

use azure_simulator::packet::{AlwaysHealthy, Hop, Network, Packet, Refusal, Source};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::networks::*;

const ENDPOINT: &str = "172.16.0.9";

fn endpoint() -> ResourceId {
    network("privateEndpoints", "pe")
}

/// The internal frontend of the cluster, offered by a private link service and reached by an endpoint in
/// another network, which has a machine `client` too.
fn linked() -> DocumentSet {
    let mut documents = cluster();
    let service = network("privateLinkServices", "pls");
    let (nat, nic) = (network("networkInterfaces", "pls.nic"), network("networkInterfaces", "pe.nic"));
    let subnet = network("virtualNetworks", "vnet").child("subnets", "nodes");
    let address = |address: &str, subnet: &ResourceId| json!([{ "name": "c", "properties": { "privateIPAddress": address, "subnet": reference(subnet) } }]);
    documents.put(
        &service,
        json!({ "properties": {
            "alias": "pls.0.eastus.azure.privatelinkservice", "enableProxyProtocol": true,
            "loadBalancerFrontendIpConfigurations": [reference(&lb().child("frontendIPConfigurations", "b2"))],
            "ipConfigurations": [{ "name": "c", "properties": { "subnet": reference(&subnet) } }] } }),
    );
    documents.put(
        &nat,
        json!({ "properties": { "privateLinkService": reference(&service),
            "ipConfigurations": address("10.0.5.5", &subnet) } }),
    );
    let far = virtual_network(&mut documents, "far", "172.16.0.0/16");
    machine(&mut documents, "client", "172.16.0.4", &far);
    documents.put(
        &endpoint(),
        json!({ "properties": { "manualPrivateLinkServiceConnections": [{ "name": "x",
        "properties": { "privateLinkServiceId": service,
            "privateLinkServiceConnectionState": { "status": "Approved" } } }] } }),
    );
    documents.put(
        &nic,
        json!({ "properties": { "privateEndpoint": reference(&endpoint()), "ipConfigurations": address(ENDPOINT, &far) } }),
    );
    documents
}

const CONNECTION: &str = "/properties/manualPrivateLinkServiceConnections/0/properties";

#[test]
fn a_private_endpoint_leads_through_its_service_to_the_frontend() {
    let mut documents = linked();
    documents.rule("from-link", 100, "Allow", json!({ "sourceAddressPrefix": "10.0.5.5" }));
    let verdict = send(&documents, &from_node("client", ENDPOINT, 80));
    assert!(verdict.node().is_some_and(|node| node.starts_with("node")), "{verdict}");
    assert_eq!(verdict.decisions().last().unwrap().rule, "from-link", "nodes see the service's address");
    assert!(
        verdict.hops.iter().any(|hop| matches!(hop, Hop::PrivateLinkService { proxy_protocol: true, .. }))
    );
    assert!(
        verdict.sentence().contains("private endpoint pe, private link service pls as 10.0.5.5"),
        "{verdict}"
    );
    assert!(verdict.sentence().contains("internal frontend b2"), "{verdict}");
    assert!(matches!(refusal(&send(&documents, &from_node("client", ENDPOINT, 81))), Refusal::NoRule { .. }));

    // By the service's alias just as well.
    documents.change(
        &endpoint(),
        &format!("{CONNECTION}/privateLinkServiceId"),
        json!("pls.0.eastus.azure.privatelinkservice"),
    );
    assert!(send(&documents, &from_node("client", ENDPOINT, 80)).arrives);
}

#[test]
fn a_name_that_several_have_is_refused_and_their_ids_are_told() {
    let mut documents = cluster();
    let subnet = virtual_network(&mut documents, "other", "172.16.0.0/16");
    machine(&mut documents, "worker", "172.16.0.4", &subnet);
    let first = group().resource("Microsoft.Compute", "virtualMachines", "worker");
    let second = ResourceId::group("s", "another").resource("Microsoft.Compute", "virtualMachines", "worker");
    documents.put(&second, json!({ "properties": {} }));
    let verdict = send(&documents, &from_node("worker", "203.0.113.9", 443));
    let candidates = match refusal(&verdict) {
        Refusal::Ambiguous { candidates, .. } => candidates,
        other => panic!("{other:?}"),
    };
    assert_eq!(*candidates, [second, first.clone()]);
    assert!(verdict.sentence().contains("say which by its id"), "{verdict}");
    for name in [first.as_str(), "172.16.0.4"] {
        let verdict = send(&documents, &from_node(name, "172.16.0.4", 80));
        assert!(
            matches!(&verdict.hops[0], Hop::Sender { node, .. } if node == "worker"),
            "{name}: {verdict}"
        );
    }
    // Networks and endpoints are no different.
    let twin = ResourceId::group("s", "another").resource("Microsoft.Network", "virtualNetworks", "other");
    documents.put(&twin, json!({ "properties": { "subnets": [] } }));
    let from = Source::VirtualNetwork { network: "other".into(), address: "172.16.0.7".parse().unwrap() };
    let verdict = send(&documents, &Packet { from, ..tcp("172.16.0.4", 80) });
    assert!(matches!(refusal(&verdict), Refusal::Ambiguous { .. }), "{verdict}");
}

#[test]
fn a_client_that_only_the_endpoint_knows_comes_through_it_too() {
    let documents = linked();
    for to in [ENDPOINT, INTERNAL] {
        let verdict = send(&documents, &Packet { from: Source::private_endpoint("pe"), ..tcp(to, 80) });
        assert!(verdict.arrives, "{verdict}");
    }
    let verdict = send(&documents, &Packet { from: Source::private_endpoint("pe"), ..tcp("10.0.0.4", 80) });
    assert!(matches!(refusal(&verdict), Refusal::NotBehindEndpoint { .. }), "{verdict}");
    let verdict = send(&documents, &Packet { from: Source::private_endpoint("other"), ..tcp(ENDPOINT, 80) });
    assert!(matches!(refusal(&verdict), Refusal::NoSuchSender { .. }), "{verdict}");
}

#[test]
fn only_approved_connections_to_what_exists_let_packets_through() {
    let mut documents = linked();
    for status in ["Pending", "Rejected", "Disconnected"] {
        let state = format!("{CONNECTION}/privateLinkServiceConnectionState/status");
        documents.change(&endpoint(), &state, json!(status));
        let verdict = send(&documents, &from_node("client", ENDPOINT, 80));
        assert!(verdict.sentence().contains(&format!("is {status}, not Approved")), "{verdict}");
    }
    let mut documents = linked();
    documents.0.remove(&network("privateLinkServices", "pls"));
    let verdict = send(&documents, &from_node("client", ENDPOINT, 80));
    assert!(matches!(refusal(&verdict), Refusal::EndpointLeadsNowhere { .. }), "{verdict}");
    // Other services are where the oracle's knowledge ends.
    let account = group().resource("Microsoft.Storage", "storageAccounts", "blobs");
    documents.change(&endpoint(), &format!("{CONNECTION}/privateLinkServiceId"), json!(account));
    let verdict = send(&documents, &from_node("client", ENDPOINT, 443));
    assert!(verdict.arrives && verdict.sentence().contains("arrives at blobs"), "{verdict}");
}

#[test]
fn security_groups_hold_for_endpoints_where_the_subnet_says_so() {
    let mut documents = linked();
    let far = network("virtualNetworks", "far");
    let group = network("networkSecurityGroups", "far-nsg");
    documents.put(&group, json!({ "properties": { "securityRules": [{ "name": "deny", "properties": {
        "priority": 100, "direction": "Inbound", "access": "Deny", "protocol": "*", "sourceAddressPrefix": "*",
        "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "*" } }] } }));
    documents.change(&far, "/properties/subnets/0/properties/networkSecurityGroup", reference(&group));
    assert!(send(&documents, &from_node("client", ENDPOINT, 80)).arrives);
    let policies = "/properties/subnets/0/properties/privateEndpointNetworkPolicies";
    documents.change(&far, policies, json!("NetworkSecurityGroupEnabled"));
    let verdict = send(&documents, &from_node("client", ENDPOINT, 80));
    assert!(matches!(refusal(&verdict), Refusal::Denied { .. }), "{verdict}");
}

#[test]
fn a_user_route_for_its_very_address_goes_before_an_endpoints_own() {
    for (prefix, policies, arrives) in [
        ("172.16.0.0/24", "Disabled", true),
        ("172.16.0.9/32", "Disabled", false),
        ("172.16.0.0/24", "RouteTableEnabled", false),
        ("0.0.0.0/0", "RouteTableEnabled", true),
    ] {
        let mut documents = linked();
        routes(&mut documents, &[("hole", prefix, "None", None)]);
        let far = network("virtualNetworks", "far");
        documents.change(
            &far,
            "/properties/subnets/0/properties/routeTable",
            reference(&network("routeTables", "table")),
        );
        documents.change(
            &far,
            "/properties/subnets/0/properties/privateEndpointNetworkPolicies",
            json!(policies),
        );
        let verdict = send(&documents, &from_node("client", ENDPOINT, 80));
        assert_eq!(verdict.arrives, arrives, "{prefix} {policies}: {verdict}");
    }
}

fn nat(name: &str, properties: Value) -> Value {
    let mut rule = json!({ "id": lb().child("inboundNatRules", name), "name": name, "properties": {
        "protocol": "Tcp", "backendPort": 22,
        "frontendIPConfiguration": reference(&lb().child("frontendIPConfigurations", "a1")) } });
    for (member, value) in properties.as_object().unwrap() {
        rule["properties"][member] = value.clone();
    }
    rule
}

fn reached_by_port(documents: &DocumentSet, ports: &[u16]) -> Vec<Option<String>> {
    let network = Network::read(documents);
    let reached = |port: &u16| network.trace(&AlwaysHealthy, &tcp(PUBLIC, *port)).node().map(str::to_owned);
    ports.iter().map(reached).collect()
}

#[test]
fn a_nat_rule_for_a_pool_gives_each_member_a_port() {
    let mut documents = cluster();
    documents.rule("ssh", 510, "Allow", json!({ "destinationPortRange": "22" }));
    let pool = lb().child("backendAddressPools", "kubernetes");
    let range = json!({ "backendAddressPool": reference(&pool), "frontendPortRangeStart": 5000, "frontendPortRangeEnd": 5001 });
    documents.change(&lb(), "/properties/inboundNatRules", json!([nat("ssh", range)]));
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(reached_by_port(&documents, &[5000, 5001, 5002]), [some("node0"), some("node1"), None]);
    // The ports that Azure shows count.
    let entry = |address: &str, port: u16| {
        json!({ "name": address, "properties": { "ipAddress": address,
        "inboundNatRulesPortMapping": [{ "inboundNatRuleName": "ssh", "frontendPort": port, "backendPort": 22 }] } })
    };
    documents.change(
        &lb(),
        "/properties/backendAddressPools/0/properties/loadBalancerBackendAddresses",
        json!([entry("10.0.0.4", 5001), entry("10.0.0.5", 5000)]),
    );
    assert_eq!(reached_by_port(&documents, &[5000, 5001]), [some("node1"), some("node0")]);
    let verdict = send(&documents, &tcp(PUBLIC, 5002));
    assert!(verdict.sentence().contains("inbound NAT ports such as"), "{verdict}");
}

#[test]
fn service_tags_stand_for_azures_addresses() {
    let mut documents = cluster();
    machine(
        &mut documents,
        "sender",
        "10.0.0.50",
        &network("virtualNetworks", "vnet").child("subnets", "nodes"),
    );
    let tag = |tag: &str| json!({ "direction": "Outbound", "destinationAddressPrefix": tag });
    documents.rule("storage", 100, "Deny", tag("Storage.EastUS"));
    let denied = |documents: &DocumentSet, to: &str| {
        let verdict = send(documents, &from_node("sender", to, 443));
        verdict.refusal.is_some().then(|| verdict.decisions().last().unwrap().rule.clone())
    };
    assert_eq!(denied(&documents, "20.38.98.5").as_deref(), Some("storage"));
    assert_eq!(denied(&documents, "52.239.160.5"), None, "another region's");
    documents.rule("cloud", 110, "Deny", tag("AzureCloud"));
    assert_eq!(denied(&documents, "52.239.160.5").as_deref(), Some("cloud"));
    assert_eq!(
        denied(&documents, PUBLIC).as_deref(),
        Some("cloud"),
        "public IPs of this Azure are in its cloud"
    );
    assert_eq!(denied(&documents, "203.0.113.9"), None);
    documents.rule("internet", 120, "Deny", tag("Internet"));
    assert_eq!(denied(&documents, "203.0.113.9").as_deref(), Some("internet"));
    assert_eq!(denied(&documents, "10.0.0.5"), None);
    let own =
        Network::read(&documents).with_service_tag("AzureCloud", vec!["203.0.113.0/24".parse().unwrap()]);
    let verdict = own.trace(&AlwaysHealthy, &from_node("sender", "203.0.113.9", 443));
    assert_eq!(verdict.decisions().last().unwrap().rule, "cloud");
}

#[test]
fn application_security_groups_mean_their_members() {
    let mut documents = cluster();
    let subnet = network("virtualNetworks", "vnet").child("subnets", "nodes");
    let web = network("applicationSecurityGroups", "web");
    let nic = machine(&mut documents, "front", "10.0.0.50", &subnet);
    machine(&mut documents, "back", "10.0.0.51", &subnet);
    documents.change(
        &nic,
        "/properties/ipConfigurations/0/properties/applicationSecurityGroups",
        json!([reference(&web)]),
    );
    let members = json!([reference(&web)]);
    documents.rule(
        "to-web",
        100,
        "Deny",
        json!({ "destinationAddressPrefix": null,
        "destinationApplicationSecurityGroups": members.clone(), "destinationPortRange": "22" }),
    );
    documents.rule(
        "from-web",
        110,
        "Deny",
        json!({ "sourceAddressPrefix": null,
        "sourceApplicationSecurityGroups": members, "destinationPortRange": "5432" }),
    );
    let decision = |from: &str, to: &str, port: u16| {
        let verdict = send(&documents, &from_node(from, to, port));
        (verdict.arrives, verdict.decisions().last().unwrap().rule.clone())
    };
    assert_eq!(decision("back", "10.0.0.50", 22), (false, "to-web".into()));
    assert_eq!(decision("back", "10.0.0.50", 80), (true, "AllowVnetInBound".into()));
    assert_eq!(decision("front", "10.0.0.51", 22), (true, "AllowVnetInBound".into()));
    assert_eq!(decision("front", "10.0.0.51", 5432), (false, "from-web".into()));
}
