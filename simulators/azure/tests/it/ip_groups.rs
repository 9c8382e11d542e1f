//! IP groups: what they hold, and how their operations are followed.

use crate::common::*;
use azure_simulator::Options;
use serde_json::{Value, json};

fn group(addresses: Value) -> Value {
    json!({ "location": "eastus", "properties": { "ipAddresses": addresses } })
}

#[tokio::test(start_paused = true)]
async fn an_ip_group_holds_addresses_prefixes_and_ranges() {
    let limits = [("network.addressesPerIpGroup".to_owned(), 4)].into();
    let client = Client::with_group(Options { limits, ..Options::default() }).await;
    let id = network_id("ipGroups/g");
    let made = client.put(&id, group(json!(["10.0.0.1"]))).await.expect(201);
    assert!(made.header("azure-asyncoperation").unwrap().contains("/locations/eastus/nfvOperations/"));
    assert_eq!(client.wait(&made).await["status"], "Succeeded");
    let read = client.get(&id).await.expect(200);
    assert!(!read.etag().contains('"'), "{}", read.etag());
    assert_eq!(read.body["type"], "Microsoft.Network/IpGroups");
    for member in ["firewalls", "firewallPolicies"] {
        assert_eq!(read.body["properties"][member], json!([]), "{member}");
    }
    let bad = |words: &'static str| Some((400, "IpGroupsInvalidIpAddress", words));
    for (addresses, refused) in [
        (json!(["10.0.0.0/8", "fd00::/8", "10.0.0.4-10.0.0.9"]), None),
        (json!([]), None),
        (json!(["10.0.0.9-10.0.0.4"]), bad("10.0.0.9")),
        (json!(["10.0.0.4-fd00::1"]), bad("")),
        (json!(["a"]), bad("\"a\"")),
        (
            json!(["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5"]),
            Some((400, "IpGroupsIpAddressLimitReached", "4")),
        ),
    ] {
        check(client.put(&id, group(addresses.clone())).await, refused, &addresses);
    }
    // A deletion is over at once.
    let gone = client.delete(&id).await.expect(200);
    assert!(gone.header("location").is_none() && gone.header("azure-asyncoperation").is_none());
    client.get(&id).await.refused(404, "ResourceNotFound");
}
