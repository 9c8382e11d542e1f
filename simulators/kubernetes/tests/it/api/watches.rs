//! Watches.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kubernetes_simulator::{Kubernetes, Options};
use serde_json::json;

use crate::api::raw::describe_events;
use crate::api::*;

const PATH: &str = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=5";

#[tokio::test(start_paused = true)]
async fn a_watch_tells_changes_after_its_version_in_order() {
    let kubernetes = kubernetes();
    let version = kubernetes.create(config_map("a", json!({}))).unwrap().version();
    kubernetes.create(config_map("b", json!({}))).unwrap();
    kubernetes.merge("ConfigMap", "default", "a", &json!({ "data": { "x": "1" } })).unwrap();
    let writer = kubernetes.clone();
    let later = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        writer.delete("ConfigMap", "default", "a").unwrap();
        writer.create(service("other-kind")).unwrap();
    });
    let events = raw::watch(&kubernetes, &format!("{PATH}&resourceVersion={version}")).await;
    later.await.unwrap();
    assert_eq!(describe_events(&events), ["ADDED b", "MODIFIED a", "DELETED a"]);
    let versions: Vec<u64> = events
        .iter()
        .map(|event| event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(versions.is_sorted() && versions[0] > version, "{versions:?}");
    assert_eq!(events[2]["object"]["data"]["x"], "1", "a deletion shows the last state");
}

