//! Load balancers beyond their basic rules: pools of both kinds, NAT, outbound, chains, limits.

use crate::common::{Client, NETWORK_VERSION, compute_id, load_balancer, network_id, scale_set};
use azure_simulator::Options;
use azure_simulator::packet::{self, AlwaysHealthy, Packet, Protocol, Source};
use azure_types::ResourceId;
use serde_json::{Value, json};

fn lb() -> ResourceId {
    network_id("loadBalancers/lb")
}

fn child(collection: &str, name: &str) -> Value {
    json!({ "id": lb().child(collection, name) })
}

/// A balancer with the public frontend `f`, the pool `p` and whatever else a test needs.
fn balancer(public_ip: &ResourceId, more: Value) -> Value {
    let mut body = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "frontendIPConfigurations": [{ "name": "f", "properties": { "publicIPAddress": { "id": public_ip } } }],
        "backendAddressPools": [{ "name": "p" }],
    }});
    for (member, value) in more.as_object().unwrap() {
        body["properties"][member] = value.clone();
    }
    body
}

fn named(name: &str, properties: Value) -> Value {
    json!([{ "name": name, "properties": properties }])
}

async fn post(client: &Client, id: &ResourceId, action: &str, body: Value) -> crate::common::Reply {
    let path = format!("{id}/{action}?api-version={NETWORK_VERSION}");
    client.send("POST", &path, Some(body), &[]).await
}

/// A scale set in the pool `p`, without a balancer's further children.
async fn members(client: &Client, count: u64) -> ResourceId {
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/set");
    client.create(&set, scale_set(count, &subnet, &[lb().child("backendAddressPools", "p")])).await;
    set
}

fn entries(pool: &Value) -> &Vec<Value> {
    pool["properties"]["loadBalancerBackendAddresses"].as_array().unwrap()
}

#[tokio::test(start_paused = true)]
async fn admin_states_are_set_per_member_of_either_kind() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    client.create(&lb(), balancer(&pip, json!({}))).await;
    members(&client, 2).await;
    let pool = lb().child("backendAddressPools", "p");
    let mut shown = client.get(&pool).await.expect(200).body;
    assert!(entries(&shown).iter().all(|entry| entry["properties"].get("adminState").is_none()));
    let before = client.get(&lb()).await.etag();
    shown["properties"]["loadBalancerBackendAddresses"][1]["properties"]["adminState"] = json!("down");
    let shown = client.create(&pool, shown).await;
    assert_eq!(entries(&shown)[0]["properties"].get("adminState"), None);
    assert_eq!(entries(&shown)[1]["properties"]["adminState"], "Down");
    assert_ne!(client.get(&lb()).await.etag(), before);
    // A client that leaves out what it cannot write names the entry alone.
    let name = entries(&shown)[0]["name"].clone();
    let entry = json!({ "name": name, "properties": { "adminState": "Up" } });
    let bare = json!({ "properties": { "loadBalancerBackendAddresses": [entry] } });
    let shown = client.create(&pool, bare).await;
    assert_eq!(entries(&shown)[0]["properties"]["adminState"], "Up");
    assert_eq!(entries(&shown)[1]["properties"].get("adminState"), None, "a list says everything");
    // A write of the whole balancer that does not speak of the entries keeps what was said.
    client.create(&lb(), balancer(&pip, json!({}))).await;
    assert_eq!(entries(&client.get(&pool).await.body)[0]["properties"]["adminState"], "Up");

    let addresses = lb().child("backendAddressPools", "addresses");
    let net = network_id("virtualNetworks/net");
    let address = |state: &str| json!([{ "name": "one", "properties": { "ipAddress": "10.1.0.4", "adminState": state } }]);
    let body = |state: &str| json!({ "properties": { "virtualNetwork": { "id": net }, "loadBalancerBackendAddresses": address(state) } });
    let shown = client.create(&addresses, body("Down")).await;
    assert_eq!(entries(&shown)[0]["properties"]["adminState"], "Down");
    let holder = &entries(&shown)[0]["properties"]["networkInterfaceIPConfiguration"]["id"];
    assert!(
        holder.as_str().unwrap().contains("/virtualMachines/0/"),
        "the interface that has the address is shown"
    );
    client.put(&addresses, body("Sideways")).await.refused(400, "InvalidRequestFormat");
}

