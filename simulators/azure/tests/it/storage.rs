//! Storage accounts, their services, containers and file shares over Resource Manager.

use std::time::Duration;

use crate::common::*;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use serde_json::{Value, json};

const V: &str = "api-version=2025-01-01";
const SHARES: &str = "fileServices/default/shares";
const CONTAINERS: &str = "blobServices/default/containers";

fn account(name: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP).resource("Microsoft.Storage", "storageAccounts", name)
}

async fn ask(client: &Client, method: &str, path: &str, body: Value) -> Reply {
    let path = if path.contains('?') { format!("{path}&{V}") } else { format!("{path}?{V}") };
    client.send(method, &path, (!body.is_null()).then_some(body), &[]).await
}

async fn below(client: &Client, method: &str, path: &str, body: Value) -> Reply {
    ask(client, method, &format!("{}/{path}", account("acct1")), body).await
}

fn of_kind(kind: &str, sku: &str) -> Value {
    json!({ "location": "eastus", "kind": kind, "sku": { "name": sku } })
}

/// A client with the account `acct1`.
async fn with_account(options: Options, document: Value) -> Client {
    let client = Client::with_group(options).await;
    ask(&client, "PUT", account("acct1").as_str(), document).await.expect(202);
    client
}

/// The same without throttling.
async fn standard() -> Client {
    let options = Options { budgets: None, ..Options::default() };
    with_account(options, of_kind("StorageV2", "Standard_LRS")).await
}

#[tokio::test(start_paused = true)]
async fn an_account_is_made_in_the_background_and_changed_at_once() {
    let latency = LatencyProfile::instant().with(
        "CREATE",
        "Microsoft.Storage/storageAccounts",
        Duration::from_secs(20),
    );
    let client = Client::with_group(Options { latency, ..Options::default() }).await;
    let id = account("acct1");
    let made = ask(&client, "PUT", id.as_str(), of_kind("StorageV2", "standard_ragrs")).await.expect(202);
    assert_eq!(made.body, Value::Null);
    assert!(made.header("azure-asyncoperation").is_none());
    let poll = made.header("location").unwrap().to_owned();
    assert!(poll.contains("/locations/eastus/asyncoperations/") && poll.contains("monitor=true"), "{poll}");
    client.send("GET", &poll, None, &[]).await.expect(202);
    let state = |reply: Reply| reply.body["properties"]["provisioningState"].clone();
    assert_eq!(state(ask(&client, "GET", id.as_str(), Value::Null).await), "Creating");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let done = client.send("GET", &poll, None, &[]).await.expect(200);
    let properties = &done.body["properties"];
    assert_eq!(properties["secondaryLocation"], "westus");
    assert_eq!(properties["secondaryEndpoints"]["blob"], "https://acct1-secondary.blob.core.windows.net/");
    assert_eq!(done.body["sku"], json!({ "name": "Standard_RAGRS", "tier": "Standard" }));
    let patched = json!({ "properties": { "allowSharedKeyAccess": false }, "tags": { "a": "b" } });
    let patched = ask(&client, "PATCH", id.as_str(), patched).await.expect(200);
    assert_eq!(patched.body["properties"]["allowSharedKeyAccess"], false);
    // A PUT of an existing account keeps the members that it leaves out.
    let again = of_kind("StorageV2", "Standard_LRS");
    let again = ask(&client, "PUT", id.as_str(), again).await.expect(200);
    assert_eq!(again.body["properties"]["allowSharedKeyAccess"], false);
    assert_eq!(again.body["sku"]["name"], "Standard_LRS");
    assert!(again.body["properties"].get("secondaryLocation").is_none());
    ask(&client, "DELETE", id.as_str(), Value::Null).await.expect(200);
    ask(&client, "GET", id.as_str(), Value::Null).await.refused(404, "ResourceNotFound");
    ask(&client, "DELETE", id.as_str(), Value::Null).await.expect(204);
}

