//! Load balancers, public IPs, security groups, networks, route tables.

use crate::common::{Client, load_balancer, network_id, public_ip, scale_set};
use azure_simulator::Options;
use serde_json::{Value, json};

fn internal(name: &str, subnet: &azure_types::ResourceId, address: Option<&str>) -> Value {
    let mut properties = json!({ "subnet": { "id": subnet } });
    if let Some(address) = address {
        properties["privateIPAllocationMethod"] = json!("Static");
        properties["privateIPAddress"] = json!(address);
    }
    json!({ "name": name, "properties": properties })
}

fn balancer_of(frontends: Vec<Value>) -> Value {
    json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "frontendIPConfigurations": frontends } })
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_shows_who_refers_to_whom() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let lb = network_id("loadBalancers/lb");
    let shown = client.create(&lb, load_balancer(&lb, &pip, &[80, 443])).await;
    let rules = json!([
        { "id": lb.child("loadBalancingRules", "tcp-443") },
        { "id": lb.child("loadBalancingRules", "tcp-80") },
    ]);
    let properties = &shown["properties"];
    assert_eq!(properties["frontendIPConfigurations"][0]["properties"]["loadBalancingRules"], rules);
    assert_eq!(properties["backendAddressPools"][0]["properties"]["loadBalancingRules"], rules);
    assert_eq!(properties["probes"][0]["properties"]["loadBalancingRules"], rules);
    let rule = &properties["loadBalancingRules"][0];
    assert_eq!(rule["properties"]["protocol"], "Tcp", "spelled as Azure spells it");
    assert_eq!(rule["properties"]["idleTimeoutInMinutes"], 4);
    assert_eq!(rule["etag"], shown["etag"]);
    let pip_shown = client.get(&pip).await.body;
    assert_eq!(
        pip_shown["properties"]["ipConfiguration"]["id"],
        lb.child("frontendIPConfigurations", "f").as_str()
    );
    // What was shown can be sent back and changes nothing.
    let again = client.put(&lb, shown.clone()).await.expect(200).body;
    assert_eq!(again, shown);
    client.delete(&lb).await.expect(202);
    assert!(client.get(&pip).await.body["properties"].get("ipConfiguration").is_none());
    client.delete(&pip).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn load_balancers_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let lb = network_id("loadBalancers/lb");
    let base = load_balancer(&lb, &pip, &[80, 81]);
    let case = |edit: &dyn Fn(&mut Value)| {
        let mut body = base.clone();
        edit(&mut body["properties"]);
        body
    };
    for (code, body) in [
        (
            "RulesUseSameFrontendPortProtocolAndIPConfig",
            case(&|p| p["loadBalancingRules"][1]["properties"]["frontendPort"] = json!(80)),
        ),
        (
            "RulesUseSameBackendPortProtocolAndPool",
            case(&|p| p["loadBalancingRules"][1]["properties"]["backendPort"] = json!(80)),
        ),
        ("InvalidResourceReference", case(&|p| p["probes"] = json!([]))),
        ("InvalidResourceReference", case(&|p| p["backendAddressPools"] = json!([]))),
        ("InvalidResourceReference", case(&|p| p["frontendIPConfigurations"][0]["name"] = json!("g"))),
        (
            "InvalidPropertyValue",
            case(&|p| p["loadBalancingRules"][0]["properties"]["frontendPort"] = json!(65_535)),
        ),
        (
            "InvalidPropertyValue",
            case(&|p| p["loadBalancingRules"][0]["properties"]["idleTimeoutInMinutes"] = json!(3)),
        ),
        ("InvalidPropertyValue", case(&|p| p["probes"][0]["properties"]["intervalInSeconds"] = json!(4))),
        ("ProbeRequestPathRequired", case(&|p| p["probes"][0]["properties"]["protocol"] = json!("Http"))),
        ("InvalidRequestFormat", case(&|p| p["loadBalancingRules"][1]["name"] = json!("TCP-80"))),
        (
            "InvalidRequestFormat",
            case(&|p| p["loadBalancingRules"][1]["properties"]["frontendIpConfig"] = json!({})),
        ),
        (
            "InvalidRequestFormat",
            case(&|p| p["loadBalancingRules"][1]["properties"]["protocol"] = json!("Sctp")),
        ),
        (
            "LinkedInvalidPropertyId",
            case(&|p| p["loadBalancingRules"][1]["properties"]["probe"] = json!({ "id": "h" })),
        ),
        (
            "LoadBalancingRuleWithAllProtocolNotSupported",
            case(&|p| {
                p["loadBalancingRules"] = json!([p["loadBalancingRules"][0]]);
                let rule = &mut p["loadBalancingRules"][0]["properties"];
                (rule["protocol"], rule["frontendPort"], rule["backendPort"]) =
                    (json!("All"), json!(0), json!(0));
            }),
        ),
        (
            "InvalidFrontendIPConfiguration",
            case(&|p| p["frontendIPConfigurations"][0]["properties"] = json!({})),
        ),
    ] {
        client.put(&lb, body).await.refused(400, code);
    }
    client.get(&lb).await.expect(404);
    let floating = case(&|p| {
        for rule in p["loadBalancingRules"].as_array_mut().unwrap() {
            rule["properties"]["enableFloatingIP"] = json!(true);
            rule["properties"]["backendPort"] = json!(80);
        }
    });
    client.put(&lb, floating).await.expect(201);
    let mut basic = base.clone();
    basic["sku"]["name"] = json!("Basic");
    client
        .put(&network_id("loadBalancers/basic"), basic.clone())
        .await
        .refused(400, "PublicIPAndLBSkuDoNotMatch");
    client.put(&lb, basic).await.refused(400, "LoadBalancerSkuCannotBeChanged");
    let other = network_id("loadBalancers/other");
    client.put(&other, load_balancer(&other, &pip, &[80])).await.refused(400, "PublicIPAddressInUse");
}

