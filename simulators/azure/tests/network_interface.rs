//! Network interfaces: what is in force at them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use azure_simulator::Options;
use azure_types::ResourceId;
use common::{Client, NETWORK_VERSION, Reply, compute_id, network_id};
use serde_json::{Value, json};

async fn ask(client: &Client, nic: &ResourceId, what: &str) -> Reply {
    client.send("POST", &format!("{nic}/{what}?api-version={NETWORK_VERSION}"), None, &[]).await
}

/// The final answer of an action.
async fn answer(client: &Client, nic: &ResourceId, what: &str) -> Value {
    let reply = ask(client, nic, what).await.expect(202);
    let location = reply.header("location").unwrap().to_owned();
    client.send("GET", &location, None, &[]).await.expect(200).body
}

#[tokio::test(start_paused = true)]
async fn routes_and_rules_in_force_are_told_where_a_machine_runs() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let (table, group) = (network_id("routeTables/table"), network_id("networkSecurityGroups/group"));
    let route = json!({ "name": "out", "properties": { "addressPrefix": "0.0.0.0/0",
        "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.1.0.9" } });
    client.create(&table, json!({ "location": "eastus", "properties": { "routes": [route] } })).await;
    let rule = json!({ "name": "web", "properties": { "protocol": "*", "sourceAddressPrefix": "*",
        "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "80", "access": "Allow",
        "priority": 100, "direction": "Inbound" } });
    client.create(&group, json!({ "location": "eastus", "properties": { "securityRules": [rule] } })).await;
    client
        .create(
            &subnet,
            json!({ "properties": { "addressPrefix": "10.1.0.0/24", "routeTable": { "id": table },
                "networkSecurityGroup": { "id": group } } }),
        )
        .await;
    let nic = network_id("networkInterfaces/one");
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "c", "properties": { "subnet": { "id": subnet } } }] } });
    client.put(&nic, body).await.expect(201);
    let refusal = "NetworkInterfaceNotAttachedToRunningVirtualMachine";
    ask(&client, &nic, "effectiveRouteTable").await.refused(400, refusal);

    let machine = json!({ "location": "eastus", "properties": {
        "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
        "storageProfile": { "imageReference": { "publisher": "Canonical", "offer": "ubuntu-24_04-lts",
            "sku": "server", "version": "latest" } },
        "osProfile": { "computerName": "one", "adminUsername": "operator", "adminPassword": "Long-enough-1" },
        "networkProfile": { "networkInterfaces": [{ "id": nic }] } } });
    client.put(&compute_id("virtualMachines/one"), machine).await.expect(201);
    let before = client.get(&nic).await.etag();
    let routes = answer(&client, &nic, "effectiveRouteTable").await;
    let of = |source: &str, prefix: &str| {
        let all = routes["value"].as_array().unwrap().iter();
        let mut found = all.filter(|one| one["source"] == source && one["addressPrefix"] == json!([prefix]));
        found.next().unwrap_or_else(|| panic!("{source} {prefix}: {routes}")).clone()
    };
    assert_eq!(of("Default", "0.0.0.0/0")["state"], "Invalid");
    assert_eq!(of("User", "0.0.0.0/0")["nextHopIpAddress"], json!(["10.1.0.9"]));
    let groups = answer(&client, &nic, "effectiveNetworkSecurityGroups").await;
    let shown = &groups["value"][0];
    assert_eq!(shown["association"]["subnet"]["id"], subnet.as_str());
    let web = &shown["effectiveSecurityRules"][0];
    assert_eq!((&web["protocol"], &web["destinationPortRange"]), (&json!("All"), &json!("80-80")));
    assert_eq!(shown["effectiveSecurityRules"].as_array().unwrap().len(), 7);
    // To be asked changes nothing.
    let after = client.get(&nic).await;
    assert_eq!((after.etag(), &after.body["properties"]["provisioningState"]), (before, &json!("Succeeded")));
}

#[tokio::test(start_paused = true)]
async fn a_configuration_may_ask_for_a_block_of_addresses() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let id = network_id("networkInterfaces/blocks");
    let body = |length: u64| {
        json!({ "location": "eastus", "properties": { "ipConfigurations": [
            { "name": "ipconfig1", "properties": { "primary": true, "subnet": { "id": subnet } } },
            { "name": "ipconfig2", "properties": { "privateIPAddressPrefixLength": length } } ] } })
    };
    client.put(&id, body(24)).await.refused(400, "InvalidPropertyValue");
    let made = client.put(&id, body(28)).await.expect(201).body;
    let second = &made["properties"]["ipConfigurations"][1]["properties"];
    assert_eq!(second["subnet"]["id"], subnet.as_str());
    assert_eq!(second["privateIPAddressPrefixLength"], 28);
}