#[tokio::test(start_paused = true)]
async fn pools_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    client.network("10.1.0.0/24").await;
    client.create(&lb(), balancer(&pip, json!({}))).await;
    let pool = lb().child("backendAddressPools", "p");
    let net = json!({ "id": network_id("virtualNetworks/net") });
    let entry = |name: &str, address: &str| json!({ "name": name, "properties": { "ipAddress": address } });
    let of = |entries: Value| json!({ "properties": { "virtualNetwork": net, "loadBalancerBackendAddresses": entries } });
    for (code, body) in [
        ("InvalidIPAddressFormat", of(json!([entry("a", "ten")]))),
        ("DuplicateBackendAddress", of(json!([entry("a", "10.1.0.4"), entry("b", "10.1.0.4")]))),
        ("InvalidBackendAddressName", of(json!([entry("a", "10.1.0.4"), entry("A", "10.1.0.5")]))),
        (
            "VirtualNetworkRequired",
            json!({ "properties": { "loadBalancerBackendAddresses": [entry("a", "10.1.0.4")] } }),
        ),
        (
            "BackendAddressPoolSyncModeRequiresVirtualNetwork",
            json!({ "properties": { "syncMode": "Automatic" } }),
        ),
        (
            "InvalidResourceReference",
            json!({ "properties": { "virtualNetwork": { "id": network_id("virtualNetworks/none") } } }),
        ),
    ] {
        client.put(&pool, body).await.refused(400, code);
    }
    let shown = client.create(&pool, of(json!([entry("a", "10.1.0.4")]))).await;
    assert_eq!(shown["properties"]["virtualNetwork"], net);
    let limits = [("network.addressesPerBackendPool".to_owned(), 1)].into();
    let small = Client::with_group(Options { limits, ..Options::default() }).await;
    let pip = small.public_ip("a").await;
    small.network("10.1.0.0/24").await;
    small.create(&lb(), balancer(&pip, json!({}))).await;
    let two = of(json!([entry("a", "10.1.0.4"), entry("b", "10.1.0.5")]));
    small.put(&pool, two).await.refused(400, "BackendAddressPoolAddressCountLimitReached");
}

#[tokio::test(start_paused = true)]
async fn members_by_interface_become_addresses() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    client.create(&lb(), balancer(&pip, json!({}))).await;
    let set = members(&client, 3).await;
    let pool = lb().child("backendAddressPools", "p");
    let asked = json!({ "pools": ["p"] });
    post(&client, &lb(), "migrateToIpBased", json!({ "pools": ["none"] })).await.refused(404, "NotFound");
    let answer = post(&client, &lb(), "migrateToIpBased", asked).await.expect(200).body;
    assert_eq!(answer, json!({ "migratedPools": ["p"] }));
    let shown = client.get(&pool).await.body;
    assert!(shown["properties"].get("backendIPConfigurations").is_none(), "the interfaces let go of it");
    assert_eq!(shown["properties"]["virtualNetwork"]["id"], network_id("virtualNetworks/net").as_str());
    let addresses: Vec<&str> =
        entries(&shown).iter().map(|entry| entry["properties"]["ipAddress"].as_str().unwrap()).collect();
    assert_eq!(addresses, ["10.1.0.4", "10.1.0.5", "10.1.0.6"]);
    let nics = format!("{}/networkInterfaces?api-version=2018-10-01", set.child("virtualMachines", "0"));
    let nics = client.send("GET", &nics, None, &[]).await.expect(200).body;
    let ip = &nics["value"][0]["properties"]["ipConfigurations"][0]["properties"];
    assert!(ip["loadBalancerBackendAddressPools"].as_array().is_none_or(Vec::is_empty), "{ip}");
}