#[tokio::test(start_paused = true)]
async fn private_frontends_get_addresses_of_their_subnet() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/29").await;
    let lb = network_id("loadBalancers/lb");
    let shown = client
        .create(
            &lb,
            balancer_of(vec![internal("a", &subnet, None), internal("b", &subnet, Some("10.1.0.6"))]),
        )
        .await;
    let frontends = &shown["properties"]["frontendIPConfigurations"];
    assert_eq!(frontends[0]["properties"]["privateIPAddress"], "10.1.0.4", "the first that Azure gives out");
    assert_eq!(frontends[1]["properties"]["privateIPAddress"], "10.1.0.6");
    assert_eq!(client.put(&lb, shown.clone()).await.body, shown, "an address that was given stays");
    let subnet_shown = client.get(&subnet).await.body;
    assert_eq!(subnet_shown["properties"]["ipConfigurations"].as_array().unwrap().len(), 2);

    let other = network_id("loadBalancers/other");
    for (address, code) in [
        ("10.1.0.6", "PrivateIPAddressIsAllocated"),
        ("10.2.0.6", "PrivateIPAddressNotInSubnet"),
        ("10.1.0.3", "PrivateIPAddressInReservedRange"),
        ("10.1.0.7", "PrivateIPAddressInReservedRange"),
        ("ten", "InvalidIPAddressFormat"),
    ] {
        let refused = client
            .put(&other, balancer_of(vec![internal("x", &subnet, Some(address))]))
            .await
            .refused(400, code);
        let id = other.child("frontendIPConfigurations", "x");
        assert!(refused.message().contains(id.as_str()), "{}", refused.message());
    }
    client.create(&other, balancer_of(vec![internal("x", &subnet, None)])).await;
    client
        .put(&network_id("loadBalancers/third"), balancer_of(vec![internal("x", &subnet, None)]))
        .await
        .refused(400, "SubnetIsFull");
    client.delete(&subnet).await.refused(400, "InUseSubnetCannotBeDeleted");
    client.delete(&network_id("virtualNetworks/net")).await.refused(400, "InUseSubnetCannotBeDeleted");
    let smaller = json!({ "properties": { "addressPrefix": "10.9.0.0/24" } });
    client.put(&subnet, smaller).await.refused(400, "InUsePrefixCannotBeDeleted");
}

