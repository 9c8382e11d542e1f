//! Patches of all four types through the API.

use http::Method;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::api::*;

#[tokio::test(start_paused = true)]
async fn server_side_apply_creates_then_shares_and_refuses_foreign_fields() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let apply = |data: serde_json::Value| {
        Patch::Apply(
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data }),
        )
    };
    let created = api.patch("a", &PatchParams::apply("one"), &apply(json!({ "x": "1" }))).await.unwrap();
    assert_eq!(created.metadata.managed_fields.unwrap().len(), 1);
    let version = kubernetes.resource_version();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    api.patch("a", &PatchParams::apply("one"), &apply(json!({ "x": "1" }))).await.unwrap();
    assert_eq!(kubernetes.resource_version(), version, "applying the same again changes nothing");

    let shared = api.patch("a", &PatchParams::apply("two"), &apply(json!({ "y": "2" }))).await.unwrap();
    assert_eq!(shared.data.unwrap().len(), 2);
    let refused =
        status(api.patch("a", &PatchParams::apply("two"), &apply(json!({ "x": "9", "y": "2" }))).await);
    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    assert!(refused.message.contains("conflict with \"one\""), "{}", refused.message);
    let forced = PatchParams::apply("two").force();
    let taken = api.patch("a", &forced, &apply(json!({ "x": "9", "y": "2" }))).await.unwrap();
    assert_eq!(taken.data.unwrap()["x"], "9");
}

#[tokio::test(start_paused = true)]
async fn apply_takes_yaml_and_needs_a_manager() {
    let kubernetes = kubernetes();
    let path = "/api/v1/namespaces/default/configmaps/a";
    let headers = [("content-type", "application/apply-patch+yaml")];
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: '1'\n";
    let send = async |query: &str| {
        raw::send(&kubernetes, Method::PATCH, &format!("{path}{query}"), &headers, yaml).await.0
    };
    assert_eq!(send("").await, 422);
    assert_eq!(send("?fieldManager=me").await, 201);
    assert_eq!(send("?fieldManager=me").await, 200);
    assert_eq!(kubernetes.get("cm", "default", "a").unwrap()["data"]["x"], "1");
}

#[tokio::test(start_paused = true)]
async fn patches_merge_by_their_type() {
    let kubernetes = kubernetes();
    let api = services(&kubernetes);
    kubernetes.create(service("a")).unwrap();
    let params = PatchParams::default();
    let port = json!({ "spec": { "ports": [{ "name": "https", "port": 443 }] } });
    let unnamed = status(api.patch("a", &params, &Patch::Strategic(&port)).await);
    assert_eq!(unnamed.code, 422, "two ports need names: the strategic merge kept the first one");
    let replaced = api.patch("a", &params, &Patch::Merge(&port)).await.unwrap();
    assert_eq!(replaced.spec.unwrap().ports.unwrap().len(), 1);
    let more = json!({ "spec": { "ports": [{ "name": "http", "port": 80 }] } });
    let merged = api.patch("a", &params, &Patch::Strategic(&more)).await.unwrap();
    assert_eq!(merged.spec.unwrap().ports.unwrap().len(), 2);

    let json_patch = |operations: serde_json::Value| Patch::<()>::Json(typed(operations));
    let labelled = json_patch(json!([{ "op": "add", "path": "/metadata/labels", "value": { "x": "y" } }]));
    assert!(api.patch("a", &params, &labelled).await.unwrap().metadata.labels.is_some());
    let failing = json_patch(json!([{ "op": "test", "path": "/metadata/name", "value": "b" }]));
    assert_eq!(status(api.patch("a", &params, &failing).await).code, 422);
    let stale = Patch::Merge(json!({ "metadata": { "resourceVersion": "1", "labels": { "x": "z" } } }));
    assert_eq!(status(api.patch("a", &params, &stale).await).code, 409);
    assert_eq!(status(api.patch("missing", &params, &stale).await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_write_makes_its_fields_the_writers() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    kubernetes.create(config_map("a", json!({}))).unwrap();
    let apply = Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "key": "mine" } }));
    let refused = status(api.patch("a", &PatchParams::apply("one"), &apply).await);
    assert_eq!(refused.code, 409);
    assert!(refused.message.contains("kubernetes-simulator"), "{}", refused.message);
}