#[tokio::test(start_paused = true)]
async fn nat_rules_share_the_ports_of_a_frontend() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let rule = |edit: &dyn Fn(&mut Value)| {
        let mut properties = json!({
            "frontendIPConfiguration": child("frontendIPConfigurations", "f"),
            "protocol": "tcp", "frontendPort": 2_222, "backendPort": 22 });
        edit(&mut properties);
        properties
    };
    let range = |start: u16, end: u16| {
        move |p: &mut Value| {
            p.as_object_mut().unwrap().remove("frontendPort");
            p["backendAddressPool"] = child("backendAddressPools", "p");
            (p["frontendPortRangeStart"], p["frontendPortRangeEnd"]) = (json!(start), json!(end));
        }
    };
    let mut base = load_balancer(&lb(), &pip, &[80]);
    let shown = client.create(&lb(), base.clone()).await;
    let id = lb().child("inboundNatRules", "ssh");
    for (code, properties) in [
        ("RulesUseSameFrontendPortProtocolAndIPConfig", rule(&|p| p["frontendPort"] = json!(80))),
        ("RulesUseSameFrontendPortProtocolAndIPConfig", rule(&range(70, 90))),
        ("InvalidPropertyValue", rule(&|p| p["frontendPort"] = json!(0))),
        ("InvalidInboundNatRule", rule(&range(90, 89))),
        ("InvalidInboundNatRule", rule(&|p| p["backendAddressPool"] = child("backendAddressPools", "p"))),
        ("FrontendIPConfigurationRequired", rule(&|p| p["frontendIPConfiguration"] = Value::Null)),
        (
            "InvalidResourceReference",
            rule(&|p| p["frontendIPConfiguration"] = child("frontendIPConfigurations", "g")),
        ),
    ] {
        client.put(&id, json!({ "properties": properties })).await.refused(400, code);
    }
    let answer = client.put(&id, json!({ "properties": rule(&|_| {}) })).await.expect(201).body;
    assert_eq!(answer["properties"]["protocol"], "Tcp");
    assert_eq!(answer["type"], "Microsoft.Network/loadBalancers/inboundNatRules");
    let frontend = client.get(&lb()).await.body["properties"]["frontendIPConfigurations"][0].clone();
    assert_eq!(frontend["properties"]["inboundNatRules"], json!([{ "id": id }]));
    client.put(&id, json!({ "properties": rule(&|p| p["protocol"] = json!("Udp")) })).await.expect(200);
    // Another protocol may use the same port.
    let other = lb().child("inboundNatRules", "other");
    client.put(&other, json!({ "properties": rule(&|_| {}) })).await.expect(201);
    client.delete(&other).await.expect(202);
    client.get(&other).await.refused(404, "NotFound");
    client.delete(&id).await.expect(202);
    base["etag"] = shown["etag"].clone();
    assert_eq!(client.get(&lb()).await.body["properties"]["inboundNatRules"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_range_of_ports_leads_to_the_members_of_a_pool() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    client.create(&lb(), balancer(&pip, json!({}))).await;
    let set = members(&client, 3).await;
    let rule = |end: u16| {
        json!({ "properties": {
        "frontendIPConfiguration": child("frontendIPConfigurations", "f"),
        "backendAddressPool": child("backendAddressPools", "p"),
        "frontendPortRangeStart": 500, "frontendPortRangeEnd": end, "backendPort": 22 } })
    };
    let id = lb().child("inboundNatRules", "ssh");
    client.put(&id, rule(501)).await.refused(400, "InboundNatRuleFrontendPortRangeTooSmall");
    client.create(&id, rule(509)).await;
    let pool = lb().child("backendAddressPools", "p");
    let ports = async || -> Vec<i64> {
        let shown = client.get(&pool).await.expect(200).body;
        entries(&shown)
            .iter()
            .map(|entry| {
                entry["properties"]["inboundNatRulesPortMapping"][0]["frontendPort"].as_i64().unwrap()
            })
            .collect()
    };
    assert_eq!(ports().await, [500, 501, 502]);
    let asked =
        post(&client, &pool, "queryInboundNatRulePortMapping", json!({ "ipAddress": "10.1.0.5" })).await;
    let mapping =
        json!({ "inboundNatRuleName": "ssh", "protocol": "Tcp", "frontendPort": 501, "backendPort": 22 });
    assert_eq!(asked.expect(200).body, json!({ "inboundNatRulePortMappings": [mapping] }));
    post(&client, &pool, "queryInboundNatRulePortMapping", json!({ "ipAddress": "10.9.0.5" }))
        .await
        .refused(400, "BackendAddressNotFoundInPool");
    client.delete(&set.child("virtualMachines", "0")).await.expect(202);
    assert_eq!(ports().await, [501, 502], "who stays keeps its port");
    let address = client.get(&pip).await.body["properties"]["ipAddress"].as_str().unwrap().parse().unwrap();
    for (port, host) in [(501, "node000001"), (502, "node000002")] {
        let from = Source::Internet { address: "203.0.113.7".parse().unwrap() };
        let packet = Packet::new(from, address, port, Protocol::Tcp);
        let verdict = packet::trace(&client.azure, &AlwaysHealthy, &packet);
        // Its security group is missing, so the packet goes no further.
        assert!(verdict.sentence().contains(host), "{verdict}");
    }
}

#[tokio::test(start_paused = true)]
async fn instances_of_a_nat_pool_get_rules() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let pool = |end: u16| {
        json!({ "inboundNatPools": named("nat", json!({
        "frontendIPConfiguration": child("frontendIPConfigurations", "f"),
        "protocol": "Tcp", "frontendPortRangeStart": 50_000, "frontendPortRangeEnd": end, "backendPort": 22 })) })
    };
    client.create(&lb(), balancer(&pip, pool(50_010))).await;
    let subnet = client.network("10.1.0.0/24").await;
    let mut set = scale_set(2, &subnet, &[]);
    set["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]
        ["ipConfigurations"][0]["properties"]["loadBalancerInboundNatPools"] =
        json!([child("inboundNatPools", "nat")]);
    let id = compute_id("virtualMachineScaleSets/set");
    client.create(&id, set).await;
    let shown = client.get(&lb()).await.body;
    let rules = shown["properties"]["inboundNatRules"].as_array().unwrap();
    let told: Vec<(&str, i64)> = rules
        .iter()
        .map(|rule| (rule["name"].as_str().unwrap(), rule["properties"]["frontendPort"].as_i64().unwrap()))
        .collect();
    assert_eq!(told, [("nat.0", 50_000), ("nat.1", 50_001)]);
    assert!(
        rules[0]["properties"]["backendIPConfiguration"]["id"]
            .as_str()
            .unwrap()
            .contains("/virtualMachines/0/")
    );
    assert_eq!(client.get(&lb().child("inboundNatRules", "nat.1")).await.expect(200).body, rules[1]);
    assert_eq!(client.put(&lb(), shown.clone()).await.expect(200).body, shown, "they can be sent back");
    client
        .put(&lb(), balancer(&pip, pool(50_000)))
        .await
        .refused(400, "InboundNatPoolFrontendPortRangeTooSmall");
    client
        .put(&lb(), balancer(&pip, json!({})))
        .await
        .refused(400, "LoadBalancerInboundNatPoolInUseByVirtualMachineScaleSet");
    client.delete(&id.child("virtualMachines", "0")).await.expect(202);
    let rules = client.get(&lb()).await.body["properties"]["inboundNatRules"].clone();
    assert_eq!((rules.as_array().unwrap().len(), &rules[0]["name"]), (1, &json!("nat.1")));
}

#[tokio::test(start_paused = true)]
async fn outbound_rules_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    client.create(&lb(), balancer(&pip, json!({}))).await;
    members(&client, 10).await;
    let outbound = |edit: &dyn Fn(&mut Value)| {
        let mut properties = json!({
            "frontendIPConfigurations": [child("frontendIPConfigurations", "f")],
            "backendAddressPool": child("backendAddressPools", "p"), "protocol": "All" });
        edit(&mut properties);
        json!({ "outboundRules": named("out", properties) })
    };
    let ports = |count: i64| outbound(&|p| p["allocatedOutboundPorts"] = json!(count));
    let clash = |disabled: bool| {
        let mut body = outbound(&|_| {});
        body["loadBalancingRules"] = named(
            "web",
            json!({
            "frontendIPConfiguration": child("frontendIPConfigurations", "f"),
            "backendAddressPool": child("backendAddressPools", "p"), "disableOutboundSnat": disabled,
            "protocol": "Tcp", "frontendPort": 80, "backendPort": 80 }),
        );
        body
    };
    for (code, more) in [
        ("SpecifiedAllocatedOutboundPortsForOutboundRuleIsNotAMultipleOfEight", ports(1_001)),
        (
            "SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAllowedPortsPerRule",
            ports(64_008),
        ),
        ("SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAvailablePorts", ports(8_000)),
        ("OutboundRuleIncomplete", outbound(&|p| p["frontendIPConfigurations"] = json!([]))),
        ("InvalidPropertyValue", outbound(&|p| p["idleTimeoutInMinutes"] = json!(101))),
        (
            "InvalidResourceReference",
            outbound(&|p| p["backendAddressPool"] = child("backendAddressPools", "q")),
        ),
        (
            "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
            clash(false),
        ),
    ] {
        client.put(&lb(), balancer(&pip, more)).await.refused(400, code);
    }
    let shown = client.create(&lb(), balancer(&pip, clash(true))).await;
    let rule = &shown["properties"]["outboundRules"][0];
    assert_eq!(rule["properties"]["allocatedOutboundPorts"], 1_024);
    let pool = &shown["properties"]["backendAddressPools"][0]["properties"];
    assert_eq!(pool["outboundRules"], json!([{ "id": rule["id"] }]));
    let frontend = &shown["properties"]["frontendIPConfigurations"][0]["properties"];
    assert_eq!(frontend["outboundRules"], json!([{ "id": rule["id"] }]));

    let inner = network_id("loadBalancers/inner");
    let subnet = network_id("virtualNetworks/net").child("subnets", "nodes");
    let of = |collection: &str, name: &str| json!({ "id": inner.child(collection, name) });
    let body = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "frontendIPConfigurations": named("f", json!({ "subnet": { "id": subnet } })),
        "backendAddressPools": [{ "name": "p" }],
        "outboundRules": named("out", json!({
            "frontendIPConfigurations": [of("frontendIPConfigurations", "f")],
            "backendAddressPool": of("backendAddressPools", "p"), "protocol": "All" })) } });
    client.put(&inner, body).await.refused(400, "OutboundRuleCannotReferenceInternalFrontendIPConfiguration");
}

