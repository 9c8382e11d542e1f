//! API versions: an unknown one gets Azure's error, a known one its shape.

use crate::common::{Client, compute_id, group_path, network_id, scale_set};
use azure_simulator::Options;
use serde_json::{Value, json};

async fn client(strict: bool) -> Client {
    let client = Client::with_group(Options { strict_api_versions: strict, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/16").await;
    client.create(&compute_id("virtualMachineScaleSets/s"), scale_set(1, &subnet, &[])).await;
    client
}

#[tokio::test(start_paused = true)]
async fn unknown_versions_get_azures_errors() {
    let (set, group) = (compute_id("virtualMachineScaleSets/s").to_string(), group_path());
    let (arm, provider) = ("InvalidApiVersionParameter", "NoRegisteredProviderFound");
    for (path, version, strict, lenient) in [
        (&set, "2025-04-01", "", ""),
        (&set, "2022-03-01", provider, ""),
        (&set, "2025-04-01-preview", provider, ""),
        (&set, "1999-01-01", provider, provider),
        (&set, "2099-01-01", provider, provider),
        (&set, "2025-02-30", provider, provider),
        (&set, "newest", provider, provider),
        (&set, "", "MissingApiVersionParameter", "MissingApiVersionParameter"),
        (&group, "2021-04-01", "", ""),
        (&group, "2019-01-02", arm, ""),
        (&group, "1999-01-01", arm, arm),
    ] {
        for (is_strict, expected) in [(true, strict), (false, lenient)] {
            let reply = client(is_strict)
                .await
                .send("GET", &format!("{path}?api-version={version}"), None, &[])
                .await;
            match expected {
                "" => drop(reply.expect(200)),
                code => drop(reply.refused(400, code)),
            }
        }
    }
    let reply = client(true).await.send("GET", &format!("{set}?api-version=2022-03-01"), None, &[]).await;
    let message = reply.message();
    let start = "No registered resource provider found for location 'eastus' and API version '2022-03-01' for type \
                 'virtualMachineScaleSets'. The supported api-versions are '2025-04-01, ";
    assert!(message.starts_with(start) && message.contains("The supported locations are '"), "{message}");
    let reply = client(true).await.send("GET", &format!("{group}?api-version=2019-01-02"), None, &[]).await;
    let message = reply.message();
    assert!(
        message.starts_with("The api-version '2019-01-02' is invalid. The supported versions are '20"),
        "{message}"
    );
    assert!(!message.contains(", "), "a list without blanks: {message}");
}

#[tokio::test(start_paused = true)]
async fn older_versions_do_not_show_what_came_later() {
    let client = client(false).await;
    let set = compute_id("virtualMachineScaleSets/s");
    let instance = set.child("virtualMachines", "0");
    let list = format!("{set}/virtualMachines");
    let read = async |path: &str, version: &str| {
        client.send("GET", &format!("{path}?api-version={version}"), None, &[]).await.expect(200)
    };
    for (version, has) in
        [("2025-04-01", true), ("2024-03-01", true), ("2023-09-01", false), ("2018-10-01", false)]
    {
        for path in [set.as_str(), instance.as_str()] {
            let reply = read(path, version).await;
            assert_eq!(reply.body.get("etag").is_some(), has, "{path} {version}");
            assert_eq!(reply.header("etag").is_some(), has, "{path} {version}");
        }
        let listed = read(&list, version).await.body["value"][0].clone();
        assert_eq!(listed.get("etag").is_some(), has, "{version}");
        assert!(listed["properties"]["provisioningState"].is_string());
    }
    let created = |body: &Value| body["properties"]["timeCreated"].is_string();
    assert!(created(&read(set.as_str(), "2021-11-01").await.body));
    assert!(!created(&read(set.as_str(), "2021-07-01").await.body));
    // Network's etags are as old as Network.
    let net = read(network_id("virtualNetworks/net").as_str(), "2018-11-01").await;
    assert!(net.body["etag"].is_string() && net.header("etag").is_some());
    // Writes are answered in the shape of their version, too.
    let path = format!("{set}?api-version=2019-07-01");
    let reply = client.send("PATCH", &path, Some(json!({ "tags": { "a": "b" } })), &[]).await.expect(200);
    assert!(reply.body.get("etag").is_none() && reply.header("etag").is_none());
}
