//! Public IP prefixes and what takes its addresses from them; NAT gateways; DNS names.

use crate::common::{Client, NETWORK_VERSION, SUBSCRIPTION, network_id, public_ip};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

fn prefix(length: u8) -> Value {
    json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "prefixLength": length } })
}

fn from_prefix(prefix: &ResourceId) -> Value {
    let mut body = public_ip();
    body["properties"]["publicIPPrefix"] = json!({ "id": prefix });
    body
}

fn range_of(prefix: &Value) -> ipnet::IpNet {
    prefix["properties"]["ipPrefix"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn public_ips_take_their_addresses_from_a_prefix() {
    let client = Client::with_group(Options { budgets: None, ..Options::default() }).await;
    let id = network_id("publicIPPrefixes/pool");
    let created = client.put(&id, prefix(30)).await.expect(201);
    assert!(created.body["properties"].get("ipPrefix").is_none(), "known when provisioning is over");
    client.wait(&created).await;
    let shown = client.get(&id).await.body;
    let range = range_of(&shown);
    assert_eq!(range.prefix_len(), 30);
    assert_eq!(shown["properties"]["publicIPAddressVersion"], "IPv4");
    assert_eq!(client.put(&id, shown.clone()).await.expect(200).body, shown, "a range that was given stays");

    let mut addresses = std::collections::BTreeSet::new();
    for n in 0..4 {
        let public = network_id(&format!("publicIPAddresses/p{n}"));
        let address = client.create(&public, from_prefix(&id)).await["properties"]["ipAddress"].clone();
        let address: std::net::IpAddr = address.as_str().unwrap().parse().unwrap();
        assert!(range.contains(&address) && addresses.insert(address), "{address} is of {range}, once");
    }
    client
        .put(&network_id("publicIPAddresses/p4"), from_prefix(&id))
        .await
        .refused(400, "PublicIpPrefixOutOfIpAddresses");
    let shown = client.get(&id).await.body;
    assert_eq!(shown["properties"]["publicIPAddresses"].as_array().unwrap().len(), 4);
    client.delete(&id).await.refused(400, "InUsePublicIpPrefixCannotBeDeleted");
    // Addresses outside it keep away from it, however many there are.
    for n in 0..40 {
        let public = client.public_ip(&format!("free{n}")).await;
        let address = client.get(&public).await.body["properties"]["ipAddress"].clone();
        assert!(!range.contains(&address.as_str().unwrap().parse::<std::net::IpAddr>().unwrap()));
    }
    client
        .put(&network_id("publicIPAddresses/p0"), public_ip())
        .await
        .refused(400, "PublicIPAddressPrefixCannotBeChanged");
    for n in 0..4 {
        client.delete(&network_id(&format!("publicIPAddresses/p{n}"))).await.expect(202);
    }
    client.delete(&id).await.expect(202);
    client.get(&id).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn prefixes_differ_and_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let mut ranges: Vec<ipnet::IpNet> = Vec::new();
    for (n, length) in [28, 31, 29, 30, 28].into_iter().enumerate() {
        let shown = client.create(&network_id(&format!("publicIPPrefixes/r{n}")), prefix(length)).await;
        let range = range_of(&shown);
        assert!(
            !ranges.iter().any(|other| other.contains(&range) || range.contains(other)),
            "{range} overlaps"
        );
        ranges.push(range);
    }
    let six = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "prefixLength": 124, "publicIPAddressVersion": "IPv6" } });
    let six = client.create(&network_id("publicIPPrefixes/six"), six).await;
    assert_eq!(range_of(&six).prefix_len(), 124);

    let id = network_id("publicIPPrefixes/new");
    let zoned = |zones: Value| {
        let mut body = prefix(28);
        body["zones"] = zones;
        body
    };
    for (code, body) in [
        ("PublicIpPrefixLengthInvalid", prefix(27)),
        ("PublicIpPrefixLengthInvalid", prefix(32)),
        ("InvalidRequestFormat", json!({ "location": "eastus", "properties": {} })),
        ("InvalidAvailabilityZone", zoned(json!(["5"]))),
    ] {
        client.put(&id, body).await.refused(400, code);
    }
    client.create(&id, zoned(json!(["1", "2"]))).await;
    client.put(&id, prefix(28)).await.refused(400, "ResourceAvailabilityZonesCannotBeModified");
    let mut longer = zoned(json!(["1", "2"]));
    longer["properties"]["prefixLength"] = json!(29);
    client.put(&id, longer).await.refused(400, "PublicIpPrefixPropertyCannotBeChanged");
    let mut v6 = from_prefix(&id);
    v6["properties"]["publicIPAddressVersion"] = json!("IPv6");
    client
        .put(&network_id("publicIPAddresses/v6"), v6)
        .await
        .refused(400, "PublicIPAddressAndPrefixDoNotMatch");
    let without = Client::with_group(Options { zones: Vec::new(), ..Options::default() }).await;
    without.put(&id, zoned(json!(["1"]))).await.refused(400, "ResourceAvailabilityZonesNotSupported");
}