#[tokio::test(start_paused = true)]
async fn frontends_are_checked_together() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let subnet = client.network("10.1.0.0/24").await;
    let public = json!({ "name": "out", "properties": { "publicIPAddress": { "id": pip } } });
    let inner = json!({ "name": "in", "properties": { "subnet": { "id": subnet } } });
    let with = |frontend: &Value, member: &str, value: Value| {
        let mut frontend = frontend.clone();
        frontend[member] = value;
        frontend
    };
    let body = |frontends: Value| {
        json!({ "location": "eastus", "sku": { "name": "Standard" },
        "properties": { "frontendIPConfigurations": frontends } })
    };
    let both = json!({ "publicIPAddress": { "id": pip }, "subnet": { "id": subnet } });
    for (code, frontends) in [
        ("LoadBalancerFrontendIPConfigurationsMustBeAllPublicOrAllInternal", json!([public, inner])),
        ("FrontendIPConfigHasBothSubnetAndPublicIP", json!([{ "name": "f", "properties": both }])),
        (
            "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
            json!([with(&public, "zones", json!(["1"]))]),
        ),
        ("InvalidAvailabilityZone", json!([with(&inner, "zones", json!(["4"]))])),
        ("PublicIPAddressInUse", json!([public, with(&public, "name", json!("again"))])),
    ] {
        client.put(&lb(), body(frontends)).await.refused(400, code);
    }
    let shown = client.create(&lb(), body(json!([with(&inner, "zones", json!(["1", "2", "3"]))]))).await;
    assert_eq!(shown["properties"]["frontendIPConfigurations"][0]["zones"], json!(["1", "2", "3"]));
    client.put(&lb(), body(json!([inner]))).await.refused(400, "ResourceAvailabilityZonesCannotBeModified");
    let probe = json!({ "location": "eastus", "sku": { "name": "Standard" },
        "properties": { "probes": named("h", json!({ "protocol": "Tcp", "port": 80 })) } });
    client
        .put(&network_id("loadBalancers/bare"), probe)
        .await
        .refused(400, "LoadBalancerWithoutFrontendIPCantHaveChildResources");
}

