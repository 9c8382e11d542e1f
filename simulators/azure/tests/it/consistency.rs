//! Reads that lag behind writes: never further than the bound, the same with the same seed, and never in

//! the way of writes.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{Client, group_path, network_id, public_ip};
use azure_simulator::{Consistency, Options};
use serde_json::json;

const BOUND: u64 = 2_000;

fn options(seed: u64) -> Options {
    let consistency = Consistency { reads_ms: BOUND, lists_ms: 3 * BOUND, share: 1.0 };
    Options { seed, consistency, budgets: None, ..Options::default() }
}

fn tagged(value: u64) -> serde_json::Value {
    let mut body = public_ip();
    body["tags"] = json!({ "n": value.to_string() });
    body
}

/// Writes a new value every 500 ms and reads it many times in between; gives the ages of what GETs and
/// lists showed, in milliseconds. What is absent counts as the value before the first.
async fn ages(client: &Client) -> [Vec<u64>; 2] {
    let id = network_id("publicIPAddresses/a");
    let list =
        format!("{}/providers/Microsoft.Network/publicIPAddresses?api-version=2025-05-01", group_path());
    let mut ages = [Vec::new(), Vec::new()];
    for now in 1..40_u64 {
        client.put(&id, tagged(now)).await;
        for _ in 0..5 {
            let one = client.get(&id).await;
            let all = client.send("GET", &list, None, &[]).await.expect(200).body;
            for (ages, document) in ages.iter_mut().zip([&one.body, &all["value"][0]]) {
                let seen = document["tags"]["n"].as_str().map_or(0, |n| n.parse().unwrap());
                // The value was replaced when the next one was written.
                ages.push((now - seen).saturating_sub(1) * 500);
            }
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    ages
}

#[tokio::test(start_paused = true)]
async fn reads_lag_within_their_bound_and_lists_more() {
    let client = Client::with_group(options(1)).await;
    let [reads, lists] = ages(&client).await;
    let most = |ages: &[u64]| ages.iter().copied().max().unwrap_or_default();
    assert!(most(&reads) < BOUND && most(&reads) >= BOUND / 2, "{}", most(&reads));
    assert!(most(&lists) < 3 * BOUND && most(&lists) > BOUND, "{}", most(&lists));
    assert!(reads.iter().collect::<BTreeSet<_>>().len() > 2);
    // The same seed lags alike, another one does not.
    assert_eq!(ages(&Client::with_group(options(1)).await).await, [reads.clone(), lists]);
    assert_ne!(ages(&Client::with_group(options(2)).await).await[0], reads);
}

#[tokio::test(start_paused = true)]
async fn what_is_new_may_be_absent_and_what_is_gone_may_be_there_but_not_for_long() {
    let client = Client::with_group(options(1)).await;
    let id = network_id("publicIPAddresses/a");
    client.put(&id, public_ip()).await.expect(201);
    // Nothing has passed since: every read is older.
    client.get(&id).await.refused(404, "ResourceNotFound");
    // Writes see the present, their preconditions too.
    let path = format!("{id}?api-version=2025-05-01");
    client
        .send("PUT", &path, Some(public_ip()), &[("if-none-match", "*")])
        .await
        .refused(412, "PreconditionFailed");
    tokio::time::sleep(Duration::from_millis(BOUND)).await;
    client.get(&id).await.expect(200);
    client.delete(&id).await.expect(202);
    client.get(&id).await.expect(200);
    client.delete(&id).await.expect(204);
    tokio::time::sleep(Duration::from_millis(BOUND)).await;
    client.get(&id).await.refused(404, "ResourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn it_is_chosen_while_it_runs_and_off_by_default() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("publicIPAddresses/a");
    client.put(&id, tagged(1)).await.expect(201);
    client.get(&id).await.expect(200);
    let headers = [("content-type", "application/json")];
    let change = async |body| client.send("PUT", "/_cerulean/consistency", Some(body), &headers).await;
    change(json!({ "readsMs": 1_000, "share": 0.5 })).await.expect(204);
    tokio::time::sleep(Duration::from_secs(2)).await;
    client.put(&id, tagged(2)).await.expect(200);
    let mut seen = BTreeSet::new();
    for _ in 0..40 {
        seen.insert(client.get(&id).await.body["tags"]["n"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen.len(), 2, "about half of the reads lag: {seen:?}");
    let now = client.send("GET", "/_cerulean/consistency", None, &[]).await.body;
    assert_eq!(now, json!({ "readsMs": 1_000, "listsMs": 0, "share": 0.5 }));
    change(json!({})).await.expect(204);
    assert_eq!(client.get(&id).await.body["tags"]["n"], "2");
    change(json!({ "readMs": 1 })).await.refused(400, "InvalidRequestContent");
}
