//! The state as one document.

use std::time::Duration;

use kubernetes_simulator::{Collection, Kubernetes, Options};

use crate::api::raw::describe_events;
use crate::api::*;

fn definition() -> Value {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema":
                { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] } })
}

#[tokio::test(start_paused = true)]
async fn clients_go_on_where_they_were() {
    let old = kubernetes();
    let service = old.create(service("web")).unwrap();
    old.create(definition()).unwrap();
    let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" } });
    let widget = old.create(widget).unwrap();
    let seen = old.resource_version();

    let new = kubernetes();
    new.restore(old.save()).unwrap();
    assert_eq!(new.resource_version(), seen);
    for (kind, name, before) in [("svc", "web", &service), ("widgets", "w", &widget)] {
        assert_eq!(new.get(kind, "default", name).unwrap().value(), before.value());
    }
    // A watch from the newest version continues, and the next change has a newer one.
    let later = new.create(config_map("later", json!({}))).unwrap();
    assert_eq!(later.version(), seen + 1);
    let path = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion=";
    assert_eq!(describe_events(&raw::watch(&new, &format!("{path}{seen}")).await), ["ADDED later"]);
    // Addresses and UIDs in use are not issued again.
    let mut again = service.value().clone();
    again["metadata"] = json!({ "name": "again", "namespace": "default" });
    assert_eq!(new.create(again).unwrap_err().code, 422);
    assert!(old.list("cm").iter().chain(&new.list("svc")).all(|object| object.uid() != later.uid()));
    let stale = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "later",
        "namespace": "default", "resourceVersion": seen.to_string() } });
    assert_eq!(new.update(stale).unwrap_err().code, 409);
}

#[tokio::test(start_paused = true)]
async fn an_older_state_makes_what_came_after_it_too_old() {
    let kubernetes = kubernetes();
    let saved = kubernetes.save();
    let created = kubernetes.create(config_map("a", json!({}))).unwrap();
    kubernetes.restore(saved).unwrap();
    assert!(kubernetes.get("cm", "default", "a").is_none());
    assert!(kubernetes.resource_version() > created.version());
    let path = format!("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={}", created.version());
    assert_eq!(raw::watch(&kubernetes, &path).await[0]["object"]["code"], 410);
    let again = kubernetes.create(config_map("a", json!({}))).unwrap();
    assert_ne!(again.uid(), created.uid());
}

#[tokio::test(start_paused = true)]
async fn what_was_to_be_collected_still_is() {
    let collection = Collection::Within(Duration::from_secs(600));
    let options = || Options { collection, ..Options::default() };
    let old = Kubernetes::new(options());
    let owner = old.create(config_map("owner", json!({}))).unwrap();
    let mut child = config_map("child", json!({}));
    child["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid() }]);
    old.create(child).unwrap();
    old.delete("cm", "default", "owner").unwrap();
    let new = Kubernetes::new(options());
    new.restore(old.save()).unwrap();
    assert!(new.get("cm", "default", "child").is_some());
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert!(new.get("cm", "default", "child").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_state_changes_nothing() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({}))).unwrap();
    let mut unknown = kubernetes.save();
    unknown["resources"][0]["resource"] = json!("gadgets.example.com");
    let mut newer = kubernetes.save();
    newer["format"] = json!(99);
    for (saved, why) in [(json!({}), "not a saved state"), (unknown, "not served here"), (newer, "format 99")]
    {
        let error = kubernetes.restore(saved).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(kubernetes.get("cm", "default", "a").is_some());
}

/// Another history has issued the same versions for other objects.
#[tokio::test(start_paused = true)]
async fn who_waits_sees_what_a_restored_state_holds() {
    let (kubernetes, other) = (kubernetes(), kubernetes());
    let first = kubernetes.create(config_map("first", json!({}))).unwrap();
    assert_eq!(other.create(config_map("other", json!({}))).unwrap().version(), first.version());
    let waits =
        kubernetes.until("ConfigMap", |maps| maps.iter().any(|map| map.name() == "other").then_some(()));
    let restores = async {
        tokio::task::yield_now().await;
        kubernetes.restore(other.save()).unwrap();
    };
    let both = async { tokio::join!(waits, restores).0 };
    tokio::time::timeout(Duration::from_secs(60), both).await.unwrap().unwrap();
}