#[tokio::test(start_paused = true)]
async fn skus_and_limits_bound_a_balancer() {
    let limits = [
        ("network.rulesPerLoadBalancer".to_owned(), 2),
        ("network.frontendsPerLoadBalancer".to_owned(), 1),
        ("network.loadBalancersPerRegion".to_owned(), 1),
    ];
    let options = Options { limits: limits.into(), basic_sku_retired: true, ..Options::default() };
    let client = Client::with_group(options).await;
    let (a, b) = (client.public_ip("a").await, client.public_ip("b").await);
    client
        .put(&lb(), load_balancer(&lb(), &a, &[1, 2, 3]))
        .await
        .refused(400, "LoadBalancerRuleCountLimitReached");
    let mut two = balancer(&a, json!({}));
    let more = json!({ "name": "g", "properties": { "publicIPAddress": { "id": b } } });
    two["properties"]["frontendIPConfigurations"].as_array_mut().unwrap().push(more);
    client.put(&lb(), two).await.refused(400, "LoadBalancerFrontendIPConfigurationCountLimitReached");
    client.create(&lb(), load_balancer(&lb(), &a, &[1, 2])).await;
    let other = network_id("loadBalancers/other");
    client.put(&other, load_balancer(&other, &b, &[1])).await.refused(400, "LoadBalancerCountLimitReached");
    let basic = json!({ "location": "eastus", "properties": {} });
    client.put(&other, basic.clone()).await.refused(400, "BasicSkuLoadBalancerCreationNotSupported");
    client
        .put(&network_id("publicIPAddresses/c"), basic)
        .await
        .refused(400, "IPv4BasicSkuPublicIpCountLimitReached");
    let mut raised = client.get(&lb()).await.body;
    raised["sku"]["tier"] = json!("Global");
    client.put(&lb(), raised).await.refused(400, "InvalidRequestFormat");
}

