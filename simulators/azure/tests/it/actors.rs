//! Actors: policies, operators, autoscalers and the spot market.

use std::time::Duration;

use azure_simulator::{Actor, ActorAction, Condition, Edit, LatencyProfile, Options, Schedule};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::common::*;

const MINUTE: Duration = Duration::from_secs(60);

fn tag(tags: &[(&str, &str)], replace: bool, after_ms: Option<u64>) -> ActorAction {
    let tags = tags.iter().map(|(tag, value)| ((*tag).to_owned(), (*value).to_owned())).collect();
    ActorAction::Tag { tags, replace, after_ms }
}

fn group(tags: Value) -> Value {
    json!({ "location": "eastus", "tags": tags, "properties": {} })
}

/// The entries that an actor has in the journal: method, status, changes.
fn acts(client: &Client, name: &str) -> Vec<(String, u16, Vec<String>)> {
    let principal = format!("actor:{name}");
    let entries = client.azure.journal().entries;
    entries
        .into_iter()
        .filter(|entry| entry.principal.as_deref() == Some(&principal))
        .map(|entry| (entry.method, entry.status, entry.changes))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_policy_adds_tags_to_the_very_write() {
    let client = Client::with_group(Options::default()).await;
    let policy = tag(&[("owner", "platform"), ("seen", "{now}")], false, None);
    client.azure.set_actor(Actor::new("tagger", policy).on_type("*/networkSecurityGroups"));
    let id = network_id("networkSecurityGroups/nsg");
    let made = client.create(&id, group(json!({ "Owner": "shop" }))).await;
    assert_eq!(made["tags"]["Owner"], "shop", "a tag that is there stays: {made}");
    let seen = made["tags"]["seen"].as_str().unwrap().to_owned();
    assert!(seen.starts_with("2026-01-01T00:00:0"), "{seen}");
    sleep(MINUTE).await;
    let again = client.create(&id, group(json!({}))).await;
    assert_eq!(again["tags"]["owner"], "platform");
    assert_ne!(again["tags"]["seen"], seen.as_str());
    let other = client.create(&network_id("routeTables/table"), group(json!({ "a": "b" }))).await;
    assert_eq!(other["tags"], json!({ "a": "b" }), "another type");

    client.azure.set_actor(Actor::new("tagger", tag(&[("owner", "platform")], true, None)));
    let body = json!({ "location": "eastus", "tags": { "a": "b" } });
    let path = format!("{}2?api-version=2021-04-01", group_path());
    let made = client.send("PUT", &path, Some(body), &[]).await.expect(201);
    assert_eq!(made.body["tags"], json!({ "a": "b", "owner": "platform" }), "groups are resources too");
    let made = client.create(&id, group(json!({ "Owner": "shop" }))).await;
    assert_eq!(made["tags"], json!({ "Owner": "platform" }), "in the spelling that it has");
    assert!(acts(&client, "tagger").is_empty(), "no request of its own");
}

#[tokio::test(start_paused = true)]
async fn a_late_policy_writes_tags_behind_everybodys_back() {
    let options = Options {
        latency: LatencyProfile::instant().with("*", "*", Duration::from_secs(20)),
        ..Options::default()
    };
    let client = Client::with_group(options).await;
    let policy = tag(&[("seen", "{now}")], true, Some(5_000));
    client.azure.set_actor(Actor::new("late", policy).on_resource("nsg"));
    let id = network_id("networkSecurityGroups/nsg");
    let made = client.put(&id, group(json!({ "a": "b" }))).await.expect(201);
    assert_eq!(made.body["tags"], json!({ "a": "b" }));
    sleep(MINUTE).await;
    let found = client.get(&id).await.expect(200);
    assert_eq!(found.body["tags"]["a"], "b");
    assert_ne!(found.etag(), made.etag());
    let acts = acts(&client, "late");
    let (_, status, changes) = acts.last().unwrap();
    assert_eq!((*status, changes.as_slice()), (200, &["+tags/seen".to_owned()][..]));
    // Its own write does not trigger it again.
    sleep(10 * MINUTE).await;
    assert_eq!(client.get(&id).await.etag(), found.etag());
    assert_eq!(self::acts(&client, "late").len(), acts.len());
}

#[tokio::test(start_paused = true)]
async fn a_policy_denies_what_fits_its_conditions() {
    let client = Client::with_group(Options::default()).await;
    let when = |path: &str, equals: Option<Value>, exists: Option<bool>| Condition {
        path: path.into(),
        equals,
        exists,
    };
    client.azure.set_actors(vec![
        Actor::new(
            "no-open-ssh",
            ActorAction::Deny {
                when: vec![
                    when("properties/securityRules/*/properties/access", Some(json!("allow")), None),
                    when(
                        "properties/securityRules/*/properties/destinationPortRange",
                        Some(json!("22")),
                        None,
                    ),
                ],
            },
        ),
        Actor::new("owned", ActorAction::Deny { when: vec![when("tags/owner", None, Some(false))] })
            .on_type("Microsoft.Network/publicIPAddresses"),
    ]);
    let id = network_id("networkSecurityGroups/nsg");
    let rule = |port: &str| {
        json!({ "location": "eastus", "properties": { "securityRules": [{ "name": "r", "properties": {
        "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourceAddressPrefix": "*",
        "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": port } }] } })
    };
    let refused = client.put(&id, rule("22")).await.refused(403, "RequestDisallowedByPolicy");
    assert!(refused.message().contains("policyAssignments/no-open-ssh"), "{}", refused.message());
    client.get(&id).await.expect(404);
    client.put(&id, rule("443")).await.expect(201);
    let child = id.child("securityRules", "ssh");
    let body = rule("22")["properties"]["securityRules"][0].clone();
    client.put(&child, body).await.refused(403, "RequestDisallowedByPolicy");

    let public = network_id("publicIPAddresses/p");
    client.put(&public, public_ip()).await.refused(403, "RequestDisallowedByPolicy");
    client.azure.remove_actor("owned");
    client.put(&public, public_ip()).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn an_operator_edits_on_time_however_seldom_anybody_looks() {
    let histories = [1, 45].map(|looks| async move {
        let client = Client::with_group(Options::default()).await;
        let id = network_id("networkSecurityGroups/nsg");
        client.create(&id, group(json!({}))).await;
        let rule = json!({ "properties": { "priority": "1{count}0", "direction": "Inbound", "access": "Deny",
            "protocol": "*", "sourceAddressPrefix": "*", "sourcePortRange": "*",
            "destinationAddressPrefix": "*", "destinationPortRange": "9{count}" } });
        let edit = Edit::setting("properties/securityRules/foreign-{count}", rule);
        let operator = Actor::new("operator", ActorAction::Edit { edit })
            .on_type("Microsoft.Network/networkSecurityGroups")
            .every(10 * MINUTE)
            .times(4);
        client.azure.set_actor(operator);
        for _ in 0..looks {
            sleep(90 * MINUTE / looks).await;
            client.azure.running_operations();
        }
        let rules = client.get(&id).await.body["properties"]["securityRules"].clone();
        let names: Vec<&str> =
            rules.as_array().unwrap().iter().map(|rule| rule["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["foreign-1", "foreign-2", "foreign-3", "foreign-4"]);
        let entries = client.azure.journal().entries;
        let by_actor: Vec<_> = entries.into_iter().filter(|entry| entry.principal.is_some()).collect();
        let minutes: Vec<i64> = by_actor
            .iter()
            .map(|entry| (entry.time.as_second() - Options::default().start.as_second()) / 60)
            .collect();
        assert_eq!(minutes, [10, 20, 30, 40]);
        let counts = client.azure.journal().counts;
        assert_eq!(counts.writes, 2, "counts are of what clients ask");
        serde_json::to_string(&by_actor).unwrap()
    });
    let [seldom, often] = histories;
    assert_eq!(seldom.await, often.await);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_keeps_its_schedule_and_its_bounds() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let id = compute_id("virtualMachineScaleSets/pool");
    client.create(&id, scale_set(2, &subnet, &[])).await;
    let scaler = |capacities: &[u64]| Actor {
        schedule: Some(Schedule { every_ms: 60_000, first_ms: Some(0), ..Schedule::default() }),
        ..Actor::new("scaler", ActorAction::Scale { min: 1, max: 4, capacities: capacities.to_vec() })
    };
    client.azure.set_actor(scaler(&[3, 9, 0]));
    let mut seen = Vec::new();
    for _ in 0..4 {
        sleep(Duration::from_secs(1)).await;
        seen.push(client.get(&id).await.body["sku"]["capacity"].as_u64().unwrap());
        sleep(Duration::from_secs(59)).await;
    }
    assert_eq!(seen, [3, 4, 1, 3]);
    client.azure.set_actor(scaler(&[]));
    let mut drawn = std::collections::BTreeSet::new();
    for _ in 0..40 {
        sleep(MINUTE).await;
        drawn.insert(client.get(&id).await.body["sku"]["capacity"].as_u64().unwrap());
    }
    assert_eq!(drawn, std::collections::BTreeSet::from([1, 2, 3, 4]));
    let instances =
        client.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
    assert_eq!(instances.len() as u64, client.get(&id).await.body["sku"]["capacity"].as_u64().unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_spot_market_takes_spot_machines_by_their_policy() {
    for (policy, left) in [("Deallocate", 4), ("Delete", 2)] {
        let client = Client::with_group(Options::default()).await;
        let subnet = client.network("10.1.0.0/16").await;
        let id = compute_id("virtualMachineScaleSets/spot");
        let mut body = scale_set(4, &subnet, &[]);
        body["properties"]["virtualMachineProfile"]["priority"] = json!("Spot");
        body["properties"]["virtualMachineProfile"]["evictionPolicy"] = json!(policy);
        client.create(&id, body).await;
        let regular = compute_id("virtualMachineScaleSets/regular");
        client.create(&regular, scale_set(2, &subnet, &[])).await;
        client.azure.set_actor(
            Actor::new("market", ActorAction::Evict { share: 0.5, notice_seconds: 0 })
                .on_type("Microsoft.Compute/virtualMachineScaleSets")
                .every(MINUTE)
                .times(1),
        );
        sleep(2 * MINUTE).await;
        let of = |set: &azure_types::ResourceId| {
            let kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
            let mut all = client.azure.documents_of_type(kind);
            all.retain(|document| document["id"].as_str().unwrap().starts_with(&format!("{set}/")));
            all
        };
        assert_eq!(of(&id).len(), left, "{policy}");
        assert_eq!(of(&regular).len(), 2);
        let running =
            of(&id).iter().filter(|document| document.to_string().contains("PowerState/running")).count();
        assert_eq!(running, 2, "{policy}");
        assert_eq!(acts(&client, "market").len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn spot_machines_are_told_that_they_go() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let id = compute_id("virtualMachineScaleSets/spot");
    let mut body = scale_set(2, &subnet, &[]);
    body["properties"]["virtualMachineProfile"]["priority"] = json!("Spot");
    body["properties"]["virtualMachineProfile"]["evictionPolicy"] = json!("Delete");
    client.create(&id, body).await;
    let kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
    let market = ActorAction::Evict { share: 1.0, notice_seconds: 30 };
    client.azure.set_actor(Actor::new("market", market).every(MINUTE / 6));
    sleep(MINUTE / 5).await;
    let told = client.send("GET", "/_cerulean/scheduled-events", None, &[]).await.expect(200).body;
    let planned = told.as_array().unwrap();
    assert_eq!(planned.len(), 2, "each machine hears of it once: {told}");
    assert!(planned.iter().all(|event| event["plan"]["eventType"] == "Preempt"), "{told}");
    assert_eq!(client.azure.documents_of_type(kind).len(), 2, "no machine is gone yet");
    sleep(MINUTE).await;
    assert_eq!(client.azure.documents_of_type(kind).len(), 0);
    let by_platform =
        client.azure.journal().entries.into_iter().filter(|one| one.principal.as_deref() == Some("platform"));
    assert_eq!(by_platform.count(), 2, "the journal says who did it");
}

#[tokio::test(start_paused = true)]
async fn the_spot_market_takes_single_machines_too() {
    for policy in ["Deallocate", "Delete"] {
        let client = Client::with_group(Options::default()).await;
        let subnet = client.network("10.1.0.0/16").await;
        let mut ids = Vec::new();
        for (name, priority) in [("spot", "Spot"), ("regular", "Regular")] {
            let (nic, id) = (
                network_id(&format!("networkInterfaces/{name}")),
                compute_id(&format!("virtualMachines/{name}")),
            );
            let configuration = json!({ "name": "c", "properties": { "subnet": { "id": subnet } } });
            let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [configuration] } });
            client.put(&nic, body).await.expect(201);
            let mut body = machine(&nic);
            body["properties"]["priority"] = json!(priority);
            body["properties"]["evictionPolicy"] =
                if priority == "Spot" { json!(policy) } else { Value::Null };
            client.create(&id, body).await;
            ids.push(id);
        }
        client.azure.set_actor(
            Actor::new("market", ActorAction::Evict { share: 1.0, notice_seconds: 0 }).every(MINUTE),
        );
        sleep(5 * MINUTE).await;
        let running = |reply: Reply| reply.body.to_string().contains("PowerState/running");
        let read = async |id: &azure_types::ResourceId| {
            client.send("GET", &format!("{id}/instanceView?api-version={COMPUTE_VERSION}"), None, &[]).await
        };
        assert!(running(read(&ids[1]).await), "{policy}");
        assert!(!running(read(&ids[0]).await), "{policy}");
        assert_eq!(client.get(&ids[0]).await.status, if policy == "Delete" { 404 } else { 200 });
        assert_eq!(acts(&client, "market").len(), 1, "{policy}: who is off is let alone");
    }
}

#[tokio::test(start_paused = true)]
async fn actors_are_declared_listed_and_sent_away_over_http() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("networkSecurityGroups/nsg");
    client.create(&id, group(json!({ "a": "b" }))).await;
    let path = "/_cerulean/actors";
    let declared = json!([
        { "name": "vandal", "on": { "resource": "nsg" }, "schedule": { "everyMs": 1000 },
          "action": { "do": "edit", "edit": { "remove": ["tags/a"] } } },
        { "name": "stamp", "action": { "do": "tag", "tags": { "c": "d" }, "afterMs": 2000 } },
    ]);
    let headers = [("content-type", "application/json")];
    client.send("POST", path, Some(declared), &headers).await.expect(201);
    let unknown = json!({ "name": "x", "action": { "do": "dance" } });
    client.send("POST", path, Some(unknown), &headers).await.expect(400);
    let listed = client.send("GET", path, None, &[]).await.expect(200);
    assert_eq!(listed.body[0]["action"]["edit"]["remove"], json!(["tags/a"]));
    // Subscribers are notified without a request.
    let mut watch = client.azure.subscribe();
    watch.mark_unchanged();
    tokio::time::timeout(Duration::from_secs(5), watch.changed()).await.unwrap().unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(client.get(&id).await.body["tags"], json!({ "c": "d" }));

    client.send("DELETE", &format!("{path}/vandal"), None, &[]).await.expect(204);
    client.send("DELETE", &format!("{path}/vandal"), None, &[]).await.expect(404);
    assert_eq!(client.azure.actors().len(), 1);
    client.send("DELETE", path, None, &[]).await.expect(204);
    assert!(client.azure.actors().is_empty());
}

#[tokio::test(start_paused = true)]
async fn actors_are_part_of_a_saved_state() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let id = compute_id("virtualMachineScaleSets/pool");
    client.create(&id, scale_set(1, &subnet, &[])).await;
    let scale = ActorAction::Scale { min: 1, max: 9, capacities: vec![5, 7] };
    client.azure.set_actor(Actor::new("scaler", scale).every(10 * MINUTE));
    sleep(15 * MINUTE).await;
    let saved = client.azure.save().unwrap();
    let other = Client::new(Options::default());
    other.azure.restore(saved).unwrap();
    let capacity = |body: Value| body["sku"]["capacity"].as_u64().unwrap();
    assert_eq!(capacity(other.get(&id).await.body), 5);
    sleep(4 * MINUTE).await;
    assert_eq!(capacity(other.get(&id).await.body), 5);
    sleep(2 * MINUTE).await;
    assert_eq!(capacity(other.get(&id).await.body), 7);
}
