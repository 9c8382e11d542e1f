//! Zones, private and public, what is in them, and who keeps names there.

use crate::common::*;
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

const V: &str = "api-version=2024-06-01";
const PUBLIC: &str = "api-version=2018-05-01";

fn zone(name: &str) -> ResourceId {
    network_id(&format!("privateDnsZones/{name}"))
}

async fn ask(client: &Client, method: &str, id: impl std::fmt::Display, body: Value) -> Reply {
    let body = (!body.is_null()).then_some(body);
    client.send(method, &format!("{id}?{V}"), body, &[]).await
}

fn global() -> Value {
    json!({ "location": "global" })
}

async fn with_zone(name: &str) -> (Client, ResourceId) {
    let client = Client::with_group(Options::default()).await;
    let made = ask(&client, "PUT", zone(name), global()).await.expect(202);
    client.wait(&made).await;
    (client, zone(name))
}

#[tokio::test(start_paused = true)]
async fn a_zone_is_made_by_an_operation_and_has_its_authority() {
    let client = Client::with_group(Options::default()).await;
    let id = zone("Corp.Local");
    let made = ask(&client, "PUT", &id, global()).await.expect(202);
    assert_eq!(made.body, json!({}));
    let url = made.header("azure-asyncoperation").unwrap();
    assert!(
        url.contains("/resourceGroups/rg/providers/Microsoft.Network/privateDnsOperationStatuses/RnJvbnRF")
    );
    assert!(made.header("location").unwrap().contains("/privateDnsOperationResults/"));
    assert_eq!(client.wait(&made).await["status"], "Succeeded");
    let read = ask(&client, "GET", &id, Value::Null).await.expect(200);
    assert_eq!(read.body["name"], "corp.local");
    assert!(read.header("etag").is_some_and(|etag| !etag.contains('"')), "{:?}", read.header("etag"));
    assert_eq!(read.body["properties"]["numberOfRecordSets"], 1);
    assert_eq!(read.body["properties"]["maxNumberOfVirtualNetworkLinks"], 1_000);
    let soa = ask(&client, "GET", id.child("SOA", "@"), Value::Null).await.expect(200).body;
    assert_eq!(soa["properties"]["fqdn"], "corp.local.");
    assert_eq!(soa["properties"]["soaRecord"]["host"], "azureprivatedns.net");
    // A key of another Azure that says what was done means the last of its kind.
    let key = "RnJvbnRFbmRBc3luY09wZXJhdGlvbjtVcHNlcnRQcml2YXRlRG5zWm9uZTthXw==";
    let foreign =
        format!("{}/providers/Microsoft.Network/privateDnsOperationStatuses/{key}?{V}", group_path());
    assert_eq!(client.send("GET", &foreign, None, &[]).await.expect(200).body["status"], "Succeeded");
    for (name, refused) in [
        ("local", Some((400, "InvalidResourceName", "local"))),
        ("a..b", Some((400, "InvalidResourceName", ""))),
        ("privatelink.azurecr.io", None),
    ] {
        check(ask(&client, "PUT", zone(name), global()).await, refused, &name);
    }
    let regional = json!({ "location": "eastus" });
    ask(&client, "PUT", zone("a.b"), regional).await.refused(400, "LocationNotAvailableForResourceType");
    let none_match = [("if-none-match", "*")];
    let again = client.send("PUT", &format!("{id}?{V}"), Some(global()), &none_match).await;
    again.refused(412, "PreconditionFailed");
    let gone = ask(&client, "DELETE", &id, Value::Null).await.expect(202);
    client.wait(&gone).await;
    ask(&client, "GET", &id, Value::Null).await.refused(404, "ResourceNotFound");
    ask(&client, "GET", id.child("SOA", "@"), Value::Null).await.refused(404, "ResourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn record_sets_hold_what_their_type_says() {
    let (client, zone) = with_zone("corp.local").await;
    let bad = |words: &'static str| Some((400, "BadRequest", words));
    let a = |address: &str| json!({ "ttl": 300, "aRecords": [{ "ipv4Address": address }] });
    for (kind, name, properties, refused) in [
        ("A", "www", a("10.0.0.4"), None),
        ("a", "@", a("10.0.0.4"), None),
        ("A", "*", a("10.0.0.4"), None),
        ("A", "Bad", a("10.0.0"), bad("ipv4Address")),
        ("A", "bad", json!({ "aRecords": [] }), bad("TTL")),
        ("A", "bad", json!({ "ttl": 0 }), bad("TTL")),
        ("A", "a_b", a("::1"), bad("ipv4Address")),
        (
            "A",
            "two",
            json!({ "ttl": 5, "aRecords": [{ "ipv4Address": "1.1.1.1" }, { "ipv4Address": "1.1.1.1" }] }),
            bad("twice"),
        ),
        (
            "A",
            "many",
            json!({ "ttl": 5, "aRecords": vec![json!({ "ipv4Address": "1.1.1.1" }); 21] }),
            Some((400, "RecordSetLimitExceeded", "20")),
        ),
        ("A", "not..so", a("1.1.1.1"), Some((400, "InvalidResourceName", ""))),
        ("AAAA", "www", json!({ "TTL": 300, "AAAARECORDS": [{ "ipv6Address": "fd00::4" }] }), None),
        (
            "AAAA",
            "v6",
            json!({ "ttl": 300, "aaaaRecords": [{ "ipv6Address": "1.2.3.4" }] }),
            bad("ipv6Address"),
        ),
        ("CNAME", "alias", json!({ "ttl": 300, "cnameRecord": { "cname": "www.corp.local" } }), None),
        (
            "CNAME",
            "www",
            json!({ "ttl": 300, "cnameRecord": { "cname": "x.y" } }),
            Some((400, "Conflict", "alone")),
        ),
        ("A", "alias", a("10.0.0.4"), Some((400, "Conflict", "alone"))),
        ("CNAME", "none", json!({ "ttl": 300 }), bad("cnameRecord")),
        (
            "MX",
            "@",
            json!({ "ttl": 300, "mxRecords": [{ "preference": 5, "exchange": "mail.corp.local" }] }),
            None,
        ),
        (
            "MX",
            "x",
            json!({ "ttl": 300, "mxRecords": [{ "preference": 70_000, "exchange": "m.l" }] }),
            bad("preference"),
        ),
        ("PTR", "4.0", json!({ "ttl": 300, "ptrRecords": [{ "ptrdname": "www.corp.local" }] }), None),
        (
            "SRV",
            "_sip._tcp",
            json!({ "ttl": 300, "srvRecords": [
            { "priority": 1, "weight": 2, "port": 443, "target": "www.corp.local" }] }),
            None,
        ),
        ("TXT", "@", json!({ "ttl": 300, "txtRecords": [{ "value": ["a b", "c"] }] }), None),
        ("TXT", "x", json!({ "ttl": 300, "txtRecords": [{ "value": ["x".repeat(256)] }] }), bad("value")),
        ("SOA", "other", json!({ "ttl": 300, "soaRecord": {} }), bad("made with its zone")),
        ("SOA", "@", json!({ "ttl": 300, "soaRecord": { "refreshTime": 60, "host": "mine" } }), None),
        ("NS", "@", json!({ "ttl": 300 }), Some((404, "InvalidResourceType", ""))),
    ] {
        let what = format!("{kind} {name} {properties}");
        let body = json!({ "properties": properties });
        check(ask(&client, "PUT", zone.child(kind, name), body).await, refused, &what);
    }
    let soa = ask(&client, "GET", zone.child("SOA", "@"), Value::Null).await.body;
    assert_eq!(soa["properties"]["soaRecord"]["refreshTime"], 60);
    assert_eq!(soa["properties"]["soaRecord"]["host"], "azureprivatedns.net");
    ask(&client, "DELETE", zone.child("SOA", "@"), Value::Null).await.refused(400, "BadRequest");
    let www = ask(&client, "GET", zone.child("A", "www"), Value::Null).await.expect(200).body;
    assert_eq!(www["type"], "Microsoft.Network/privateDnsZones/A");
    assert_eq!(
        (&www["properties"]["fqdn"], &www["properties"]["isAutoRegistered"]),
        (&json!("www.corp.local."), &json!(false))
    );
    let of_type = ask(&client, "GET", format!("{zone}/A"), Value::Null).await.expect(200).body;
    assert_eq!(of_type["value"].as_array().map(Vec::len), Some(3));
    let all = ask(&client, "GET", format!("{zone}/ALL"), Value::Null).await.expect(200).body;
    assert_eq!(all["value"].as_array().map(Vec::len), Some(10));
    let named =
        client.send("GET", &format!("{zone}/ALL?{V}&$recordsetnamesuffix=WW"), None, &[]).await.expect(200);
    assert_eq!(named.body["value"].as_array().map(Vec::len), Some(2));
    assert_eq!(ask(&client, "GET", &zone, Value::Null).await.body["properties"]["numberOfRecordSets"], 10);
    // Conditions and changes.
    let path = format!("{}?{V}", zone.child("A", "www"));
    let body = json!({ "properties": a("10.0.0.5") });
    client
        .send("PUT", &path, Some(body.clone()), &[("if-none-match", "*")])
        .await
        .refused(412, "PreconditionFailed");
    client
        .send("PUT", &path, Some(body.clone()), &[("if-match", "other")])
        .await
        .refused(412, "PreconditionFailed");
    let etag = www["etag"].as_str().unwrap();
    let changed = client.send("PUT", &path, Some(body), &[("if-match", etag)]).await.expect(200);
    assert_ne!(changed.body["etag"], www["etag"]);
    let patch = json!({ "properties": { "metadata": { "a": "b" } } });
    let patched = client.send("PATCH", &path, Some(patch), &[]).await.expect(200).body;
    assert_eq!(
        (&patched["properties"]["ttl"], &patched["properties"]["metadata"]["a"]),
        (&json!(300), &json!("b"))
    );
    client.send("DELETE", &path, None, &[]).await.expect(200);
    client.send("DELETE", &path, None, &[]).await.expect(204);
}

#[tokio::test(start_paused = true)]
async fn a_network_is_linked_to_a_zone_once_and_registers_in_one() {
    let (client, corp) = with_zone("corp.local").await;
    let other = zone("other.local");
    let link_zone = zone("privatelink.azurecr.io");
    for id in [&other, &link_zone] {
        let made = ask(&client, "PUT", id, global()).await.expect(202);
        client.wait(&made).await;
    }
    let subnet = client.network("10.1.0.0/16").await;
    let network = subnet.parent().unwrap();
    let link = |network: &ResourceId, registers: bool| {
        json!({ "location": "global", "properties": {
            "virtualNetwork": { "id": network }, "registrationEnabled": registers,
        }})
    };
    let links = "virtualNetworkLinks";
    let conflict = |words: &'static str| Some((409, "Conflict", words));
    for (id, body, refused) in [
        (corp.child(links, "One"), link(&network, true), None),
        (corp.child(links, "two"), link(&network, false), conflict("already linked")),
        (other.child(links, "one"), link(&network, true), conflict("registers its machines")),
        (other.child(links, "one"), link(&network, false), None),
        (link_zone.child(links, "one"), link(&network, false), None),
        (
            other.child(links, "two"),
            link(&network_id("virtualNetworks/none"), false),
            Some((400, "InvalidResourceReference", "")),
        ),
        (other.child(links, "two"), global(), Some((400, "BadRequest", "no virtual network"))),
        (
            zone("none.local").child(links, "one"),
            link(&network, false),
            Some((404, "ParentResourceNotFound", "")),
        ),
    ] {
        let reply = ask(&client, "PUT", &id, body).await;
        if reply.status == 202 {
            assert_eq!(client.wait(&reply).await["status"], "Succeeded");
        }
        check(reply, refused, &id);
    }
    let read = ask(&client, "GET", corp.child(links, "one"), Value::Null).await.expect(200);
    assert!(read.header("etag").unwrap().starts_with('"'));
    assert_eq!(read.body["name"], "one");
    assert_eq!(read.body["properties"]["virtualNetworkLinkState"], "Completed");
    assert!(read.body["properties"].get("resolutionPolicy").is_none());
    let private = ask(&client, "GET", link_zone.child(links, "one"), Value::Null).await.expect(200).body;
    assert_eq!(private["properties"]["resolutionPolicy"], "Default");
    let shown = ask(&client, "GET", &corp, Value::Null).await.body;
    assert_eq!(shown["properties"]["numberOfVirtualNetworkLinksWithRegistration"], 1);
    let refused = ask(&client, "DELETE", &corp, Value::Null).await.refused(409, "CannotDeleteResource");
    assert!(refused.message().contains("/virtualNetworkLinks/One'"), "{}", refused.message());
    // The links go with the network.
    let gone = client.delete(&network).await.expect(202);
    client.wait(&gone).await;
    ask(&client, "GET", corp.child(links, "one"), Value::Null).await.refused(404, "ResourceNotFound");
    ask(&client, "DELETE", &corp, Value::Null).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn a_network_has_one_zone_of_a_name() {
    let (client, corp) = with_zone("corp.local").await;
    let elsewhere = group_path().replace("/resourceGroups/rg", "/resourceGroups/elsewhere");
    let body = json!({ "location": "eastus" });
    client.send("PUT", &format!("{elsewhere}?api-version=2021-04-01"), Some(body), &[]).await.expect(201);
    let same: ResourceId =
        corp.as_str().replace("/resourceGroups/rg", "/resourceGroups/elsewhere").parse().unwrap();
    let made = ask(&client, "PUT", &same, global()).await.expect(202);
    client.wait(&made).await;
    let network = client.network("10.1.0.0/16").await.parent().unwrap();
    let link = json!({ "location": "global", "properties": { "virtualNetwork": { "id": network } } });
    let made = ask(&client, "PUT", corp.child("virtualNetworkLinks", "one"), link.clone()).await.expect(202);
    client.wait(&made).await;
    let refused = ask(&client, "PUT", same.child("virtualNetworkLinks", "two"), link).await;
    assert!(refused.refused(400, "BadRequest").message().contains("overlapping namespaces"));
}

#[tokio::test(start_paused = true)]
async fn an_endpoints_zone_group_keeps_its_names() {
    let (client, zone) = with_zone("privatelink.vaultcore.azure.net").await;
    let subnet = client.network("10.1.0.0/16").await;
    let vault = format!("{}/providers/Microsoft.KeyVault/vaults/kv1", group_path());
    let body = json!({ "location": "eastus", "properties": {
        "tenantId": "00000000-0000-0000-0000-00000000000a", "sku": { "family": "A", "name": "standard" }, "accessPolicies": [] }});
    client.send("PUT", &format!("{vault}?api-version=2024-11-01"), Some(body), &[]).await.expect(200);
    let endpoint = network_id("privateEndpoints/pe");
    let body = json!({ "location": "eastus", "properties": { "subnet": { "id": subnet },
        "privateLinkServiceConnections": [{ "name": "c", "properties": {
            "privateLinkServiceId": vault, "groupIds": ["vault"] }}]}});
    let made = client.create(&endpoint, body).await;
    let address = made["properties"]["customDnsConfigs"][0]["ipAddresses"][0].clone();
    // The vault shows who is connected, and decides.
    let seen =
        client.send("GET", &format!("{vault}?api-version=2024-11-01"), None, &[]).await.expect(200).body;
    let connection = &seen["properties"]["privateEndpointConnections"][0];
    assert_eq!(connection["properties"]["privateEndpoint"]["id"], json!(endpoint));
    let url = format!("{}?api-version=2024-11-01", connection["id"].as_str().unwrap());
    let reject = json!({ "properties": { "privateLinkServiceConnectionState": { "status": "Rejected" } } });
    let rejected = client.send("PUT", &url, Some(reject), &[]).await.expect(200).body;
    assert_eq!(rejected["properties"]["privateLinkServiceConnectionState"]["status"], "Rejected");
    let approve = json!({ "properties": { "privateLinkServiceConnectionState": { "status": "Approved" } } });
    client.send("PUT", &url, Some(approve), &[]).await.expect(200);

    let group = endpoint.child("privateDnsZoneGroups", "default");
    let config = |name: &str, zone: &ResourceId| {
        json!({ "properties": { "privateDnsZoneConfigs": [
            { "name": name, "properties": { "privateDnsZoneId": zone } }] }})
    };
    client.get(&group).await.refused(404, "NotFound");
    let absent = network_id("privateDnsZones/not.there");
    client.put(&group, config("vault", &absent)).await.refused(400, "InvalidResourceReference");
    let made = client.create(&group, config("vault", &zone)).await;
    let shown = &made["properties"]["privateDnsZoneConfigs"][0];
    assert_eq!(
        shown["type"],
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/privateDnsZoneConfigs"
    );
    assert_eq!(
        shown["properties"]["recordSets"],
        json!([{ "recordType": "A", "recordSetName": "kv1", "fqdn": "kv1.privatelink.vaultcore.azure.net", "ttl": 10,
            "provisioningState": "Succeeded", "ipAddresses": [address] }])
    );
    let record = ask(&client, "GET", zone.child("A", "kv1"), Value::Null).await.expect(200).body;
    assert_eq!(record["properties"]["aRecords"], json!([{ "ipv4Address": address }]));
    let second = endpoint.child("privateDnsZoneGroups", "second");
    client.put(&second, config("vault", &zone)).await.refused(400, "PrivateDnsZoneGroupLimitReached");
    let gone = client.delete(&group).await.expect(202);
    client.wait(&gone).await;
    ask(&client, "GET", zone.child("A", "kv1"), Value::Null).await.refused(404, "ResourceNotFound");
    client.create(&group, config("vault", &zone)).await;
    let gone = client.delete(&endpoint).await.expect(202);
    client.wait(&gone).await;
    ask(&client, "GET", zone.child("A", "kv1"), Value::Null).await.refused(404, "ResourceNotFound");
    let alone = client.send("GET", &format!("{vault}?api-version=2024-11-01"), None, &[]).await.body;
    assert!(alone["properties"].get("privateEndpointConnections").is_none());
}

#[tokio::test(start_paused = true)]
async fn public_zones_have_name_servers_and_the_same_records() {
    let client = Client::with_group(Options::default()).await;
    let zone = network_id("dnsZones/example.com");
    let ask = async |method: &str, id: String, body: Value| {
        let body = (!body.is_null()).then_some(body);
        client.send(method, &format!("{id}?{PUBLIC}"), body, &[]).await
    };
    let made = ask("PUT", zone.to_string(), global()).await.expect(201).body;
    assert_eq!(made["properties"]["numberOfRecordSets"], 2);
    assert_eq!(made["properties"]["nameServers"].as_array().map(Vec::len), Some(4));
    let servers = ask("GET", zone.child("NS", "@").to_string(), Value::Null).await.expect(200).body;
    assert_eq!(servers["properties"]["TTL"], 172_800);
    let mut more = servers["properties"]["NSRecords"].as_array().unwrap().clone();
    let without = json!({ "properties": { "TTL": 60, "NSRecords": more.split_first().unwrap().1 } });
    ask("PUT", zone.child("NS", "@").to_string(), without).await.refused(400, "BadRequest");
    more.push(json!({ "nsdname": "ns.example.net" }));
    let body = json!({ "properties": { "TTL": 60, "NSRecords": more } });
    ask("PUT", zone.child("NS", "@").to_string(), body).await.expect(200);
    for (kind, name, properties, status) in [
        ("A", "www", json!({ "TTL": 60, "ARecords": [{ "ipv4Address": "1.2.3.4" }] }), 201),
        (
            "CAA",
            "@",
            json!({ "TTL": 60, "caaRecords": [{ "flags": 0, "tag": "issue", "value": "ca.example" }] }),
            201,
        ),
        (
            "CAA",
            "x",
            json!({ "TTL": 60, "caaRecords": [{ "flags": 256, "tag": "issue", "value": "ca" }] }),
            400,
        ),
        ("NS", "child", json!({ "TTL": 60, "NSRecords": [{ "nsdname": "ns.child.example.com." }] }), 201),
    ] {
        let reply = ask("PUT", zone.child(kind, name).to_string(), json!({ "properties": properties })).await;
        assert_eq!(reply.status, status, "{kind} {name}: {}", reply.body);
    }
    let all = ask("GET", format!("{zone}/recordsets"), Value::Null).await.expect(200).body;
    assert_eq!(all["value"].as_array().map(Vec::len), Some(5));
    let gone = ask("DELETE", zone.to_string(), Value::Null).await.expect(202);
    client.wait(&gone).await;
    ask("GET", zone.to_string(), Value::Null).await.refused(404, "ResourceNotFound");
}