#[tokio::test(start_paused = true)]
async fn accounts_are_refused_in_azures_words() {
    let client = standard().await;
    let with = |kind: &str, sku: &str, properties: Value| {
        let mut document = of_kind(kind, sku);
        document["properties"] = properties;
        document
    };
    let v2 = |properties: Value| with("StorageV2", "Standard_LRS", properties);
    let rules = |rules: Value| v2(json!({ "networkAcls": rules }));
    let nowhere = network_id("virtualNetworks/none/subnets/s");
    for (name, document, expected) in [
        ("ab", v2(json!({})), Some((400, "AccountNameInvalid", "ab is not a valid storage account name"))),
        ("Upper", v2(json!({})), Some((400, "AccountNameInvalid", "lower-case"))),
        (
            "new1",
            with("StorageV3", "Standard_LRS", json!({})),
            Some((400, "InvalidRequestPropertyValue", "kind")),
        ),
        (
            "new1",
            with("FileStorage", "Standard_LRS", json!({})),
            Some((400, "InvalidValuesForRequestParameters", "kind,sku")),
        ),
        (
            "new1",
            json!({ "location": "eastus", "kind": "StorageV2" }),
            Some((400, "InvalidValuesForRequestParameters", "sku")),
        ),
        (
            "new1",
            v2(json!({ "accessTier": "Warm" })),
            Some((400, "InvalidRequestPropertyValue", "accessTier")),
        ),
        (
            "new1",
            rules(json!({ "ipRules": [{ "value": "here" }] })),
            Some((400, "InvalidRequestPropertyValue", "'here'")),
        ),
        (
            "new1",
            rules(json!({ "virtualNetworkRules": [{ "id": nowhere }] })),
            Some((400, "NetworkAclsValidationFailure", "SubnetsNotFound")),
        ),
        (
            "acct1",
            v2(json!({ "isHnsEnabled": true })),
            Some((409, "AccountPropertyCannotBeUpdated", "isHnsEnabled")),
        ),
        (
            "acct1",
            with("BlobStorage", "Standard_LRS", json!({})),
            Some((400, "InvalidValuesForRequestParameters", "kind")),
        ),
        ("new1", v2(json!({ "unknown": 1 })), None),
    ] {
        let reply = ask(&client, "PUT", account(name).as_str(), document).await;
        check(reply, expected, &name);
    }
    // Names are unique in all of Azure.
    let other = ResourceId::group(SUBSCRIPTION, "other");
    let path = format!("{other}?api-version=2021-04-01");
    client.send("PUT", &path, Some(json!({ "location": "eastus" })), &[]).await.expect(201);
    let taken = other.resource("Microsoft.Storage", "storageAccounts", "acct1");
    let reply = ask(&client, "PUT", taken.as_str(), v2(json!({}))).await;
    check(reply, Some((409, "StorageAccountAlreadyTaken", "acct1 is already taken")), &taken);
    let available =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Storage/checkNameAvailability");
    for (name, reason) in
        [("acct1", json!("AlreadyExists")), ("a_b", json!("AccountNameInvalid")), ("free1", Value::Null)]
    {
        let reply = ask(&client, "POST", &available, json!({ "name": name })).await.expect(200);
        assert_eq!(reply.body.get("reason").cloned().unwrap_or_default(), reason, "{name}");
        assert_eq!(reply.body["nameAvailable"], reason.is_null(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_firewall_names_subnets_that_have_an_endpoint() {
    let client = Client::with_group(Options::default()).await;
    let network = network_id("virtualNetworks/net");
    let subnet = |name: &str, prefix: &str, endpoints: Value| json!({ "name": name, "properties": { "addressPrefix": prefix, "serviceEndpoints": endpoints } });
    let document = json!({ "location": "eastus", "properties": {
        "addressSpace": { "addressPrefixes": ["10.0.0.0/16"] },
        "subnets": [
            subnet("with", "10.0.0.0/24", json!([{ "service": "Microsoft.Storage" }])),
            subnet("without", "10.0.1.0/24", json!([])),
        ],
    }});
    client.put(&network, document).await.expect(201);
    let rules = |name: &str| {
        let mut document = of_kind("StorageV2", "Standard_LRS");
        let rule = json!({ "id": network.child("subnets", name) });
        document["properties"] =
            json!({ "networkAcls": { "defaultAction": "Deny", "virtualNetworkRules": [rule] } });
        document
    };
    ask(&client, "PUT", account("acct1").as_str(), rules("without"))
        .await
        .refused(400, "SubnetsHaveNoServiceEndpointsConfigured");
    ask(&client, "PUT", account("acct1").as_str(), rules("with")).await.expect(202);
    let read = ask(&client, "GET", account("acct1").as_str(), Value::Null).await.expect(200);
    let rule = &read.body["properties"]["networkAcls"]["virtualNetworkRules"][0];
    assert_eq!((&rule["action"], &rule["state"]), (&json!("Allow"), &json!("Succeeded")));
}

#[tokio::test(start_paused = true)]
async fn keys_are_listed_and_rotated_one_by_one() {
    let client = standard().await;
    let keys = |reply: Reply| {
        let keys = reply.body["keys"].as_array().unwrap().clone();
        keys.iter().map(|key| key["value"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = keys(below(&client, "POST", "listKeys", Value::Null).await.expect(200));
    assert!(first[0] != first[1] && first[0].len() == 88);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let second = below(&client, "POST", "regenerateKey", json!({ "keyName": "key2" })).await.expect(200);
    assert!(
        second.body["keys"][0]["creationTime"].as_str() < second.body["keys"][1]["creationTime"].as_str()
    );
    let second = keys(second);
    assert_eq!((first[0] == second[0], first[1] == second[1]), (true, false));
    assert_eq!(keys(below(&client, "POST", "listkeys", Value::Null).await), second);
    below(&client, "POST", "regenerateKey", json!({ "keyName": "key3" }))
        .await
        .refused(400, "InvalidValuesForRequestParameters");
    below(&client, "POST", "ListAccountSas", json!({ "signedServices": "f" }))
        .await
        .refused(400, "InvalidValuesForRequestParameters");
}

#[tokio::test(start_paused = true)]
async fn a_service_shows_its_settings_and_answers_with_what_was_sent() {
    let client = standard().await;
    let read = below(&client, "GET", "blobServices/default", Value::Null).await.expect(200);
    assert_eq!(read.body["sku"]["name"], "Standard_LRS");
    let sent = json!({ "properties": { "shareDeleteRetentionPolicy": { "enabled": true, "days": 3 } } });
    let written = below(&client, "PUT", "fileServices/default", sent.clone()).await.expect(200);
    assert_eq!(written.body["properties"], sent["properties"]);
    let read = below(&client, "GET", "fileServices/default", Value::Null).await.expect(200);
    assert_eq!(read.body["properties"]["cors"], json!({ "corsRules": [] }));
    assert_eq!(read.body["properties"]["shareDeleteRetentionPolicy"]["days"], 3);
    for days in [json!(0), json!(366), Value::Null] {
        let policy = json!({ "enabled": true, "days": days });
        let document = json!({ "properties": { "shareDeleteRetentionPolicy": policy } });
        below(&client, "PUT", "fileServices/default", document)
            .await
            .refused(400, "InvalidRequestPropertyValue");
    }
    let files = with_account(Options::default(), of_kind("FileStorage", "Premium_LRS")).await;
    below(&files, "GET", "blobServices/default", Value::Null)
        .await
        .refused(400, "FeatureNotSupportedForAccount");
    below(&files, "PUT", &format!("{CONTAINERS}/c01"), json!({}))
        .await
        .refused(404, "ParentResourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn shares_are_refused_in_azures_words() {
    let standard = standard().await;
    let premium = with_account(Options::default(), of_kind("FileStorage", "Premium_LRS")).await;
    let v2 = with_account(Options::default(), of_kind("FileStorage", "StandardV2_LRS")).await;
    let bad = Some((400, "InvalidHeaderValue", "HTTP headers"));
    for (client, name, properties, expected) in [
        (&standard, "Upper", json!({}), Some((400, "InvalidResourceName", "invalid characters"))),
        (&standard, "a--b", json!({}), Some((400, "InvalidResourceName", "invalid characters"))),
        (&standard, "ab", json!({}), Some((400, "OutOfRangeInput", "length"))),
        (&standard, "big", json!({ "shareQuota": 5_121 }), bad),
        (&standard, "hot", json!({ "accessTier": "Premium" }), bad),
        (&standard, "squash", json!({ "rootSquash": "AllSquash" }), bad),
        (
            &standard,
            "nfs",
            json!({ "enabledProtocols": "NFS" }),
            Some((400, "FeatureNotSupportedForAccount", "NFS")),
        ),
        (&premium, "small", json!({ "shareQuota": 99 }), bad),
        (
            &premium,
            "nfs",
            json!({ "shareQuota": 100, "enabledProtocols": "NFS", "rootSquash": "AllSquash" }),
            None,
        ),
        (
            &premium,
            "nfs",
            json!({ "enabledProtocols": "SMB" }),
            Some((409, "ShareEnabledProtocolsCannotBeChanged", "")),
        ),
        (
            &premium,
            "huge",
            json!({ "shareQuota": 102_400 }),
            Some((409, "TotalSharesProvisionedCapacityExceedsAccountLimit", "account maximum size limit")),
        ),
        (&v2, "small", json!({ "shareQuota": 31 }), bad),
        (&v2, "fits", json!({ "shareQuota": 100 }), None),
    ] {
        let document = json!({ "properties": properties });
        let reply = below(client, "PUT", &format!("{SHARES}/{name}"), document).await;
        check(reply, expected, &name);
    }
    let fits = below(&v2, "GET", &format!("{SHARES}/fits"), Value::Null).await.expect(200);
    let numbers = |reply: &Reply| {
        let properties = &reply.body["properties"];
        (properties["provisionedIops"].clone(), properties["provisionedBandwidthMibps"].clone())
    };
    assert_eq!(numbers(&fits), (json!(1_020), json!(62)));
    let more = json!({ "properties": { "provisionedIops": 2_000 } });
    below(&v2, "PATCH", &format!("{SHARES}/fits"), more).await.expect(200);
    let changed = below(&v2, "GET", &format!("{SHARES}/fits"), Value::Null).await.expect(200);
    assert_eq!(numbers(&changed), (json!(2_000), json!(62)));
    below(&standard, "GET", &format!("{SHARES}/none"), Value::Null).await.refused(404, "ShareNotFound");
    let path = format!("{}/{SHARES}/s01", account("absent"));
    for method in ["GET", "PUT"] {
        let body = if method == "PUT" { json!({}) } else { Value::Null };
        let reply = ask(&standard, method, &path, body).await;
        assert!(reply.message().contains("type 'storageAccounts/fileServices/shares'"), "{}", reply.body);
        reply.refused(404, "ParentResourceNotFound");
    }
}

#[tokio::test(start_paused = true)]
async fn snapshots_go_with_their_share_unless_the_deletion_excludes_them() {
    let client = standard().await;
    let share = format!("{SHARES}/s01");
    below(&client, "PUT", &share, json!({ "properties": { "shareQuota": 1 } })).await.expect(201);
    let body = json!({ "properties": { "metadata": { "initiator": "snap" } } });
    let first = below(&client, "PUT", &format!("{share}?$expand=snapshots"), body).await.expect(201);
    let second = below(&client, "PUT", &format!("{share}?$expand=snapshots"), json!({})).await.expect(201);
    let time = |reply: &Reply| reply.body["properties"]["snapshotTime"].as_str().unwrap().to_owned();
    assert_ne!(time(&first), time(&second), "two within one moment");
    below(&client, "PATCH", &share, json!({ "properties": { "shareQuota": 9 } })).await.expect(200);
    let path = format!("{}/{share}?{V}", account("acct1"));
    let header = time(&first);
    let snapshot = [("x-ms-snapshot", header.as_str())];
    let read = client.send("GET", &path, None, &snapshot).await.expect(200);
    assert_eq!(read.body["properties"]["shareQuota"], 1, "as it was then");
    assert_eq!(read.body["properties"]["metadata"]["initiator"], "snap");
    let listed = below(&client, "GET", &format!("{SHARES}?$expand=snapshots"), Value::Null).await.expect(200);
    assert_eq!(listed.body["value"].as_array().unwrap().len(), 3);
    let plain = below(&client, "GET", SHARES, Value::Null).await.expect(200);
    assert_eq!(plain.body["value"].as_array().unwrap().len(), 1);
    client.send("DELETE", &path, None, &snapshot).await.expect(200);
    client.send("GET", &path, None, &snapshot).await.refused(404, "ShareSnapshotNotFound");
    client.send("DELETE", &path, None, &snapshot).await.refused(404, "ShareSnapshotNotFound");
    below(&client, "DELETE", &format!("{share}?$include=none"), Value::Null)
        .await
        .refused(409, "ShareHasSnapshots");
    below(&client, "DELETE", &share, Value::Null).await.expect(200);
    below(&client, "DELETE", &share, Value::Null).await.expect(204);
    let limits = [("storage.snapshotsPerShare".to_owned(), 1)].into();
    let few =
        with_account(Options { limits, ..Options::default() }, of_kind("StorageV2", "Standard_LRS")).await;
    below(&few, "PUT", &share, json!({})).await.expect(201);
    below(&few, "PUT", &format!("{share}?$expand=snapshots"), json!({})).await.expect(201);
    below(&few, "PUT", &format!("{share}?$expand=snapshots"), json!({}))
        .await
        .refused(409, "ShareSnapshotCountExceeded");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_share_can_be_had_back_for_some_days() {
    let collect = "Microsoft.Storage/storageAccounts/fileServices/shares/collect";
    let latency = LatencyProfile::instant().with("DELETE", collect, Duration::from_secs(30));
    let options = Options { latency, ..Options::default() };
    let client = with_account(options, of_kind("FileStorage", "Premium_LRS")).await;
    let share = format!("{SHARES}/s01");
    let document = json!({ "properties": { "shareQuota": 60_000 } });
    below(&client, "PUT", &share, document.clone()).await.expect(201);
    below(&client, "DELETE", &share, Value::Null).await.expect(200);
    // While it goes, its name is not free; and its size counts as long as it can be had back.
    below(&client, "PUT", &share, document.clone()).await.refused(409, "ShareBeingDeleted");
    tokio::time::sleep(Duration::from_secs(31)).await;
    below(&client, "PUT", &share, document.clone())
        .await
        .refused(409, "TotalSharesProvisionedCapacityExceedsAccountLimit");
    assert_eq!(below(&client, "GET", SHARES, Value::Null).await.body["value"], json!([]));
    let listed = below(&client, "GET", &format!("{SHARES}?$expand=deleted"), Value::Null).await.expect(200);
    let deleted = listed.body["value"][0]["properties"].clone();
    assert_eq!((&deleted["deleted"], &deleted["remainingRetentionDays"]), (&json!(true), &json!(7)));
    let wrong = json!({ "deletedShareName": "s01", "deletedShareVersion": "0" });
    below(&client, "POST", &format!("{share}/restore"), wrong).await.refused(404, "ShareNotFound");
    let right = json!({ "deletedShareName": "s01", "deletedShareVersion": deleted["version"] });
    below(&client, "POST", &format!("{share}/restore"), right.clone()).await.expect(200);
    below(&client, "POST", &format!("{share}/restore"), right).await.refused(409, "ShareAlreadyExists");
    let read = below(&client, "GET", &share, Value::Null).await.expect(200);
    assert_eq!(read.body["properties"]["shareQuota"], 60_000);
    below(&client, "DELETE", &share, Value::Null).await.expect(200);
    tokio::time::sleep(Duration::from_secs(7 * 86_400 + 1)).await;
    let listed = below(&client, "GET", &format!("{SHARES}?$expand=deleted"), Value::Null).await.expect(200);
    assert_eq!(listed.body["value"], json!([]));
    below(&client, "PUT", &share, document).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn lists_have_pages_and_filters() {
    let client = standard().await;
    for name in ["pvc-1", "pvc-2", "pvc-3", "other"] {
        below(&client, "PUT", &format!("{SHARES}/{name}"), json!({})).await.expect(201);
        below(&client, "PUT", &format!("{CONTAINERS}/{name}"), json!({})).await.expect(201);
    }
    for collection in [SHARES, CONTAINERS] {
        let names = |reply: &Reply| {
            let items = reply.body["value"].as_array().unwrap().clone();
            items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let filtered =
            below(&client, "GET", &format!("{collection}?$filter=startswith(name,%20pvc)"), Value::Null)
                .await;
        assert_eq!(names(&filtered.expect(200)), ["pvc-1", "pvc-2", "pvc-3"]);
        let first =
            below(&client, "GET", &format!("{collection}?$maxpagesize=3"), Value::Null).await.expect(200);
        assert_eq!(names(&first), ["other", "pvc-1", "pvc-2"]);
        let next = first.body["nextLink"].as_str().unwrap().to_owned();
        assert_eq!(names(&client.send("GET", &next, None, &[]).await.expect(200)), ["pvc-3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn containers_are_public_only_where_the_account_allows_it() {
    let client = standard().await;
    let container = format!("{CONTAINERS}/c01");
    let public = json!({ "properties": { "publicAccess": "Blob" } });
    below(&client, "PUT", &container, public.clone()).await.refused(409, "PublicAccessNotPermitted");
    let allow = json!({ "properties": { "allowBlobPublicAccess": true } });
    ask(&client, "PATCH", account("acct1").as_str(), allow).await.expect(200);
    below(&client, "PUT", &container, public).await.expect(201);
    below(&client, "GET", &format!("{CONTAINERS}/none"), Value::Null).await.refused(404, "ContainerNotFound");
    below(&client, "DELETE", &container, Value::Null).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn storage_throttles_in_its_own_words() {
    let client = with_account(Options::default(), of_kind("StorageV2", "Standard_LRS")).await;
    let mut refused = None;
    for _ in 0..200 {
        let reply = below(&client, "PUT", &format!("{SHARES}/s01"), json!({})).await;
        if reply.status == 429 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("ten writes a second");
    assert!(refused.header("retry-after").is_some());
    assert!(refused.message().contains("Write_ObservationWindow_00:00:01"), "{}", refused.body);
    refused.refused(429, "TooManyRequests");
}

#[tokio::test(start_paused = true)]
async fn private_endpoints_connect_to_an_account_and_go_again() {
    let client = standard().await;
    let network = network_id("virtualNetworks/net");
    let document = json!({ "location": "eastus", "properties": {
        "addressSpace": { "addressPrefixes": ["10.0.0.0/16"] },
        "subnets": [{ "name": "s", "properties": { "addressPrefix": "10.0.0.0/24" } }],
    }});
    client.put(&network, document).await.expect(201);
    let endpoint = network_id("privateEndpoints/pe");
    let connection = json!({ "name": "c", "properties": {
        "privateLinkServiceId": account("acct1"), "groupIds": ["file"],
    }});
    let document = json!({ "location": "eastus", "properties": {
        "subnet": { "id": network.child("subnets", "s") }, "privateLinkServiceConnections": [connection],
    }});
    client.put(&endpoint, document).await.expect(201);
    let connections =
        |reply: Reply| reply.body["properties"]["privateEndpointConnections"].as_array().unwrap().clone();
    let shown = connections(ask(&client, "GET", account("acct1").as_str(), Value::Null).await);
    assert_eq!(shown[0]["properties"]["privateEndpoint"]["id"], json!(endpoint));
    assert_eq!(shown[0]["properties"]["privateLinkServiceConnectionState"]["actionRequired"], "None");
    let name = shown[0]["name"].as_str().unwrap();
    below(&client, "GET", &format!("privateEndpointConnections/{name}"), Value::Null).await.expect(200);
    let groups = below(&client, "GET", "privateLinkResources", Value::Null).await.expect(200);
    assert!(groups.body["value"].as_array().unwrap().iter().any(|group| group["name"] == "file"));
    client.delete(&endpoint).await;
    assert!(connections(ask(&client, "GET", account("acct1").as_str(), Value::Null).await).is_empty());
}
