//! Azure's limits: each is in force, each can be overridden, and each has Azure's error.

use std::collections::BTreeMap;

use crate::common::{Client, compute_id, group_path, network_id, public_ip, scale_set};
use azure_simulator::{Azure, Options};
use serde_json::{Value, json};

fn options(limits: &[(&str, u64)]) -> Options {
    let limits = limits.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Options { limits, ..Options::default() }
}

fn located() -> Value {
    json!({ "location": "eastus", "properties": {} })
}

fn virtual_network(subnets: usize, servers: usize) -> Value {
    let subnet =
        |n| json!({ "name": format!("s{n}"), "properties": { "addressPrefix": format!("10.0.{n}.0/24") } });
    let subnets: Vec<Value> = (0..subnets).map(subnet).collect();
    let servers: Vec<String> = (0..servers).map(|n| format!("10.0.0.{}", n + 10)).collect();
    json!({ "location": "eastus", "properties": {
        "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] }, "subnets": subnets, "dhcpOptions": { "dnsServers": servers },
    }})
}

#[tokio::test(start_paused = true)]
async fn a_region_holds_so_many_resources_of_a_type() {
    let client = Client::with_group(options(&[
        ("network.routeTablesPerRegion", 2),
        ("compute.scaleSetsPerRegion", 1),
    ]))
    .await;
    let table = |name: &str| network_id(&format!("routeTables/{name}"));
    for name in ["a", "b"] {
        client.create(&table(name), located()).await;
    }
    let refused = client.put(&table("c"), located()).await.refused(400, "RouteTableCountLimitReached");
    assert_eq!(
        refused.body["error"]["message"],
        "Cannot create more than 2 route tables for this subscription in this region."
    );
    let path = "/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Network/locations/eastus/usages";
    let usages =
        client.send("GET", &format!("{path}?api-version=2025-05-01"), None, &[]).await.expect(200).body;
    let tables =
        usages["value"].as_array().unwrap().iter().find(|one| one["name"]["value"] == "RouteTables").unwrap();
    assert_eq!((&tables["currentValue"], &tables["limit"]), (&json!(2), &json!(2)));
    // What is there may be written, another region has its own, and room comes back.
    client.put(&table("a"), located()).await.expect(200);
    client.put(&table("far"), json!({ "location": "westeurope", "properties": {} })).await.expect(201);
    client.delete(&table("a")).await.expect(202);
    client.put(&table("c"), located()).await.expect(201);

    let subnet = client.network("10.1.0.0/16").await;
    client.put(&compute_id("virtualMachineScaleSets/a"), scale_set(0, &subnet, &[])).await.expect(201);
    let refused = client.put(&compute_id("virtualMachineScaleSets/b"), scale_set(0, &subnet, &[])).await;
    let refused = refused.refused(409, "OperationNotAllowed");
    let message = refused.message();
    assert!(message.contains("Location: eastus, Current Limit: 1, Current Usage: 1"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_document_holds_so_many_items() {
    let client = Client::with_group(options(&[
        ("network.subnetsPerVirtualNetwork", 3),
        ("network.dnsServersPerVirtualNetwork", 2),
    ]))
    .await;
    let id = network_id("virtualNetworks/vn");
    client.create(&id, virtual_network(3, 2)).await;
    client.put(&id, virtual_network(4, 2)).await.refused(400, "SubnetCountLimitReached");
    client.put(&id, virtual_network(3, 3)).await.refused(400, "DNSServerCountLimitReached");
    let subnet = json!({ "properties": { "addressPrefix": "10.9.0.0/24" } });
    client.put(&id.child("subnets", "more"), subnet).await.refused(400, "SubnetCountLimitReached");
}

#[tokio::test(start_paused = true)]
async fn groups_hold_so_many_resources_and_subscriptions_so_many_groups() {
    let client = Client::with_group(options(&[
        ("resources.perGroupAndType", 1),
        ("resources.groupsPerSubscription", 2),
    ]))
    .await;
    client.create(&network_id("routeTables/a"), located()).await;
    let refused =
        client.put(&network_id("routeTables/b"), located()).await.refused(409, "ResourceQuotaExceeded");
    assert!(
        refused
            .message()
            .contains("'1' resources of type 'Microsoft.Network/routeTables' per resource group")
    );
    // Azure exempts public addresses, among others.
    client.public_ip("a").await;
    client.public_ip("b").await;
    let group = async |name: &str| {
        let path = format!(
            "/subscriptions/{}/resourceGroups/{name}?api-version=2021-04-01",
            crate::common::SUBSCRIPTION
        );
        client.send("PUT", &path, Some(json!({ "location": "eastus" })), &[]).await
    };
    group("second").await.expect(201);
    group("second").await.expect(200);
    group("third").await.refused(409, "ResourceGroupQuotaExceeded");
}

#[tokio::test(start_paused = true)]
async fn tags_are_bounded() {
    let client = Client::with_group(Options::default()).await;
    let many: BTreeMap<String, &str> = (0..51).map(|n| (format!("t{n}"), "x")).collect();
    let (long_name, long_value) = ("n".repeat(513), "v".repeat(257));
    for (tags, expected) in [
        (json!(many), Some("TooManyTags")),
        (json!({ long_name.as_str(): "x" }), Some("InvalidTagNameLength")),
        (json!({ "a": long_value }), Some("InvalidTagValueLength")),
        (json!({ "a/b": "x" }), Some("InvalidTagNameCharacters")),
        (json!({ "hidden-link:/subscriptions/x": "Resource" }), None),
        (json!({ "n".repeat(512): "v".repeat(256) }), None),
    ] {
        let mut body = public_ip();
        body["tags"] = tags.clone();
        let reply = client.put(&network_id("publicIPAddresses/a"), body).await;
        match expected {
            Some(code) => drop(reply.refused(400, code)),
            None => assert!(reply.status < 300, "{}", reply.body),
        }
        let path = format!("{}?api-version=2021-04-01", group_path());
        let reply = client.send("PUT", &path, Some(json!({ "location": "eastus", "tags": tags })), &[]).await;
        assert_eq!(reply.code(), expected.unwrap_or_default());
    }
}

#[tokio::test(start_paused = true)]
async fn names_follow_the_rules_of_their_types() {
    let client = Client::with_group(Options::default()).await;
    let long = |n: usize| "n".repeat(n);
    for (kind, name, good) in [
        ("routeTables", long(80), true),
        ("routeTables", long(81), false),
        ("routeTables", "-a".into(), false),
        ("routeTables", "_a".into(), false),
        ("routeTables", "a_".into(), true),
        ("routeTables", "a.".into(), false),
        ("routeTables", "a,b".into(), false),
        ("virtualNetworks", long(64), true),
        ("virtualNetworks", long(65), false),
    ] {
        let body = if kind == "virtualNetworks" { virtual_network(0, 0) } else { located() };
        let reply = client.put(&network_id(&format!("{kind}/{name}")), body).await;
        match good {
            true => drop(reply.expect(201)),
            false => drop(reply.refused(400, "InvalidResourceName")),
        }
    }
    let subnet = client.network("10.1.0.0/16").await;
    let child = subnet.parent().unwrap().child("subnets", "a,b");
    client
        .put(&child, json!({ "properties": { "addressPrefix": "10.2.0.0/24" } }))
        .await
        .refused(400, "InvalidResourceName");
    for name in ["_set", "set-", &long(65)] {
        let reply = client
            .put(&compute_id(&format!("virtualMachineScaleSets/{name}")), scale_set(0, &subnet, &[]))
            .await;
        assert_eq!(reply.refused(400, "InvalidParameter").body["error"]["target"], "vmScaleSetName");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_read_and_changed_while_it_runs() {
    let client = Client::with_group(Options::default()).await;
    let headers = [("content-type", "application/json")];
    let all = client.send("GET", "/_cerulean/limits", None, &[]).await.expect(200).body;
    for (name, value) in [
        ("network.subnetsPerVirtualNetwork", 3_000),
        ("network.securityRulesPerGroup", 1_000),
        ("network.rulesPerLoadBalancer", 1_500),
        ("compute.virtualMachinesPerRegion", 25_000),
        ("resources.groupsPerSubscription", 980),
    ] {
        assert_eq!(all[name], value, "{name}");
    }
    let change = async |body: Value| client.send("PUT", "/_cerulean/limits", Some(body), &headers).await;
    change(json!({ "resources.requestBytes": 300 })).await.expect(204);
    let mut body = public_ip();
    body["tags"] = json!({ "a": "x".repeat(250) });
    client.put(&network_id("publicIPAddresses/a"), body).await.refused(413, "RequestContentTooLarge");
    change(json!({ "network.unheardOf": 1 })).await.refused(400, "InvalidParameter");
    let unknown =
        Options { limits: BTreeMap::from([("network.unheardOf".to_owned(), 1)]), ..Options::default() };
    assert_eq!(Azure::check(&unknown), Err("network.unheardOf".to_owned()));
    assert_eq!(Azure::check(&options(&[("network.routesPerTable", 5)])), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn limits_of_types_are_overridden_like_all_others() {
    let client = Client::with_group(options(&[
        ("compute.instancesPerScaleSet", 3),
        ("compute.virtualMachinesPerAvailabilitySet", 1),
        ("network.routesPerTable", 1),
        ("network.prefixesPerSecurityGroup", 2),
        ("network.addressesPerVirtualNetwork", 5),
    ]))
    .await;
    let subnet = client.network("10.1.0.0/16").await;
    let set = compute_id("virtualMachineScaleSets/s");
    client.put(&set, scale_set(4, &subnet, &[])).await.refused(400, "InvalidParameter");
    client.create(&set, scale_set(3, &subnet, &[])).await;

    let nic = |name: &str| network_id(&format!("networkInterfaces/{name}"));
    let interface = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "c", "properties": { "subnet": { "id": subnet } } },
    ]}});
    for name in ["a", "b"] {
        client.put(&nic(name), interface.clone()).await.expect(201);
    }
    client.put(&nic("c"), interface).await.refused(400, "VirtualNetworkPrivateIPAddressCountLimitReached");

    let route = |n: u64| {
        json!({ "name": format!("r{n}"), "properties": {
            "addressPrefix": format!("10.{n}.0.0/16"), "nextHopType": "None",
        }})
    };
    let table = |routes: &[Value]| json!({ "location": "eastus", "properties": { "routes": routes } });
    let id = network_id("routeTables/t");
    client.put(&id, table(&[route(1)])).await.expect(201);
    client.put(&id, table(&[route(1), route(2)])).await.refused(400, "RouteTableRouteCountLimitReached");

    let group = |sources: &[&str]| {
        json!({ "location": "eastus", "properties": { "securityRules": [
            { "name": "r", "properties": {
                "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourcePortRange": "*",
                "destinationPortRange": "80", "sourceAddressPrefixes": sources, "destinationAddressPrefix": "*",
            }},
        ]}})
    };
    let id = network_id("networkSecurityGroups/g");
    client.put(&id, group(&["10.1.0.0/16", "10.2.0.0/16"])).await.expect(201);
    let refused = client.put(&id, group(&["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"])).await;
    refused.refused(400, "NetworkSecurityGroupAddressPrefixCountLimitReached");

    let available = compute_id("availabilitySets/s");
    let body = json!({ "location": "eastus", "sku": { "name": "Aligned" }, "properties": {
        "platformFaultDomainCount": 2, "platformUpdateDomainCount": 5,
    }});
    assert!(client.put(&available, body).await.status < 300);
    let machine = |nic: &str| {
        json!({ "location": "eastus", "properties": {
            "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
            "availabilitySet": { "id": available },
            "storageProfile": {
                "imageReference": { "publisher": "p", "offer": "o", "sku": "s", "version": "latest" },
                "osDisk": { "createOption": "FromImage" },
            },
            "osProfile": { "computerName": "m", "adminUsername": "u", "adminPassword": "Secret-Word-1" },
            "networkProfile": { "networkInterfaces": [{ "id": network_id(&format!("networkInterfaces/{nic}")) }] },
        }})
    };
    let first = compute_id("virtualMachines/first");
    let reply = client.put(&first, machine("a")).await;
    assert!(reply.status < 300, "{}", reply.body);
    client.wait(&reply).await;
    // The same machine again is no further one.
    assert!(client.put(&first, machine("a")).await.status < 300);
    client.put(&compute_id("virtualMachines/second"), machine("b")).await.refused(409, "OperationNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn compute_s_own_limits_are_in_force() {
    let client = Client::with_group(options(&[
        ("compute.instancesPerPlacementGroup", 2),
        ("compute.spotCoresPerRegion", 4),
        ("compute.coresPerRegion", 8),
    ]))
    .await;
    let subnet = client.network("10.1.0.0/16").await;
    let set = compute_id("virtualMachineScaleSets/s");
    let mut body = scale_set(3, &subnet, &[]);
    body["sku"]["name"] = json!("Standard_D2s_v3");
    body["properties"]["singlePlacementGroup"] = json!(true);
    let refused = client.put(&set, body.clone()).await.refused(400, "InvalidParameter");
    assert!(refused.message().contains("singlePlacementGroup"), "{}", refused.message());
    body["properties"]["singlePlacementGroup"] = json!(false);
    client.create(&set, body.clone()).await;
    body["sku"]["capacity"] = json!(4);
    client.create(&set, body.clone()).await;
    // Spot machines neither use nor need the quota of the others, which is used up now.
    body["properties"]["virtualMachineProfile"]["priority"] = json!("Spot");
    let spot = compute_id("virtualMachineScaleSets/spot");
    client.put(&spot, body.clone()).await.refused(409, "OperationNotAllowed");
    body["sku"]["capacity"] = json!(2);
    client.create(&spot, body.clone()).await;
    body["properties"]["virtualMachineProfile"]["priority"] = json!("Regular");
    client.put(&compute_id("virtualMachineScaleSets/more"), body).await.refused(409, "OperationNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn application_security_groups_are_bounded_and_of_one_network() {
    let client = Client::with_group(options(&[
        ("network.applicationSecurityGroupsPerIpConfiguration", 2),
        ("network.applicationSecurityGroupsPerRule", 1),
        ("network.applicationSecurityGroupsPerSecurityGroup", 2),
    ]))
    .await;
    let near = client.network("10.1.0.0/16").await;
    let other = network_id("virtualNetworks/other");
    client.create(&other, virtual_network(1, 0)).await;
    let far = other.child("subnets", "s0");
    let group = |name: &str| network_id(&format!("applicationSecurityGroups/{name}"));
    for name in ["a", "b", "c"] {
        client.create(&group(name), located()).await;
    }
    let listed =
        |names: &[&str]| names.iter().map(|name| json!({ "id": group(name) })).collect::<Vec<Value>>();
    let ip = |name: &str, subnet, groups: &[&str]| json!({ "name": name, "properties": { "subnet": { "id": subnet }, "applicationSecurityGroups": listed(groups) } });
    let nic = |ips: &[Value]| json!({ "location": "eastus", "properties": { "ipConfigurations": ips } });
    let id = |name: &str| network_id(&format!("networkInterfaces/{name}"));
    let one = nic(&[ip("x", &near, &["a", "b", "c"])]);
    client.put(&id("one"), one).await.refused(400, "ApplicationSecurityGroupCountLimitReached");
    let uneven = nic(&[ip("x", &near, &["a"]), ip("y", &near, &[])]);
    let code = "AllIpConfigurationsOnANicMustBelongToTheSameApplicationSecurityGroups";
    client.put(&id("one"), uneven).await.refused(400, code);
    client.put(&id("one"), nic(&[ip("x", &near, &["a"]), ip("y", &near, &["a"])])).await.expect(201);
    let strange = nic(&[ip("x", &far, &["a"])]);
    client
        .put(&id("two"), strange)
        .await
        .refused(400, "AllMembersOfApplicationSecurityGroupMustBeFromSameVnet");
    client.put(&id("two"), nic(&[ip("x", &far, &["b"])])).await.expect(201);

    let rule = |name: &str, priority: u64, from: &[&str], to: &[&str]| {
        json!({ "name": name, "properties": {
            "priority": priority, "direction": "Inbound", "access": "Allow", "protocol": "*", "sourcePortRange": "*",
            "destinationPortRange": "*", "sourceApplicationSecurityGroups": listed(from),
            "destinationApplicationSecurityGroups": listed(to),
        }})
    };
    let rules = |rules: &[Value]| json!({ "location": "eastus", "properties": { "securityRules": rules } });
    let guard = network_id("networkSecurityGroups/guard");
    let many = rules(&[rule("r", 100, &["a", "c"], &["a"])]);
    client.put(&guard, many).await.refused(400, "ApplicationSecurityGroupCountLimitReached");
    let mixed = rules(&[rule("r", 100, &["a"], &["b"])]);
    let code = "AllApplicationSecurityGroupsInSecurityRuleMustBeFromSameVnet";
    client.put(&guard, mixed).await.refused(400, code);
    let in_all = rules(&[rule("r", 100, &["a"], &["c"]), rule("s", 101, &["b"], &["c"])]);
    client.put(&guard, in_all).await.refused(400, "ApplicationSecurityGroupCountLimitReached");
    client.put(&guard, rules(&[rule("r", 100, &["a"], &["c"])])).await.expect(201);

    // A model's groups stay as long as it names them.
    let mut set = scale_set(0, &near, &[]);
    set["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]
        ["ipConfigurations"][0]["properties"]["applicationSecurityGroups"] = json!(listed(&["a"]));
    client.create(&compute_id("virtualMachineScaleSets/s"), set).await;
    client.put(&guard, rules(&[])).await.expect(200);
    client.delete(&id("one")).await.expect(202);
    client.delete(&group("a")).await.refused(400, "InUseApplicationSecurityGroupCannotBeDeleted");
}
