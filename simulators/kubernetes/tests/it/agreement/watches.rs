//! Watches: order, resumption, selectors, end.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agreement::caller::{Caller, MERGE, config_map, version};

const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

async fn next(stream: &mut (impl Stream<Item = (String, Value)> + Unpin)) -> (String, String) {
    let (kind, object) =
        timeout(EVENT_TIMEOUT, stream.next()).await.expect("an event in time").expect("an event");
    (kind, object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

pub async fn changes_come_in_order(caller: Caller) {
    let maps = caller.at("configmaps");
    caller.post(&maps, &config_map("old", json!({}))).await.ok(201);
    let list = caller.get(&maps).await.ok(200);
    let mut since = caller.watch(&format!("{maps}?watch=true&resourceVersion={}", version(&list))).await;
    // Without a version the watch starts with the current objects.
    let mut whole = caller.watch(&format!("{maps}?watch=true")).await;
    assert_eq!(next(&mut whole).await, event("ADDED", "old"));
    caller.post(&maps, &config_map("new", json!({}))).await.ok(201);
    caller.patch(&format!("{maps}/new"), MERGE, &json!({"data": {"a": "1"}})).await.ok(200);
    caller.delete(&format!("{maps}/old")).await.ok(200);
    caller.delete(&format!("{maps}/new")).await.ok(200);
    for expected in
        [event("ADDED", "new"), event("MODIFIED", "new"), event("DELETED", "old"), event("DELETED", "new")]
    {
        assert_eq!(next(&mut since).await, expected);
        assert_eq!(next(&mut whole).await, expected);
    }
}

pub async fn a_watch_resumes(caller: Caller) {
    let maps = caller.at("configmaps");
    let list = caller.get(&maps).await.ok(200);
    let start = version(&list).to_owned();
    let mut versions = vec![];
    for name in ["one", "two", "three"] {
        let created = caller.post(&maps, &config_map(name, json!({}))).await.ok(201);
        versions.push(version(&created).to_owned());
    }
    let mut watch = caller.watch(&format!("{maps}?watch=true&resourceVersion={start}")).await;
    for (name, expected) in ["one", "two", "three"].into_iter().zip(&versions) {
        let (kind, object) = timeout(EVENT_TIMEOUT, watch.next()).await.unwrap().unwrap();
        assert_eq!((kind.as_str(), object["metadata"]["name"].as_str()), ("ADDED", Some(name)));
        assert_eq!(version(&object), expected, "an event carries the version of its change");
    }
    let mut watch = caller.watch(&format!("{maps}?watch=true&resourceVersion={}", versions[1])).await;
    assert_eq!(next(&mut watch).await, event("ADDED", "three"));
    // A deletion carries the version of the deletion, so that watching on from it misses nothing.
    caller.delete(&format!("{maps}/one")).await.ok(200);
    let (kind, gone) = timeout(EVENT_TIMEOUT, watch.next()).await.unwrap().unwrap();
    assert_eq!(kind, "DELETED");
    assert_ne!(version(&gone), versions[0]);
    caller.post(&maps, &config_map("four", json!({}))).await.ok(201);
    let mut watch = caller.watch(&format!("{maps}?watch=true&resourceVersion={}", version(&gone))).await;
    assert_eq!(next(&mut watch).await, event("ADDED", "four"));
}

pub async fn a_watch_follows_its_selector(caller: Caller) {
    let maps = caller.at("configmaps");
    let list = caller.get(&maps).await.ok(200);
    let path = format!("{maps}?watch=true&labelSelector=l%3Dx&resourceVersion={}", version(&list));
    let mut watch = caller.watch(&path).await;
    let labelled = |name: &str, label: &str| {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"l": label});
        object
    };
    caller.post(&maps, &labelled("other", "y")).await.ok(201);
    caller.post(&maps, &labelled("ours", "x")).await.ok(201);
    assert_eq!(next(&mut watch).await, event("ADDED", "ours"));
    let label = |value: &str| json!({"metadata": {"labels": {"l": value}}});
    caller.patch(&format!("{maps}/ours"), MERGE, &label("y")).await.ok(200);
    assert_eq!(next(&mut watch).await, event("DELETED", "ours"));
    caller.patch(&format!("{maps}/other"), MERGE, &label("x")).await.ok(200);
    assert_eq!(next(&mut watch).await, event("ADDED", "other"));
    let path =
        format!("{maps}?watch=true&fieldSelector=metadata.name%3Dours&resourceVersion={}", version(&list));
    let mut watch = caller.watch(&path).await;
    assert_eq!(next(&mut watch).await, event("ADDED", "ours"));
    assert_eq!(next(&mut watch).await, event("MODIFIED", "ours"));
}

pub async fn a_watch_ends_in_time(caller: Caller) {
    let maps = caller.at("configmaps");
    caller.post(&maps, &config_map("m", json!({}))).await.ok(201);
    let mut watch = caller.watch(&format!("{maps}?watch=true&timeoutSeconds=3")).await;
    assert_eq!(next(&mut watch).await, event("ADDED", "m"));
    assert!(timeout(EVENT_TIMEOUT, watch.next()).await.expect("the end in time").is_none());
}