#[tokio::test(start_paused = true)]
async fn without_a_version_a_watch_begins_with_what_there_is() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({}))).unwrap();
    for query in ["", "&resourceVersion=0"] {
        assert_eq!(describe_events(&raw::watch(&kubernetes, &format!("{PATH}{query}")).await), ["ADDED a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection_by_changing() {
    let kubernetes = kubernetes();
    let version = kubernetes.resource_version();
    kubernetes.create(config_map("a", json!({ "app": "web" }))).unwrap();
    let label = |value: &str| json!({ "metadata": { "labels": { "app": value } } });
    let merge = |value: &str| kubernetes.merge("ConfigMap", "default", "a", &label(value)).unwrap();
    merge("db");
    merge("cache");
    let back = merge("web");
    kubernetes.merge("ConfigMap", "default", "a", &json!({ "data": { "x": "1" } })).unwrap();
    kubernetes.delete("ConfigMap", "default", "a").unwrap();
    let path = format!("{PATH}&resourceVersion={version}&labelSelector=app%3Dweb");
    let events = raw::watch(&kubernetes, &path).await;
    assert_eq!(describe_events(&events), ["ADDED a", "DELETED a", "ADDED a", "MODIFIED a", "DELETED a"]);
    let left = &events[1]["object"]["metadata"];
    assert_eq!(left["labels"]["app"], "web", "an object that leaves is sent as it last was inside");
    assert_eq!(left["resourceVersion"], (version + 2).to_string());
    assert_eq!(events[2]["object"]["metadata"]["resourceVersion"], back.version().to_string());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_tell_the_version_reached() {
    let kubernetes = kubernetes();
    let version = kubernetes.create(config_map("a", json!({}))).unwrap().version();
    let other = kubernetes.create(service("other-kind")).unwrap().version();
    let query = format!("&resourceVersion={version}&allowWatchBookmarks=true");
    let path = format!("/api/v1/configmaps?watch=true&timeoutSeconds=70{query}");
    let events = raw::watch(&kubernetes, &path).await;
    assert_eq!(describe_events(&events), ["BOOKMARK -", "BOOKMARK -"], "one a minute, and one at the end");
    assert_eq!(events[0]["object"]["metadata"]["resourceVersion"], other.to_string());
    let quiet = format!("/api/v1/configmaps?watch=true&timeoutSeconds=70&resourceVersion={version}");
    assert!(raw::watch(&kubernetes, &quiet).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_end_with_a_marked_bookmark() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({}))).unwrap();
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let events = raw::watch(&kubernetes, &format!("{PATH}{query}")).await;
    assert_eq!(describe_events(&events)[..2], ["ADDED a", "BOOKMARK -"]);
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let (code, _) = raw::get(&kubernetes, &format!("{PATH}&sendInitialEvents=true"), "").await;
    assert_eq!(code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_forgotten_is_answered_with_410_on_the_stream() {
    let kubernetes = Kubernetes::new(Options { event_window: 3, ..Options::default() });
    let version = kubernetes.resource_version();
    for name in ["a", "b", "c", "d"] {
        kubernetes.create(config_map(name, json!({}))).unwrap();
    }
    let events = raw::watch(&kubernetes, &format!("{PATH}&resourceVersion={version}")).await;
    assert_eq!(describe_events(&events), ["ERROR -"]);
    assert_eq!(
        (&events[0]["object"]["code"], &events[0]["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    let next = raw::watch(&kubernetes, &format!("{PATH}&resourceVersion={}", version + 1)).await;
    assert_eq!(describe_events(&next), ["ADDED b", "ADDED c", "ADDED d"]);

    kubernetes.compact();
    let events = raw::watch(&kubernetes, &format!("{PATH}&resourceVersion={}", version + 4)).await;
    assert_eq!(describe_events(&events), ["ERROR -"]);
    let newest = kubernetes.resource_version();
    assert!(raw::watch(&kubernetes, &format!("{PATH}&resourceVersion={newest}")).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_blocks_nobody_and_is_told_when_it_fell_behind() {
    let kubernetes = Kubernetes::new(Options { event_window: 100, ..Options::default() });
    let api = config_maps(&kubernetes);
    let version = kubernetes.resource_version().to_string();
    let mut slow = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    for number in 0..1000 {
        kubernetes.create(config_map(&format!("c{number}"), json!({}))).unwrap();
    }
    let last = loop {
        match slow.try_next().await.unwrap() {
            Some(WatchEvent::Error(status)) => break status,
            Some(_) => {}
            None => panic!("the watch ended without a word"),
        }
    };
    assert_eq!(last.code, 410);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_follows_through_lost_watches_and_compaction() {
    let kubernetes = kubernetes();
    for number in 0..10 {
        kubernetes.create(config_map(&format!("c{number}"), json!({}))).unwrap();
    }
    for config in [watcher::Config::default().page_size(3), watcher::Config::default().streaming_lists()] {
        let api = config_maps(&kubernetes);
        let (store, writer) = reflector::store::<ConfigMap>();
        let stream = watcher(api, config).default_backoff().reflect(writer);
        let driver = tokio::spawn(stream.for_each(|_| futures::future::ready(())));
        store.wait_until_ready().await.unwrap();
        let before = store.len();
        let lists = kubernetes.requests("list", "configmaps") + kubernetes.requests("watch", "configmaps");

        kubernetes.create(config_map("while-watching", json!({}))).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(store.len(), before + 1);

        kubernetes.drop_watches();
        kubernetes.create(config_map("while-away", json!({}))).unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(store.len(), before + 2);

        kubernetes.compact();
        kubernetes.drop_watches();
        kubernetes.delete("ConfigMap", "default", "while-away").unwrap();
        kubernetes.delete("ConfigMap", "default", "while-watching").unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(store.len(), before, "the relist notices deletions without a watch");
        assert!(
            kubernetes.requests("list", "configmaps") + kubernetes.requests("watch", "configmaps") > lists
        );

        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        assert_eq!(store.len(), before);
        driver.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_tables_names_its_columns_once() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({}))).unwrap();
    kubernetes.create(config_map("b", json!({}))).unwrap();
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let (_, bytes) = raw::send(&kubernetes, http::Method::GET, PATH, &accept, "").await;
    let text = String::from_utf8(bytes).unwrap();
    let tables: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> = tables.iter().map(|event| &event["object"]["rows"][0]["cells"][0]).collect();
    assert_eq!(shown, ["a", "b"]);
    assert!(tables[0]["object"]["columnDefinitions"].is_array());
    assert!(tables[1]["object"]["columnDefinitions"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_one_object_hears_of_no_other() {
    let kubernetes = kubernetes();
    let version = kubernetes.resource_version();
    kubernetes.create(config_map("a", json!({}))).unwrap();
    kubernetes.create(config_map("b", json!({}))).unwrap();
    let by_field = format!("{PATH}&resourceVersion={version}&fieldSelector=metadata.name%3Db");
    assert_eq!(describe_events(&raw::watch(&kubernetes, &by_field).await), ["ADDED b"]);
    let by_path = "/api/v1/namespaces/default/configmaps/b?watch=1&timeoutSeconds=1";
    assert_eq!(describe_events(&raw::watch(&kubernetes, by_path).await), ["ADDED b"]);
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps?watch=1&timeoutSeconds=1";
    assert!(raw::watch(&kubernetes, elsewhere).await.is_empty());
}