#[tokio::test(start_paused = true)]
async fn a_frontend_with_a_prefix_is_for_outbound_rules() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("publicIPPrefixes/out");
    client.create(&id, prefix(31)).await;
    let lb = network_id("loadBalancers/lb");
    let of = |collection: &str, name: &str| json!({ "id": lb.child(collection, name) });
    let body = |member: &str, rule: Value| {
        let mut body = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
            "frontendIPConfigurations": [{ "name": "f", "properties": { "publicIPPrefix": { "id": id } } }],
            "backendAddressPools": [{ "name": "p" }] } });
        body["properties"][member] = json!([{ "name": "r", "properties": rule }]);
        body
    };
    let inbound = json!({ "frontendIPConfiguration": of("frontendIPConfigurations", "f"),
        "backendAddressPool": of("backendAddressPools", "p"), "protocol": "Tcp", "frontendPort": 80, "backendPort": 80 });
    client
        .put(&lb, body("loadBalancingRules", inbound))
        .await
        .refused(400, "FrontendIPConfigurationWithPublicIPPrefixIsForOutboundRules");
    // Two addresses have twice the ports.
    let outbound = json!({ "frontendIPConfigurations": [of("frontendIPConfigurations", "f")],
        "backendAddressPool": of("backendAddressPools", "p"), "protocol": "All", "allocatedOutboundPorts": 128_000 });
    client.create(&lb, body("outboundRules", outbound)).await;
    let shown = client.get(&id).await.body;
    assert_eq!(
        shown["properties"]["loadBalancerFrontendIpConfiguration"]["id"],
        lb.child("frontendIPConfigurations", "f").as_str()
    );
    client.delete(&id).await.refused(400, "InUsePublicIpPrefixCannotBeDeleted");
}

#[tokio::test(start_paused = true)]
async fn nat_gateways_speak_from_addresses_of_their_sku() {
    let limits = [("network.publicIpAddressesPerNatGateway".to_owned(), 3)];
    let client = Client::with_group(Options { limits: limits.into(), ..Options::default() }).await;
    let (pip, small) = (client.public_ip("a").await, network_id("publicIPPrefixes/small"));
    client.create(&small, prefix(31)).await;
    let large = network_id("publicIPPrefixes/large");
    client.create(&large, prefix(30)).await;
    client.create(&network_id("publicIPAddresses/basic"), json!({ "location": "eastus" })).await;
    let mut six = public_ip();
    six["properties"]["publicIPAddressVersion"] = json!("IPv6");
    client.create(&network_id("publicIPAddresses/six"), six).await;
    let id = network_id("natGateways/gw");
    let gateway = |member: &str, sources: &[&ResourceId]| {
        let sources: Vec<Value> = sources.iter().map(|id| json!({ "id": id })).collect();
        json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { member: sources } })
    };
    let zoned = |zones: Value| {
        let mut body = gateway("publicIpAddresses", &[&pip]);
        body["zones"] = zones;
        body
    };
    for (code, body) in [
        (
            "PublicIpAndNatGatewaySkuDoNotMatch",
            gateway("publicIpAddresses", &[&network_id("publicIPAddresses/basic")]),
        ),
        (
            "NatGatewayPublicIpVersionNotSupported",
            gateway("publicIpAddresses", &[&network_id("publicIPAddresses/six")]),
        ),
        ("NatGatewayPublicIpAddressCountLimitReached", gateway("publicIpPrefixes", &[&large])),
        ("InvalidResourceReference", gateway("publicIpPrefixes", &[&network_id("publicIPPrefixes/none")])),
        ("NatGatewayZonesNotSupported", zoned(json!(["1", "2"]))),
    ] {
        client.put(&id, body).await.refused(400, code);
    }
    let mut body = gateway("publicIpAddresses", &[&pip]);
    body["properties"]["publicIpPrefixes"] = json!([{ "id": small }]);
    let shown = client.create(&id, body).await;
    assert_eq!(shown["properties"]["idleTimeoutInMinutes"], 4);
    assert_eq!(client.get(&small).await.body["properties"]["natGateway"]["id"], id.as_str());
    assert_eq!(client.get(&pip).await.body["properties"]["natGateway"]["id"], id.as_str());
    client.delete(&small).await.refused(400, "InUsePublicIpPrefixCannotBeDeleted");
    let other = network_id("natGateways/other");
    client.put(&other, gateway("publicIpPrefixes", &[&small])).await.refused(400, "PublicIPPrefixInUse");
    client.put(&other, gateway("publicIpAddresses", &[&pip])).await.refused(400, "PublicIPAddressInUse");
    let mut raised = shown.clone();
    raised["sku"]["name"] = json!("StandardV2");
    raised["properties"]["publicIpAddresses"] = json!([]);
    raised["properties"]["publicIpPrefixes"] = json!([]);
    client.put(&id, raised).await.refused(400, "NatGatewaySkuCannotBeChanged");
    let subnet = client.network("10.1.0.0/24").await;
    let body = json!({ "properties": { "addressPrefix": "10.1.0.0/24", "natGateway": { "id": id } } });
    client.create(&subnet, body).await;
    assert_eq!(client.get(&id).await.body["properties"]["subnets"], json!([{ "id": subnet }]));
    client.delete(&id).await.refused(400, "InUseNatGatewayCannotBeDeleted");
}

