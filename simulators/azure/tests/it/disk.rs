//! Disks and snapshots of their own.

use std::time::Duration;

use crate::common::{COMPUTE_VERSION, Client, compute_id};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

async fn put(client: &Client, id: &ResourceId, body: Value) -> Value {
    let reply = client.put(id, body).await.expect(202);
    assert_eq!(reply.body["properties"]["provisioningState"], "Updating");
    assert!(reply.body["properties"].get("diskState").is_none(), "what Azure finds out comes with the end");
    let end = client.wait(&reply).await;
    assert_eq!(end["status"], "Succeeded");
    assert_eq!(end["properties"]["output"]["id"], json!(id));
    client.get(id).await.expect(200).body
}

fn empty(gib: u64, sku: Option<&str>) -> Value {
    let mut body = json!({ "location": "eastus", "properties": {
        "creationData": { "createOption": "Empty" }, "diskSizeGB": gib,
    }});
    if let Some(sku) = sku {
        body["sku"] = json!({ "name": sku });
    }
    body
}

#[tokio::test(start_paused = true)]
async fn disks_have_the_figures_of_their_kind_and_grow_only() {
    let client = Client::with_group(Options::default()).await;
    for (name, sku, tier, iops) in [
        ("usual", None, "Standard", 500),
        ("premium", Some("premium_lrs"), "Premium", 240),
        ("second", Some("PremiumV2_LRS"), "Premium", 3_000),
    ] {
        let made = put(&client, &compute_id(&format!("disks/{name}")), empty(64, sku)).await;
        assert_eq!(
            (&made["sku"]["tier"], &made["properties"]["diskIOPSReadWrite"]),
            (&json!(tier), &json!(iops))
        );
        assert_eq!(made["properties"]["diskState"], "Unattached");
        assert!(made.get("etag").is_none());
    }
    let id = compute_id("disks/premium");
    let path = format!("{id}?api-version=2025-01-02");
    let patch = |gib: u64| Some(json!({ "properties": { "diskSizeGB": gib } }));
    client.send("PATCH", &path, patch(256), &[]).await.expect(202);
    let grown = client.get(&id).await.expect(200).body;
    assert_eq!(
        (&grown["properties"]["tier"], &grown["properties"]["diskIOPSReadWrite"]),
        (&json!("P15"), &json!(1_100))
    );
    client.send("PATCH", &path, patch(100), &[]).await.refused(409, "OperationNotAllowed");
    client
        .put(&compute_id("disks/odd"), empty(64, Some("Golden_LRS")))
        .await
        .refused(400, "InvalidParameter");
    client.put(&compute_id("disks/none"), empty(0, None)).await.refused(400, "InvalidParameter");
    client.put(&compute_id("disks/huge"), empty(40_000, None)).await.refused(400, "InvalidParameter");
    let copy = json!({ "location": "eastus", "properties": { "creationData":
        { "createOption": "Copy", "sourceResourceId": compute_id("snapshots/none") } } });
    client.put(&compute_id("disks/copy"), copy).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn snapshots_tell_how_far_they_are_and_become_disks_again() {
    let client = Client::with_group(Options::default()).await;
    let disk = compute_id("disks/data");
    put(&client, &disk, empty(100, Some("PremiumV2_LRS"))).await;
    let snapshot = compute_id("snapshots/snap");
    let body = json!({ "location": "eastus", "properties": {
        "creationData": { "createOption": "Copy", "sourceResourceId": disk }, "incremental": true,
    }});
    let made = put(&client, &snapshot, body).await;
    assert_eq!(made["properties"]["diskSizeGB"], 100);
    assert_eq!(made["properties"]["completionPercent"], 0.0);
    let mut last = 0.0;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let percent = client.get(&snapshot).await.body["properties"]["completionPercent"].as_f64().unwrap();
        assert!(percent > last, "{percent} after {last}");
        last = percent;
    }
    assert_eq!(last, 100.0);
    let back = json!({ "location": "eastus", "properties": { "creationData":
        { "createOption": "Copy", "sourceResourceId": snapshot } } });
    let restored = put(&client, &compute_id("disks/restored"), back).await;
    assert_eq!(restored["properties"]["diskSizeGB"], 100);
    client.delete(&disk).await.expect(202);
    client.get(&snapshot).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn access_to_the_bytes_is_granted_and_taken_back() {
    let client = Client::with_group(Options::default()).await;
    let disk = compute_id("disks/data");
    put(&client, &disk, empty(8, None)).await;
    let access = json!({ "access": "Read", "durationInSeconds": 300 });
    let granted = client.post(&disk, "beginGetAccess", access).await.expect(202);
    let end = granted.header("location").unwrap().to_owned();
    let url =
        client.send("GET", &end, None, &[]).await.expect(200).body["accessSAS"].as_str().unwrap().to_owned();
    assert!(url.starts_with("https://"));
    assert_eq!(client.get(&disk).await.body["properties"]["diskState"], "ActiveSAS");
    client.post(&disk, "endGetAccess", json!({})).await.expect(202);
    assert_eq!(client.get(&disk).await.body["properties"]["diskState"], "Unattached");
    client.post(&disk, "beginGetAccess", json!({ "access": "Read" })).await.refused(400, "InvalidParameter");
}

#[tokio::test(start_paused = true)]
async fn a_patch_changes_members_in_whatever_case_it_names_them() {
    let client = Client::with_group(Options::default()).await;
    let id = compute_id("disks/one");
    let creation = json!({ "createOption": "Empty" });
    client
        .create(
            &id,
            json!({ "location": "eastus", "properties": { "creationData": creation, "diskSizeGB": 4 } }),
        )
        .await;
    let path = format!("{id}?api-version={COMPUTE_VERSION}");
    let patch = json!({ "properties": { "DiskSizeGB": 8 } });
    let reply = client.send("PATCH", &path, Some(patch), &[]).await;
    assert!(reply.status < 300, "{}", reply.body);
    client.wait(&reply).await;
    let properties = client.get(&id).await.expect(200).body["properties"].take();
    assert_eq!((&properties["diskSizeGB"], &properties["DiskSizeGB"]), (&json!(8), &Value::Null));
}
