//! Long-running operations in all of Azure's ways, and the faults that choose them; how long answers

//! take.

use std::time::Duration;

use crate::common::{Client, Reply, compute_id, group_path, network_id, public_ip, scale_set};
use azure_simulator::{Fault, LatencyProfile, Options, RetryAfterStyle};
use azure_types::ResourceId;
use serde_json::{Value, json};
use tokio::time::Instant;

fn slow(seconds: u64) -> Options {
    let latency = LatencyProfile::instant().with("*", "*", Duration::from_secs(seconds));
    Options { latency, ..Options::default() }
}

/// Declares a fault that strikes once, as a file would.
fn once(client: &Client, method: &str, resource_type: &str, action: Value) {
    let fault = json!({ "method": method, "resourceType": resource_type, "count": 1, "action": action });
    client.azure.inject(serde_json::from_value::<Fault>(fault).unwrap());
}

async fn control(client: &Client, method: &str, path: &str, body: Value) -> Reply {
    let headers = [("content-type", "application/json")];
    client.send(method, &format!("/_cerulean/{path}"), Some(body), &headers).await
}

async fn state(client: &Client, id: &ResourceId) -> String {
    client.get(id).await.body["properties"]["provisioningState"].as_str().unwrap_or("absent").to_owned()
}

#[tokio::test(start_paused = true)]
async fn every_way_of_following_an_operation_leads_to_its_end() {
    let urls = ["azure-asyncoperation", "location"];
    for (name, expected) in [
        ("asyncOperation", [true, false]),
        ("location", [false, true]),
        ("both", [true, true]),
        ("neither", [false, false]),
    ] {
        let client = Client::with_group(slow(20)).await;
        let (ip, subnet) = (network_id("publicIPAddresses/a"), client.network("10.1.0.0/16").await);
        let set = compute_id("virtualMachineScaleSets/s");
        for (id, body) in [(ip, public_ip()), (set, scale_set(1, &subnet, &[]))] {
            once(&client, "PUT", "*", json!({ "do": "operationStyle", "urls": name }));
            let reply = client.put(&id, body).await.expect(201);
            assert_eq!(urls.map(|url| reply.header(url).is_some()), expected, "{name} {id}");
            for url in urls.iter().filter_map(|url| reply.header(url)) {
                let first = client.send("GET", url, None, &[]).await;
                assert_eq!(first.header("retry-after"), Some("10"), "{url}");
                assert!(first.status == 202 || first.body["status"] == "InProgress", "{url}");
            }
            tokio::time::sleep(Duration::from_secs(20)).await;
            for url in urls.iter().filter_map(|url| reply.header(url)) {
                let last = client.send("GET", url, None, &[]).await.expect(200);
                let ended = last.body["status"] == "Succeeded" || last.body["name"] == id.name();
                assert!(ended, "{url} {}", last.body);
            }
            assert_eq!(state(&client, &id).await, "Succeeded");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_say_in_every_way_when_to_ask_again() {
    for (style, on_start, on_poll) in [
        (RetryAfterStyle::Seconds, ("retry-after", "7"), ("retry-after", "7")),
        (
            RetryAfterStyle::HttpDate,
            ("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT"),
            ("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT"),
        ),
        (RetryAfterStyle::Milliseconds, ("retry-after-ms", "7000"), ("retry-after-ms", "7000")),
        (RetryAfterStyle::MsMilliseconds, ("x-ms-retry-after-ms", "7000"), ("x-ms-retry-after-ms", "7000")),
        (RetryAfterStyle::OnPolls, ("retry-after", ""), ("retry-after", "7")),
        (RetryAfterStyle::Absent, ("retry-after", ""), ("retry-after", "")),
    ] {
        let client = Client::with_group(Options { retry_after: style, ..slow(7) }).await;
        let reply = client.put(&network_id("publicIPAddresses/a"), public_ip()).await.expect(201);
        let poll = client.send("GET", reply.header("azure-asyncoperation").unwrap(), None, &[]).await;
        for (reply, (name, value)) in [(&reply, on_start), (&poll, on_poll)] {
            assert_eq!(reply.header(name).unwrap_or_default(), value, "{style:?} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn operations_are_cancelled_stalled_forgotten_and_ended_by_hand() {
    let client = Client::with_group(slow(5)).await;
    let id = network_id("publicIPAddresses/a");

    once(&client, "PUT", "*", json!({ "do": "cancelOperation" }));
    let reply = client.put(&id, public_ip()).await.expect(201);
    let ended = client.wait(&reply).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("Canceled"), &json!("Canceled")));
    assert_eq!(state(&client, &id).await, "Failed");

    once(&client, "PUT", "*", json!({ "do": "forgetOperation" }));
    let reply = client.put(&id, public_ip()).await.expect(200);
    client
        .send("GET", reply.header("azure-asyncoperation").unwrap(), None, &[])
        .await
        .refused(404, "OperationNotFound");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(state(&client, &id).await, "Succeeded");

    for (end, expected) in [
        (json!({ "end": "failed", "code": "OutOfLuck" }), "Failed"),
        (json!({ "end": "succeeded" }), "Succeeded"),
        (json!({ "end": "canceled" }), "Canceled"),
    ] {
        once(&client, "PUT", "*", json!({ "do": "stallOperation" }));
        let mut body = public_ip();
        body["tags"] = json!({ "to": expected });
        let reply = client.put(&id, body).await.expect(200);
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let url = reply.header("azure-asyncoperation").unwrap();
        assert_eq!(client.send("GET", url, None, &[]).await.body["status"], "InProgress");
        let running = control(&client, "GET", "operations?running=true", Value::Null).await.body;
        assert_eq!(running.as_array().map(Vec::len), Some(1), "{running}");
        let mut order = end;
        order["key"] = running[0]["key"].clone();
        control(&client, "POST", "operations", order.clone()).await.expect(204);
        control(&client, "POST", "operations", order).await.refused(404, "OperationNotFound");
        assert_eq!(client.send("GET", url, None, &[]).await.body["status"], expected);
    }
    // What was over long ago cannot be asked for.
    let reply = client.delete(&id).await.expect(202);
    client.wait(&reply).await;
    tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
    client
        .send("GET", reply.header("azure-asyncoperation").unwrap(), None, &[])
        .await
        .refused(404, "OperationNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_leaves_everything_in_place() {
    let client = Client::with_group(slow(5)).await;
    let id = client.public_ip("a").await;
    let group = format!("{}?api-version=2021-04-01", group_path());
    once(&client, "DELETE", "*", json!({ "do": "failOperation", "code": "ResourceGroupDeletionFailed" }));
    let reply = client.send("DELETE", &group, None, &[]).await.expect(202);
    assert_eq!(state(&client, &id).await, "Deleting");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let url = reply.header("location").unwrap();
    client.send("GET", url, None, &[]).await.refused(400, "ResourceGroupDeletionFailed");
    assert_eq!(state(&client, &id).await, "Succeeded");
    let reply = client.delete(&id).await.expect(202);
    client.wait(&reply).await;
    assert_eq!(state(&client, &id).await, "absent");
}

#[tokio::test(start_paused = true)]
async fn an_error_may_come_after_the_work_was_done() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("publicIPAddresses/a");
    once(&client, "PUT", "*", json!({ "do": "failAfter", "status": 504, "code": "GatewayTimeout" }));
    client.put(&id, public_ip()).await.refused(504, "GatewayTimeout");
    client.get(&id).await.expect(200);
    let journal = client.azure.journal();
    let entry = journal.entries.iter().find(|entry| entry.status == 504).unwrap();
    assert_eq!(entry.changes, ["+"]);
    // 429 without a word when to come back.
    once(&client, "GET", "*", json!({ "do": "throttle" }));
    assert_eq!(client.get(&id).await.refused(429, "TooManyRequests").header("retry-after"), None);
}

#[tokio::test(start_paused = true)]
async fn arm_gives_up_on_slow_providers_who_go_on() {
    let client = Client::with_group(slow(5)).await;
    let id = network_id("publicIPAddresses/a");
    once(&client, "PUT", "*", json!({ "do": "delay", "ms": 90_000 }));
    let started = Instant::now();
    let reply = client.put(&id, public_ip()).await.refused(504, "GatewayTimeout");
    assert_eq!(started.elapsed(), Duration::from_secs(60));
    assert_eq!(reply.header("x-ms-failure-cause"), Some("gateway"));
    assert_eq!(state(&client, &id).await, "absent");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(state(&client, &id).await, "Updating");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(state(&client, &id).await, "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn answers_take_their_time_by_verb_and_type() {
    let client = Client::with_group(Options::default()).await;
    let id = client.public_ip("a").await;
    let profile = json!({
        "answers": [
            { "method": "LIST", "resourceType": "*/publicIPAddresses", "ms": 300 },
            { "method": "PUT", "resourceType": "*", "ms": 700 },
        ],
        "answerOtherwiseMs": 50,
    });
    control(&client, "PUT", "latency", profile).await.expect(204);
    let list =
        format!("{}/providers/Microsoft.Network/publicIPAddresses?api-version=2025-05-01", group_path());
    let started = Instant::now();
    client.glance(&id).await.expect(200);
    assert_eq!(started.elapsed(), Duration::from_millis(50));
    client.send("GET", &list, None, &[]).await.expect(200);
    assert_eq!(started.elapsed(), Duration::from_millis(350));
    client.put(&id, public_ip()).await.expect(200);
    assert_eq!(started.elapsed(), Duration::from_millis(1_050));

    control(&client, "PUT", "latency", json!("typical")).await.expect(204);
    let rules = control(&client, "GET", "latency", Value::Null).await.body;
    let sourced = |list: &str| {
        rules[list].as_array().is_some_and(|rules| {
            !rules.is_empty()
                && rules.iter().all(|rule| rule["source"].as_str().is_some_and(|text| !text.is_empty()))
        })
    };
    assert!(sourced("rules") && sourced("answers"));
    control(&client, "PUT", "latency", json!("no such")).await.refused(400, "InvalidParameter");
    control(&client, "PUT", "latency", json!({ "answer": 1 })).await.refused(400, "InvalidRequestContent");
}