#[tokio::test(start_paused = true)]
async fn public_addresses_differ_stay_and_are_checked() {
    let client = Client::with_group(Options { budgets: None, ..Options::default() }).await;
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..50 {
        let id = client.public_ip(&format!("p{n}")).await;
        let address = client.get(&id).await.body["properties"]["ipAddress"].as_str().unwrap().to_owned();
        assert!(seen.insert(address), "an address was given twice");
    }
    let id = network_id("publicIPAddresses/p0");
    let before = client.get(&id).await.body["properties"]["ipAddress"].clone();
    let mut changed = public_ip();
    changed["properties"]["dnsSettings"] = json!({ "domainNameLabel": "Shop" });
    let shown = client.create(&id, changed.clone()).await;
    assert_eq!(shown["properties"]["ipAddress"], before);
    assert_eq!(shown["properties"]["dnsSettings"]["fqdn"], "shop.eastus.cloudapp.azure.com");
    client.put(&network_id("publicIPAddresses/p1"), changed.clone()).await.refused(400, "DnsRecordInUse");
    // The name may have an IPv6 address beside the IPv4 one, and no second of either.
    let mut sixth = changed.clone();
    sixth["properties"]["publicIPAddressVersion"] = json!("IPv6");
    let shown = client.create(&network_id("publicIPAddresses/six"), sixth.clone()).await;
    assert_eq!(shown["properties"]["dnsSettings"]["fqdn"], "shop.eastus.cloudapp.azure.com");
    client.put(&network_id("publicIPAddresses/sixth"), sixth).await.refused(400, "DnsRecordInUse");
    changed["sku"]["name"] = json!("Basic");
    client.put(&id, changed).await.refused(400, "PublicIPAddressSkuCannotBeChanged");
    let mut dynamic = public_ip();
    dynamic["properties"]["publicIPAllocationMethod"] = json!("Dynamic");
    client
        .put(&network_id("publicIPAddresses/d"), dynamic)
        .await
        .refused(400, "StandardSkuPublicIPMustBeStatic");
    let mut v6 = public_ip();
    v6["properties"]["publicIPAddressVersion"] = json!("IPv6");
    let shown = client.create(&network_id("publicIPAddresses/six"), v6).await;
    assert!(shown["properties"]["ipAddress"].as_str().unwrap().contains(':'));
}

#[tokio::test(start_paused = true)]
async fn dynamic_public_addresses_live_while_they_are_used() {
    let client = Client::with_group(Options::default()).await;
    let pip = network_id("publicIPAddresses/basic");
    let shown = client.create(&pip, json!({ "location": "eastus" })).await;
    assert!(shown["properties"].get("ipAddress").is_none());
    let lb = network_id("loadBalancers/lb");
    let mut body = load_balancer(&lb, &pip, &[80]);
    body["sku"]["name"] = json!("Basic");
    client.create(&lb, body).await;
    assert!(client.get(&pip).await.body["properties"]["ipAddress"].is_string());
    client.delete(&lb).await.expect(202);
    assert!(client.get(&pip).await.body["properties"].get("ipAddress").is_none());
}

fn rule(name: &str, priority: i64) -> Value {
    json!({ "name": name, "properties": {
        "protocol": "tcp", "sourcePortRange": "*", "destinationPortRange": "80", "sourceAddressPrefix": "Internet",
        "destinationAddressPrefix": "*", "access": "allow", "priority": priority, "direction": "inbound",
    }})
}

fn group_of(rules: Vec<Value>) -> Value {
    json!({ "location": "eastus", "properties": { "securityRules": rules } })
}

