//! Deletion: finalizers, preconditions, owners, namespaces.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use crate::api::raw::describe_events;
use crate::api::*;

fn owned(name: &str, owners: &[(&str, &str)]) -> Value {
    let mut object = config_map(name, json!({}));
    let references: Vec<Value> = owners
        .iter()
        .map(|(name, uid)| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true }))
        .collect();
    object["metadata"]["ownerReferences"] = json!(references);
    object
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_removed() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let mut object = config_map("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    let created = kubernetes.create(object).unwrap();
    let waiting = api.delete("a", &DeleteParams::default()).await.unwrap().left().expect("held");
    let time = waiting.metadata.deletion_timestamp.clone().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let again = api.delete("a", &DeleteParams::default()).await.unwrap().left().expect("still held");
    assert_eq!(again.metadata.deletion_timestamp.unwrap(), time);
    assert_eq!(again.metadata.resource_version, waiting.metadata.resource_version);

    let finalizers = |list: Value| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    let added = finalizers(json!(["example.com/one", "example.com/two", "example.com/new"]));
    let refused = status(api.patch("a", &PatchParams::default(), &added).await);
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("no new finalizers can be added if the object is being deleted"));

    api.patch("a", &PatchParams::default(), &finalizers(json!(["example.com/two"]))).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_some());
    api.patch("a", &PatchParams::default(), &finalizers(json!([]))).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    let path = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion=";
    let events = raw::watch(&kubernetes, &format!("{path}{}", created.version())).await;
    assert_eq!(describe_events(&events), ["MODIFIED a", "MODIFIED a", "DELETED a"]);
}

#[tokio::test(start_paused = true)]
async fn preconditions_protect_against_deleting_another_object() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let object = kubernetes.create(config_map("a", json!({}))).unwrap();
    let with = |uid: Option<&str>, version: Option<&str>| DeleteParams {
        preconditions: Some(Preconditions {
            uid: uid.map(str::to_owned),
            resource_version: version.map(str::to_owned),
        }),
        ..DeleteParams::default()
    };
    assert_eq!(status(api.delete("a", &with(Some("other"), None)).await).code, 409);
    assert_eq!(status(api.delete("a", &with(None, Some("1"))).await).code, 409);
    assert!(api.get_opt("a").await.unwrap().is_some());
    let version = object.version().to_string();
    api.delete("a", &with(Some(object.uid()), Some(&version))).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn dependents_go_with_their_last_owner() {
    let kubernetes = kubernetes();
    let uid = |name: &str| kubernetes.create(config_map(name, json!({}))).unwrap().uid().to_owned();
    let (a, b) = (uid("a"), uid("b"));
    let child = kubernetes.create(owned("child", &[("a", &a)])).unwrap();
    kubernetes.create(owned("shared", &[("a", &a), ("b", &b)])).unwrap();
    kubernetes.create(owned("grandchild", &[("child", child.uid())])).unwrap();
    kubernetes.delete("ConfigMap", "default", "a").unwrap();
    let names = || kubernetes.list("cm").iter().map(|object| object.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(), ["b", "shared"]);
    let shared = kubernetes.get("cm", "default", "shared").unwrap();
    assert_eq!(shared["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    kubernetes.delete("ConfigMap", "default", "b").unwrap();
    assert!(names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_propagation_policy_orphans_or_waits_for_dependents() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let owner = kubernetes.create(config_map("a", json!({}))).unwrap().uid().to_owned();
    kubernetes.create(owned("child", &[("a", &owner)])).unwrap();
    api.delete("a", &DeleteParams::orphan()).await.unwrap();
    let orphan = kubernetes.get("cm", "default", "child").unwrap();
    assert!(orphan["metadata"].get("ownerReferences").is_none());

    let owner = kubernetes.create(config_map("b", json!({}))).unwrap().uid().to_owned();
    let mut held = owned("held", &[("b", &owner)]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    kubernetes.create(held).unwrap();
    let waiting = api.delete("b", &DeleteParams::foreground()).await.unwrap().left().expect("waits");
    assert_eq!(waiting.metadata.finalizers.unwrap(), ["foregroundDeletion"]);
    assert!(kubernetes.get("cm", "default", "held").unwrap().is_terminating());
    kubernetes.merge("cm", "default", "held", &json!({ "metadata": { "finalizers": null } })).unwrap();
    assert!(kubernetes.get("cm", "default", "b").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_contents_along() {
    let kubernetes = kubernetes();
    let namespace =
        |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let created = kubernetes.create(namespace("x")).unwrap();
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "x");
    let mut held = config_map("held", json!({}));
    held["metadata"]["namespace"] = json!("x");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    kubernetes.create(held.clone()).unwrap();
    let mut free = service("free");
    free["metadata"]["namespace"] = json!("x");
    kubernetes.create(free).unwrap();

    kubernetes.delete("ns", "", "x").unwrap();
    let terminating = kubernetes.get("ns", "", "x").unwrap();
    assert_eq!(terminating["status"]["phase"], "Terminating");
    assert!(kubernetes.get("svc", "x", "free").is_none());
    held["metadata"]["name"] = json!("late");
    let refused = kubernetes.create(held).unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("because it is being terminated"), "{refused}");
    kubernetes.merge("cm", "x", "held", &json!({ "metadata": { "finalizers": null } })).unwrap();
    assert!(kubernetes.get("ns", "", "x").is_none());
    assert_eq!(kubernetes.delete("ns", "", "default").unwrap_err().code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        kubernetes.create(config_map(name, json!({ "app": app }))).unwrap();
    }
    let params = ListParams::default().labels("app=web");
    let deleted = api.delete_collection(&DeleteParams::default(), &params).await.unwrap().left().unwrap();
    assert_eq!(deleted.items.len(), 2);
    assert_eq!(kubernetes.list("cm").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_deleted_over_http_keeps_its_contents_for_a_moment() {
    let kubernetes = kubernetes();
    kubernetes
        .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } }))
        .unwrap();
    let mut object = config_map("a", json!({}));
    object["metadata"]["namespace"] = json!("x");
    kubernetes.create(object).unwrap();
    let api: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client(&kubernetes));
    let marked = api.delete("x", &DeleteParams::default()).await.unwrap().left().expect("terminating");
    assert_eq!(marked.status.unwrap().phase.as_deref(), Some("Terminating"));
    assert!(kubernetes.get("cm", "x", "a").is_some());
    kubernetes.until("ns", |all| all.iter().all(|object| object.name() != "x").then_some(())).await.unwrap();
    assert!(kubernetes.get("cm", "x", "a").is_none());
}
