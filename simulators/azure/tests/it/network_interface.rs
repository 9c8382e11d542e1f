//! Network interfaces: what their configurations may ask for.

use crate::common::{Client, network_id};
use azure_simulator::Options;
use serde_json::json;

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