#[tokio::test(start_paused = true)]
async fn security_groups_are_checked_and_guarded() {
    let client = Client::with_group(Options::default()).await;
    let nsg = network_id("networkSecurityGroups/nsg");
    let with = |member: &str, value: Value| {
        let mut rule = rule("r", 100);
        rule["properties"][member] = value;
        group_of(vec![rule])
    };
    for (code, body) in [
        ("SecurityRuleConflict", group_of(vec![rule("a", 100), rule("b", 100)])),
        ("SecurityRuleInvalidPriority", group_of(vec![rule("a", 99)])),
        ("SecurityRuleInvalidPortRange", with("destinationPortRange", json!("80-70"))),
        ("SecurityRuleInvalidPortRange", with("destinationPortRange", json!("http"))),
        ("SecurityRuleInvalidAddressPrefix", with("sourceAddressPrefix", json!("Nowhere"))),
        ("SecurityRuleInvalidAddressPrefix", with("sourceAddressPrefix", json!("10.0.0.0/33"))),
        ("SecurityRuleParameterContainsUnsupportedValue", with("destinationPortRanges", json!(["80"]))),
        ("SecurityRuleParameterMissing", with("access", Value::Null)),
        ("InvalidRequestFormat", group_of(vec![rule("a", 100), rule("A", 101)])),
    ] {
        client.put(&nsg, body).await.refused(400, code);
    }
    let shown = client.create(&nsg, group_of(vec![rule("a", 100)])).await;
    assert_eq!(shown["properties"]["defaultSecurityRules"].as_array().unwrap().len(), 6);
    let first = &shown["properties"]["securityRules"][0];
    assert_eq!(first["properties"]["direction"], "Inbound");
    assert_eq!(first["properties"]["sourceAddressPrefixes"], json!([]));
    assert_eq!(client.put(&nsg, shown.clone()).await.expect(200).body, shown);

    let child = nsg.child("securityRules", "b");
    client
        .put(&child, json!({ "properties": rule("b", 100)["properties"] }))
        .await
        .refused(400, "SecurityRuleConflict");
    client.put(&child, json!({ "properties": rule("b", 101)["properties"] })).await.expect(201);
    assert_eq!(client.get(&child).await.expect(200).body["name"], "b");
    client.delete(&child).await.expect(202);
    client.get(&child).await.refused(404, "NotFound");

    let subnet = client.network("10.1.0.0/24").await;
    let body =
        json!({ "properties": { "addressPrefix": "10.1.0.0/24", "networkSecurityGroup": { "id": nsg } } });
    client.create(&subnet, body).await;
    assert_eq!(client.get(&nsg).await.body["properties"]["subnets"], json!([{ "id": subnet }]));
    client.delete(&nsg).await.refused(400, "InUseNetworkSecurityGroupCannotBeDeleted");
    client.create(&subnet, json!({ "properties": { "addressPrefix": "10.1.0.0/24" } })).await;
    client.delete(&nsg).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn networks_and_route_tables_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let net = network_id("virtualNetworks/net");
    let put = |name: &str, prefix: &str| {
        (net.child("subnets", name), json!({ "properties": { "addressPrefix": prefix } }))
    };
    for (code, prefix) in [
        ("NetcfgSubnetRangesOverlap", "10.1.0.128/25"),
        ("NetcfgSubnetRangeOutsideVnet", "192.168.0.0/24"),
        ("InvalidAddressPrefixFormat", "ten"),
        ("InvalidCIDRNotation", "10.2.0.1/24"),
    ] {
        let (id, body) = put("x", prefix);
        client.put(&id, body).await.refused(400, code);
    }
    // Azure Service Operator sends a single prefix in both members: it is one.
    let both =
        json!({ "properties": { "addressPrefix": "10.3.0.0/24", "addressPrefixes": ["10.3.0.0/24"] } });
    client.create(&net.child("subnets", "both"), both).await;
    // A write that leaves out the subnets keeps them.
    let plain = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] } } });
    client.create(&net, plain).await;
    client.get(&subnet).await.expect(200);

    let table = network_id("routeTables/t");
    let route = |name: &str, prefix: &str, hop: &str| json!({ "name": name, "properties": { "addressPrefix": prefix, "nextHopType": "virtualappliance", "nextHopIpAddress": hop } });
    let table_of = |routes: Vec<Value>| json!({ "location": "eastus", "properties": { "routes": routes } });
    client
        .put(&table, table_of(vec![route("a", "10.0.0.0/24", "")]))
        .await
        .refused(400, "InvalidRouteNextHopIpAddress");
    let twice = vec![route("a", "10.0.0.0/24", "10.1.0.4"), route("b", "10.0.0.0/24", "10.1.0.5")];
    client.put(&table, table_of(twice)).await.refused(400, "RouteConflict");
    let shown = client.create(&table, table_of(vec![route("a", "10.0.0.0/24", "10.1.0.4")])).await;
    assert_eq!(shown["properties"]["routes"][0]["properties"]["nextHopType"], "VirtualAppliance");
    client
        .create(
            &subnet,
            json!({ "properties": { "addressPrefix": "10.1.0.0/24", "routeTable": { "id": table } } }),
        )
        .await;
    client.delete(&table).await.refused(400, "InUseRouteTableCannotBeDeleted");
}

