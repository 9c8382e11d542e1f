//! What is asked and answered can be written down, in the form of recorded conversations with Azure.

use azure_simulator::{Fault, FaultAction, Options};
use serde_json::{Value, json};

use crate::common::{Client, GROUP, SUBSCRIPTION, compute_id, network_id};
use azure_types::ResourceId;

/// Each exchange is a line with both sides, the lost one alone without; tokens, keys and passwords are in none.
#[tokio::test(start_paused = true)]
async fn each_exchange_is_a_line_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exchanges.jsonl");
    let client = Client::with_group(Options { budgets: None, ..Options::default() }).await;
    client.azure.record(&path).unwrap();
    let network = network_id("virtualNetworks/net");
    let document = json!({ "location": "eastus", "properties": {
        "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
        "subnets": [{ "name": "nodes", "properties": { "addressPrefix": "10.0.0.0/24" } }],
    }});
    client.put(&network, document.clone()).await.expect(201);
    let url = format!("{network}?api-version=2025-05-01");
    let made = client.send("GET", &url, None, &[]).await.expect(200);
    let bearer =
        [("authorization", "Bearer token-of-mine"), ("if-match", made.body["etag"].as_str().unwrap())];
    client.send("PUT", &url, Some(document), &bearer).await.expect(201);
    let nic = network_id("networkInterfaces/nic");
    let subnet = network.child("subnets", "nodes");
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "ip", "properties": { "subnet": { "id": subnet } } },
    ]}});
    client.put(&nic, body).await.expect(201);
    let machine = json!({ "location": "eastus", "properties": {
        "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
        "storageProfile": { "imageReference": { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" } },
        "osProfile": { "computerName": "one", "adminUsername": "x", "adminPassword": "hidden-Word1", "customData": "c2VjcmV0" },
        "networkProfile": { "networkInterfaces": [{ "id": nic }] },
    }});
    client.put(&compute_id("virtualMachines/one"), machine).await.expect(201);
    let account =
        ResourceId::group(SUBSCRIPTION, GROUP).resource("Microsoft.Storage", "storageAccounts", "acct1");
    let storage = |rest: &str| format!("{account}{rest}?api-version=2025-01-01");
    let kind = json!({ "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" } });
    client.send("PUT", &storage(""), Some(kind), &[]).await.expect(202);
    let keys = client.send("POST", &storage("/listKeys"), None, &[]).await.expect(200);
    let key = keys.body["keys"][0]["value"].as_str().unwrap().to_owned();
    client.azure.inject(Fault::new(FaultAction::DropAnswer).times(1));
    assert!(client.try_send("GET", &url, None, &[]).await.is_none());
    client
        .send("GET", &format!("{network}x?api-version=2025-05-01"), None, &[])
        .await
        .refused(404, "ResourceNotFound");

    let text = std::fs::read_to_string(&path).unwrap();
    for secret in ["token-of-mine", "hidden-Word1", "c2VjcmV0", &key] {
        assert!(!text.contains(secret), "{secret}");
    }
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<(&str, u64)> = lines
        .iter()
        .map(|line| (line["method"].as_str().unwrap(), line["status"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("PUT", 201),
        ("GET", 200),
        ("PUT", 201),
        ("PUT", 201),
        ("PUT", 201),
        ("PUT", 202),
        ("POST", 200),
        ("GET", 404),
    ];
    assert_eq!(shown, expected);
    assert_eq!(lines[0]["url"], url);
    assert_eq!(lines[0]["body"]["properties"]["subnets"][0]["name"], "nodes");
    assert_eq!(lines[1]["response"]["properties"]["provisioningState"], "Succeeded");
    assert_eq!(lines[2]["if_match"], made.body["etag"]);
    assert!(lines[1]["headers"]["etag"].is_string() && lines[0]["if_match"].is_null());
    assert_eq!(lines[4]["body"]["properties"]["osProfile"]["adminPassword"], "(hidden)");
    assert_eq!(lines[6]["response"]["keys"][0]["value"], "(hidden)");
    assert_eq!(lines[6]["response"]["keys"][0]["keyName"], "key1");
}
