//! What Azure refuses although it looks like a document, and what it reads although it looks wrong.

use crate::common::{Client, Reply, compute_id, group_path, network_id, public_ip};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

const UNREADABLE: &str = "InvalidRequestFormat";

/// The code of the only inner error.
fn detail(reply: &Reply) -> String {
    reply.body["error"]["details"][0]["code"].as_str().unwrap_or_default().to_owned()
}

fn interface(configurations: Value) -> Value {
    json!({ "location": "eastus", "properties": { "ipConfigurations": configurations } })
}

fn configuration(name: &str, subnet: &ResourceId) -> Value {
    json!({ "name": name, "properties": { "subnet": { "id": subnet } } })
}

#[tokio::test(start_paused = true)]
async fn a_reference_to_another_type_is_refused_with_its_place() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let nsg = network_id("networkSecurityGroups/nsg");
    client.create(&nsg, json!({ "location": "eastus", "properties": {} })).await;
    let nic = network_id("networkInterfaces/nic");
    let swapped = |member: &str, value: Value| {
        let mut body = interface(json!([configuration("one", &subnet)]));
        body["properties"]["ipConfigurations"][0]["properties"][member] = value;
        body
    };
    let net = subnet.parent().unwrap();
    let table = json!({ "properties": { "addressPrefix": "10.0.1.0/24", "routeTable": { "id": nsg } } });
    let peering = json!({ "properties": { "remoteVirtualNetwork": { "id": nsg } } });
    for (id, body, place) in [
        (&nic, swapped("subnet", json!({ "id": nsg })), "ipConfigurations[0].properties.subnet"),
        (&nic, swapped("publicIPAddress", json!({ "id": nsg })), "publicIPAddress"),
        (&nic, swapped("loadBalancerBackendAddressPools", json!([{ "id": nsg }])), "BackendAddressPools"),
        (&nic, swapped("applicationSecurityGroups", json!([{ "id": subnet }])), "applicationSecurityGroups"),
        (&net.child("subnets", "other"), table, "routeTable"),
        (&net.child("virtualNetworkPeerings", "p"), peering, "remoteVirtualNetwork"),
    ] {
        let reply = client.put(id, body).await.refused(400, UNREADABLE);
        assert_eq!(detail(&reply), "InvalidJsonReferenceFormat", "{place}");
        let text = reply.body["error"]["details"][0]["message"].as_str().unwrap().to_owned();
        assert!(text.contains(place) && text.contains("expected to reference resources of type"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn values_of_another_kind_are_refused_or_read_as_azure_reads_them() {
    let client = Client::with_group(Options::default()).await;
    let of = |properties: Value| json!({ "location": "eastus", "properties": properties });
    let table = network_id("routeTables/t");
    for (id, properties) in [
        (table.clone(), json!({ "disableBgpRoutePropagation": "yes" })),
        (table.clone(), json!([])),
        (network_id("publicIPAddresses/p"), json!({ "dnsSettings": { "domainNameLabel": ["a"] } })),
        (network_id("publicIPPrefixes/p"), json!({ "prefixLength": "long" })),
    ] {
        let reply = client.put(&id, of(properties.clone())).await.refused(400, UNREADABLE);
        assert_eq!(detail(&reply), "InvalidJson", "{properties}");
    }
    // Compute says it in its own way.
    let new = json!({ "createOption": "Empty" });
    for (properties, code) in [
        (json!({ "creationData": new, "diskSizeGB": "big" }), "BadRequest"),
        (
            json!({ "creationData": new, "diskSizeGB": 8, "networkAccessPolicy": "Sometimes" }),
            "InvalidParameter",
        ),
    ] {
        let reply = client.put(&compute_id("disks/d"), of(properties)).await.refused(400, code);
        assert!(reply.body["error"].get("details").is_none(), "{}", reply.body);
    }
    let shown = client.create(&table, of(json!({ "DisableBgpRoutePropagation": "True" }))).await;
    assert_eq!(shown["properties"]["disableBgpRoutePropagation"], true);
    let mut named = public_ip();
    named["properties"]["dnsSettings"] = json!({ "domainNameLabel": 5 });
    named["properties"]["idleTimeoutInMinutes"] = json!("7");
    named["properties"]["ipTags"] = json!([]);
    let id = network_id("publicIPAddresses/q");
    // A label begins with a letter: what is refused is the text `5`, not the number.
    let reply = client.put(&id, named.clone()).await.refused(400, "InvalidDomainNameLabel");
    assert!(reply.message().contains('5'), "{}", reply.message());
    named["properties"].as_object_mut().unwrap().remove("dnsSettings");
    let shown = client.create(&id, named).await;
    assert_eq!(shown["properties"]["idleTimeoutInMinutes"], 7);
}

#[tokio::test(start_paused = true)]
async fn what_stands_beside_the_properties_is_known() {
    let client = Client::with_group(Options::default()).await;
    let id = compute_id("disks/d");
    let disk = json!({ "location": "eastus", "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 } });
    let mut flat = disk.clone();
    flat["disk_size_gb"] = json!(8);
    let reply = client.put(&id, flat).await.refused(400, "InvalidRequestContent");
    assert!(
        reply
            .message()
            .contains("Could not find member 'disk_size_gb' on object of type 'ResourceDefinition'")
    );
    let mut spelled = disk.clone();
    let location = spelled.as_object_mut().unwrap().remove("location").unwrap();
    spelled["Location"] = location;
    client.put(&id, spelled).await.expect(202);
    // What was read can be sent back whole.
    let shown = client.get(&id).await.expect(200).body;
    client.put(&id, shown).await.expect(202);
    let path = format!("{id}?api-version=2025-01-02");
    client.send("PATCH", &path, Some(json!({ "size": 9 })), &[]).await.refused(400, "InvalidRequestContent");
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_networks_resources_is_of_tags_and_at_once() {
    let client =
        Client::with_group(Options { latency: azure_simulator::typical_latency(), ..Options::default() })
            .await;
    let table = network_id("routeTables/t");
    client.create(&table, json!({ "location": "eastus", "properties": {} })).await;
    let path = format!("{table}?api-version=2024-05-01");
    for (member, value) in
        [("properties", json!({ "disableBgpRoutePropagation": true })), ("sku", json!({ "name": "x" }))]
    {
        let reply = client.send("PATCH", &path, Some(json!({ member: value })), &[]).await;
        let reply = reply.refused(400, "OnlyTagsSupportedForPatch");
        assert!(reply.message().contains(&format!("includes {member} property")), "{}", reply.message());
    }
    let reply = client.send("PATCH", &path, Some(json!({ "tags": { "a": "b" } })), &[]).await.expect(200);
    assert_eq!(reply.header("azure-asyncoperation"), None);
    assert_eq!(reply.body["properties"]["provisioningState"], "Succeeded");
    assert_eq!(reply.body["tags"], json!({ "a": "b" }));
}

#[tokio::test(start_paused = true)]
async fn where_no_region_is_there_is_nothing() {
    let client = Client::with_group(Options { region: "myregion".into(), ..Options::default() }).await;
    let table = network_id("routeTables/t");
    let at = |location: &str| json!({ "location": location, "properties": {} });
    let reply = client.put(&table, at("westerope")).await.refused(400, "LocationNotAvailableForResourceType");
    assert!(
        reply.message().contains("'westerope'") && reply.message().contains("Microsoft.Network/routeTables")
    );
    let group = format!("{}x?api-version=2021-04-01", group_path());
    let reply = client.send("PUT", &group, Some(json!({ "location": "westerope" })), &[]).await;
    reply.refused(400, "LocationNotAvailableForResourceGroup");
    for (name, location) in
        [("a", "West Europe"), ("b", "chinanorth3"), ("c", "myregion"), ("d", "centraluseuap")]
    {
        client.put(&network_id(&format!("routeTables/{name}")), at(location)).await.expect(201);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interface_keeps_its_primary_configuration_and_stays_in_one_subnet() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let net = subnet.parent().unwrap();
    let other = net.child("subnets", "other");
    client.put(&other, json!({ "properties": { "addressPrefix": "10.1.0.0/24" } })).await.expect(201);
    let mut set = crate::common::scale_set(1, &subnet, &[]);
    let nics =
        &mut set["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"];
    let list = nics[0]["properties"]["ipConfigurations"].as_array_mut().unwrap();
    list.push(configuration("two", &other));
    client
        .put(&compute_id("virtualMachineScaleSets/s"), set)
        .await
        .refused(400, "VMScaleSetIpConfigurationsOnSameNicCannotUseDifferentSubnets");
    let nic = network_id("networkInterfaces/nic");
    let both = json!([configuration("one", &subnet), configuration("two", &other)]);
    client
        .put(&nic, interface(both))
        .await
        .refused(400, "IpConfigurationsOnSameNicCannotUseDifferentSubnets");
    let pair = interface(json!([configuration("one", &subnet), configuration("two", &subnet)]));
    client.put(&nic, pair).await.expect(201);
    let renamed = interface(json!([configuration("first", &subnet)]));
    client.put(&nic, renamed).await.refused(400, "IpConfigDeleteNotSupported");
    // Another one may go, and all of it may move to another subnet of the network.
    client.put(&nic, interface(json!([configuration("ONE", &other)]))).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_network_cannot_shrink_away_from_its_subnets() {
    let client = Client::with_group(Options::default()).await;
    let net = client.network("10.0.0.0/16").await.parent().unwrap();
    let space = |prefix: &str| json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": [prefix] } } });
    client.put(&net, space("10.9.0.0/16")).await.refused(400, "NetcfgSubnetRangeOutsideVnet");
    client.put(&net, space("10.0.0.0/8")).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_second_peering_to_the_same_network_is_one_too_many() {
    let client = Client::with_group(Options::default()).await;
    let space = |prefix: &str| json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": [prefix] } } });
    let (a, b) = (network_id("virtualNetworks/one"), network_id("virtualNetworks/two"));
    client.create(&a, space("10.0.0.0/16")).await;
    client.create(&b, space("10.1.0.0/16")).await;
    let to = |network: &ResourceId| json!({ "properties": { "remoteVirtualNetwork": { "id": network } } });
    client.create(&a.child("virtualNetworkPeerings", "ab"), to(&b)).await;
    client.create(&b.child("virtualNetworkPeerings", "ba"), to(&a)).await;
    let second = client.put(&a.child("virtualNetworkPeerings", "again"), to(&b)).await;
    second.refused(400, "AnotherPeeringAlreadyReferencesRemoteVnet");
}

#[tokio::test(start_paused = true)]
async fn prefixes_of_one_security_rule_are_apart_of_one_family_and_no_tags() {
    let client = Client::with_group(Options::default()).await;
    let group = network_id("networkSecurityGroups/g");
    let with = |prefixes: Value| {
        json!({ "location": "eastus", "properties": { "securityRules": [{ "name": "r", "properties": {
            "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourcePortRange": "*",
            "destinationPortRange": 443, "destinationAddressPrefix": "*", "sourceAddressPrefixes": prefixes } }] } })
    };
    let (overlap, mixed, tag) = (
        "OverlappingSubnetsNotPermittedInSecurityRule",
        "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies",
        "SecurityRuleParameterContainsUnsupportedValue",
    );
    for (prefixes, code) in [
        (json!(["10.0.0.0/8", "10.1.0.0/16"]), overlap),
        (json!(["10.1.2.3", "10.1.2.3/32"]), overlap),
        (json!(["10.0.0.0/8", "fd00::/8"]), mixed),
        (json!(["10.0.0.0/8", "Internet"]), tag),
        (json!(["*"]), tag),
    ] {
        let reply = client.put(&group, with(prefixes.clone())).await.refused(400, code);
        assert!(reply.message().contains("sourceAddressPrefixes"), "{prefixes}");
    }
    let shown = client.create(&group, with(json!(["10.0.0.0/9", "10.128.0.0/9", "192.0.2.1"]))).await;
    assert_eq!(shown["properties"]["securityRules"][0]["properties"]["destinationPortRange"], "443");
}

#[tokio::test(start_paused = true)]
async fn each_provider_says_in_its_own_way_what_it_cannot_read() {
    let client = Client::with_group(Options::default()).await;
    let group = ResourceId::parse(&group_path()).unwrap();
    let cluster = group.resource("Microsoft.ContainerService", "managedClusters", "c");
    let system = json!({ "name": "system", "mode": "System", "count": 1 });
    let made = json!({ "location": "eastus", "identity": { "type": "SystemAssigned" },
        "properties": { "dnsPrefix": "c", "agentPoolProfiles": [system] } });
    client.create(&cluster, made).await;
    let zone = network_id("privateDnsZones/a.example.org");
    client.put(&zone, json!({ "location": "global" })).await;
    let vault = group.resource("Microsoft.KeyVault", "vaults", "vault1");
    let registry = group.resource("Microsoft.ContainerRegistry", "registries", "registry1");
    let account = group.resource("Microsoft.Storage", "storageAccounts", "account1");
    let lock = cluster.resource("Microsoft.Authorization", "locks", "l");
    let (plan, host) = (network_id("ddosProtectionPlans/p"), compute_id("hostGroups/h"));
    let of = |properties: Value| json!({ "location": "eastus", "properties": properties });
    // No source shows what these say.
    const ANY: &str = "";
    for (id, body, code) in [
        (cluster.child("agentPools", "user"), of(json!({ "count": "many" })), "BadRequest"),
        (cluster.child("agentPools", "user"), of(json!({ "osType": "Plan 9" })), "InvalidParameter"),
        (cluster.clone(), of(json!({ "dnsPrefix": ["c"] })), "BadRequest"),
        (vault.clone(), of(json!({ "enablePurgeProtection": "perhaps" })), ANY),
        (vault, of(json!([])), ANY),
        (zone.child("A", "a"), json!({ "properties": { "ttl": "long" } }), ANY),
        (registry, of(json!({ "adminUserEnabled": {} })), ANY),
        (account, of(json!({ "accessTier": 7 })), ANY),
        (lock.clone(), json!({ "properties": { "level": "Ajar" } }), ANY),
        (lock, json!({ "properties": {} }), ANY),
        (plan, of(json!("x")), "InvalidRequestFormat"),
        (host, of(json!({ "platformFaultDomainCount": "few" })), "BadRequest"),
    ] {
        let reply = client.put(&id, body.clone()).await;
        let said = reply.body["error"]["code"].as_str().unwrap_or_default();
        assert!(reply.status == 400 && (code == ANY || said == code), "{id} {body}: {}", reply.body);
    }
}