#[tokio::test(start_paused = true)]
async fn nat_gateways_hold_their_addresses() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let gateway = network_id("natGateways/nat");
    let body = json!({ "location": "eastus", "properties": { "publicIpAddresses": [{ "id": pip }] } });
    client.create(&gateway, body).await;
    assert_eq!(client.get(&pip).await.body["properties"]["natGateway"]["id"], gateway.as_str());
    let lb = network_id("loadBalancers/lb");
    client.put(&lb, load_balancer(&lb, &pip, &[80])).await.refused(400, "PublicIPAddressInUse");
    client.delete(&pip).await.refused(400, "PublicIPAddressCannotBeDeleted");
    let subnet = client.network("10.1.0.0/24").await;
    let with = json!({ "properties": { "addressPrefix": "10.1.0.0/24", "natGateway": { "id": gateway } } });
    client.create(&subnet, with).await;
    assert_eq!(client.get(&gateway).await.body["properties"]["subnets"], json!([{ "id": subnet }]));
    client.delete(&gateway).await.refused(400, "InUseNatGatewayCannotBeDeleted");
}

#[tokio::test(start_paused = true)]
async fn pools_have_members_by_nic_or_by_address() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let pip = client.public_ip("a").await;
    let lb = network_id("loadBalancers/lb");
    client.create(&lb, load_balancer(&lb, &pip, &[80])).await;
    let (by_nic, by_ip) = (lb.child("backendAddressPools", "p"), lb.child("backendAddressPools", "ip"));
    let set = crate::common::compute_id("virtualMachineScaleSets/set");
    let before = client.get(&lb).await.etag();
    client.create(&set, scale_set(2, &subnet, std::slice::from_ref(&by_nic))).await;
    assert_ne!(client.get(&lb).await.etag(), before, "membership is part of the load balancer");
    let pool = client.get(&by_nic).await.body;
    assert_eq!(pool["properties"]["backendIPConfigurations"].as_array().unwrap().len(), 2);
    assert_eq!(pool["properties"]["loadBalancerBackendAddresses"].as_array().unwrap().len(), 2);
    // Echoing or omitting the members changes nothing.
    let shown = client.get(&lb).await.body;
    client.create(&lb, shown).await;
    client.create(&lb, load_balancer(&lb, &pip, &[80])).await;
    assert_eq!(
        client.get(&by_nic).await.body["properties"]["backendIPConfigurations"].as_array().unwrap().len(),
        2
    );

    let net = network_id("virtualNetworks/net");
    let address = |name: &str, ip: &str| json!({ "name": name, "properties": { "ipAddress": ip } });
    let body = |addresses: Vec<Value>| json!({ "properties": { "virtualNetwork": { "id": net }, "loadBalancerBackendAddresses": addresses } });
    client
        .put(&by_nic, body(vec![address("x", "10.1.0.9")]))
        .await
        .refused(400, "BackendAddressPoolMixedMembership");
    client
        .put(&by_ip, body(vec![address("x", "10.1.0.9"), address("x", "10.1.0.8")]))
        .await
        .refused(400, "InvalidBackendAddressName");
    client
        .put(&by_ip, json!({ "properties": { "loadBalancerBackendAddresses": [address("x", "10.1.0.9")] } }))
        .await
        .refused(400, "VirtualNetworkRequired");
    client.put(&by_ip, body(vec![address("x", "10.1.0.9")])).await.expect(201);
    assert_eq!(client.get(&by_ip).await.body["properties"]["loadBalancerBackendAddresses"][0]["name"], "x");
    client.delete(&by_nic).await.refused(400, "LoadBalancerBackendAddressPoolInUseByVirtualMachineScaleSet");
    let mut without = load_balancer(&lb, &pip, &[]);
    without["properties"]["backendAddressPools"] = json!([]);
    client
        .put(&lb, without)
        .await
        .refused(400, "LoadBalancerBackendAddressPoolInUseByVirtualMachineScaleSet");
    client.delete(&lb).await.refused(400, "LoadBalancerInUseByVirtualMachineScaleSet");
    client.delete(&set).await.expect(202);
    client.delete(&lb).await.expect(202);
}