#[tokio::test(start_paused = true)]
async fn frontends_change_names_and_rules_stay_at_home() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let frontend = |name: &str| {
        let properties = json!({ "subnet": { "id": subnet }, "privateIPAllocationMethod": "Static", "privateIPAddress": "10.1.0.9" });
        json!({ "location": "eastus", "sku": { "name": "Standard" },
            "properties": { "frontendIPConfigurations": [{ "name": name, "properties": properties }] } })
    };
    client.create(&lb(), frontend("a")).await;
    let shown = client.create(&lb(), frontend("b")).await;
    assert_eq!(shown["properties"]["frontendIPConfigurations"][0]["name"], "b");
    let pip = client.public_ip("a").await;
    let other = network_id("loadBalancers/other");
    client.create(&other, load_balancer(&other, &pip, &[])).await;
    let mut foreign = load_balancer(&lb(), &client.public_ip("c").await, &[80]);
    foreign["properties"]["loadBalancingRules"][0]["properties"]["backendAddressPool"] =
        json!({ "id": other.child("backendAddressPools", "p") });
    let third = network_id("loadBalancers/third");
    let text = foreign.to_string().replace("/loadBalancers/lb/", "/loadBalancers/third/");
    client.put(&third, serde_json::from_str(&text).unwrap()).await.refused(400, "InvalidResourceReference");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_stays_while_a_model_names_a_part_of_it() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let pip = client.public_ip("a").await;
    client.create(&lb(), load_balancer(&lb(), &pip, &[80])).await;
    let mut set = scale_set(0, &subnet, &[]);
    set["properties"]["virtualMachineProfile"]["networkProfile"]["healthProbe"] =
        json!({ "id": lb().child("probes", "h") });
    client.create(&compute_id("virtualMachineScaleSets/set"), set).await;
    client.delete(&lb()).await.refused(400, "LoadBalancerInUseByVirtualMachineScaleSet");
}

#[tokio::test(start_paused = true)]
async fn a_probe_may_ask_for_a_path_without_a_slash() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let id = network_id("loadBalancers/lb");
    let body = |path: Value| {
        let mut body = load_balancer(&id, &pip, &[80]);
        body["properties"]["probes"][0]["properties"] =
            json!({ "protocol": "Http", "port": 80, "requestPath": path, "intervalInSeconds": 15 });
        body
    };
    client.put(&id, body(Value::Null)).await.refused(400, "ProbeRequestPathRequired");
    client.put(&id, body(json!(""))).await.refused(400, "ProbeRequestPathRequired");
    // As "Load Balancers - Create Or Update" shows it.
    let made = client.create(&id, body(json!("healthcheck.aspx"))).await;
    assert_eq!(made["properties"]["probes"][0]["properties"]["requestPath"], "healthcheck.aspx");
}

#[tokio::test(start_paused = true)]
async fn a_basic_load_balancer_can_be_sent_back_as_it_was_read() {
    let client = Client::with_group(Options::default()).await;
    let pip = network_id("publicIPAddresses/basic");
    client
        .create(
            &pip,
            json!({ "location": "eastus", "properties": { "publicIPAllocationMethod": "Dynamic" } }),
        )
        .await;
    let id = network_id("loadBalancers/lb");
    let mut body = load_balancer(&id, &pip, &[80]);
    body["sku"] = json!({ "name": "Basic" });
    body["properties"]["inboundNatRules"] = json!([{ "name": "ssh", "properties": {
        "frontendIPConfiguration": { "id": id.child("frontendIPConfigurations", "f") },
        "protocol": "Tcp", "frontendPort": 22, "backendPort": 22 } }]);
    let made = client.create(&id, body).await;
    assert_eq!(made["properties"]["loadBalancingRules"][0]["properties"]["enableTcpReset"], false);
    let again = client.create(&id, made.clone()).await;
    assert_eq!(again["properties"], made["properties"]);
}