#[tokio::test(start_paused = true)]
async fn public_ips_are_checked() {
    let limits = [("network.publicIpAddressesPerRegion".to_owned(), 3)];
    let client = Client::with_group(Options { limits: limits.into(), ..Options::default() }).await;
    let id = network_id("publicIPAddresses/p");
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut body = public_ip();
        edit(&mut body);
        body
    };
    for (code, body) in [
        ("InvalidAvailabilityZone", with(&|b| b["zones"] = json!(["1", "1"]))),
        ("InvalidRequestFormat", with(&|b| b["properties"]["deleteOption"] = json!("Maybe"))),
        (
            "InvalidRequestFormat",
            with(&|b| b["properties"]["ddosSettings"] = json!({ "protectionMode": "Sometimes" })),
        ),
        ("InvalidPropertyValue", with(&|b| b["properties"]["idleTimeoutInMinutes"] = json!(31))),
        (
            "PublicIPAddressPropertyNotSupportedForBasicSku",
            json!({ "location": "eastus", "zones": ["1"], "properties": {} }),
        ),
        (
            "InvalidDomainNameLabel",
            with(&|b| b["properties"]["dnsSettings"] = json!({ "domainNameLabel": "1shop" })),
        ),
    ] {
        client.put(&id, body).await.refused(400, code);
    }
    let available = async |label: &str| {
        let path = format!(
            "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/eastus/CheckDnsNameAvailability\
             ?domainNameLabel={label}&api-version={NETWORK_VERSION}"
        );
        client.send("GET", &path, None, &[]).await
    };
    assert_eq!(available("shop").await.expect(200).body, json!({ "available": true }));
    client
        .create(&id, with(&|b| b["properties"]["dnsSettings"] = json!({ "domainNameLabel": "shop" })))
        .await;
    assert_eq!(available("Shop").await.expect(200).body, json!({ "available": false }));
    let scoped = with(&|b| {
        b["properties"]["dnsSettings"] =
            json!({ "domainNameLabel": "shop", "domainNameLabelScope": "SubscriptionReuse" })
    });
    let shown = client.create(&network_id("publicIPAddresses/third"), scoped).await;
    let fqdn = shown["properties"]["dnsSettings"]["fqdn"].as_str().unwrap();
    assert!(fqdn.starts_with("shop.") && fqdn != "shop.eastus.cloudapp.azure.com", "{fqdn}");
    available("no_name").await.refused(400, "InvalidDomainNameLabel");

    // A static address of sku Basic may be raised, as long as nothing uses it.
    let basic = network_id("publicIPAddresses/basic");
    let body = |sku: &str| {
        json!({ "location": "eastus", "sku": { "name": sku },
        "properties": { "publicIPAllocationMethod": "Static" } })
    };
    let before = client.create(&basic, body("Basic")).await;
    let after = client.create(&basic, body("Standard")).await;
    assert_eq!(after["properties"]["ipAddress"], before["properties"]["ipAddress"]);
    assert_eq!(after["sku"]["name"], "Standard");
    client.put(&basic, body("Basic")).await.refused(400, "PublicIPAddressSkuCannotBeChanged");
    client
        .put(&network_id("publicIPAddresses/fourth"), public_ip())
        .await
        .refused(400, "PublicIPCountLimitReached");
}
