//! Locks: what they hold, and what they let go on.

use crate::common::*;
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

const V: &str = "api-version=2020-05-01";

fn group() -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP)
}

fn lock_on(scope: &ResourceId, name: &str) -> String {
    format!("{scope}/providers/Microsoft.Authorization/locks/{name}?{V}")
}

async fn lock(client: &Client, scope: &ResourceId, name: &str, level: &str) -> Reply {
    let body = json!({ "properties": { "level": level, "notes": "why" } });
    client.send("PUT", &lock_on(scope, name), Some(body), &[]).await
}

async fn locks(client: &Client, scope: &str, filter: &str) -> Vec<Value> {
    let path = format!("{scope}/providers/Microsoft.Authorization/locks?{V}{filter}");
    let list = client.send("GET", &path, None, &[]).await.expect(200).body;
    list["value"].as_array().unwrap().iter().map(|lock| lock["name"].clone()).collect()
}

async fn delete_group(client: &Client) -> Reply {
    client.send("DELETE", &format!("{}?api-version=2021-04-01", group()), None, &[]).await
}

#[tokio::test(start_paused = true)]
async fn what_is_locked_is_not_deleted() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let network = subnet.parent().unwrap();
    let table = network_id("routeTables/t");
    client.create(&table, json!({ "location": "eastus", "properties": {} })).await;
    let made = lock(&client, &network, "keep", "CanNotDelete").await.expect(201).body;
    assert_eq!(made["type"], "Microsoft.Authorization/locks");
    lock(&client, &network, "keep", "CanNotDelete").await.expect(200);
    for id in [&network, &subnet] {
        let refused = client.delete(id).await.refused(409, "ScopeLocked");
        let words =
            format!("cannot perform delete operation because following scope(s) are locked: '{network}'.");
        assert!(refused.message().contains(&words), "{}", refused.message());
    }
    // A group goes with what it holds, or not at all.
    delete_group(&client).await.refused(409, "ScopeLocked");
    // Changes go on, and so does everything else.
    let document = client.get(&network).await.body;
    client.put(&network, document).await.expect(201);
    client.delete(&table).await.expect(202);
    let whole = format!("/subscriptions/{SUBSCRIPTION}");
    assert_eq!(locks(&client, &whole, "").await, ["keep"]);
    assert_eq!(locks(&client, group().as_str(), "").await, ["keep"]);
    assert!(locks(&client, group().as_str(), "&$filter=atScope()").await.is_empty());
    assert_eq!(locks(&client, network.as_str(), "&$filter=atScope()").await, ["keep"]);
    client.send("DELETE", &lock_on(&network, "keep"), None, &[]).await.expect(200);
    client.delete(&network).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn what_may_only_be_read_is_not_changed() {
    let client = Client::with_group(Options::default()).await;
    let table = network_id("routeTables/t");
    let body = json!({ "location": "eastus", "properties": {} });
    client.create(&table, body.clone()).await;
    let bad = lock(&client, &group(), "frozen", "Sometimes").await;
    assert_eq!(bad.status, 400);
    lock(&client, &group(), "frozen", "ReadOnly").await.expect(201);
    let refused = client.put(&table, body).await.refused(409, "ScopeLocked");
    assert!(refused.message().contains("cannot perform write operation"), "{}", refused.message());
    client.delete(&table).await.refused(409, "ScopeLocked");
    client.get(&table).await.expect(200);
    let path = format!("{}?api-version=2021-04-01", group());
    client.send("PATCH", &path, Some(json!({ "tags": {} })), &[]).await.refused(409, "ScopeLocked");
    client.send("DELETE", &lock_on(&group(), "frozen"), None, &[]).await.expect(200);
    delete_group(&client).await.expect(202);
}
