//! Lists: pages, versions, selectors, forms.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use serde_json::json;

use crate::api::*;

fn names<T: kube::ResourceExt>(items: &[T]) -> Vec<String> {
    items.iter().map(kube::ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_show_the_state_of_the_first_one() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    for name in ["a", "b", "c", "d", "e"] {
        kubernetes.create(config_map(name, json!({}))).unwrap();
    }
    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(names(&first.items), ["a", "b"]);
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    let token = first.metadata.continue_.unwrap();

    kubernetes.delete("ConfigMap", "default", "c").unwrap();
    kubernetes.create(config_map("bb", json!({}))).unwrap();
    kubernetes.merge("ConfigMap", "default", "e", &json!({ "data": { "key": "new" } })).unwrap();
    let second = api.list(&ListParams::default().limit(10).continue_token(&token)).await.unwrap();
    assert_eq!(names(&second.items), ["c", "d", "e"]);
    assert_eq!(second.items[2].data.as_ref().unwrap()["key"], "value");
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    assert_eq!(second.metadata.continue_, None);
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_says_how_to_go_on() {
    let kubernetes = kubernetes();
    for name in ["a", "b", "c"] {
        kubernetes.create(config_map(name, json!({}))).unwrap();
    }
    let path = "/api/v1/namespaces/default/configmaps?limit=1";
    let (_, first) = raw::get(&kubernetes, path, "").await;
    kubernetes.compact();
    let next = format!("{path}&continue={}", first["metadata"]["continue"].as_str().unwrap());
    let (code, expired) = raw::get(&kubernetes, &next, "").await;
    assert_eq!((code, expired["reason"].as_str()), (410, Some("Expired")));
    kubernetes.create(config_map("bb", json!({}))).unwrap();
    let inconsistent = expired["metadata"]["continue"].as_str().unwrap();
    let (code, rest) =
        raw::get(&kubernetes, &format!("/api/v1/namespaces/default/configmaps?continue={inconsistent}"), "")
            .await;
    assert_eq!(code, 200);
    let names: Vec<_> =
        rest["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["b", "bb", "c"]);
    let (code, _) = raw::get(&kubernetes, "/api/v1/configmaps?continue=nonsense!", "").await;
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn versions_are_met_exactly_or_at_least() {
    let kubernetes = kubernetes();
    let version = kubernetes.create(config_map("a", json!({}))).unwrap().version();
    kubernetes.create(config_map("b", json!({}))).unwrap();
    let count = async |query: &str| {
        let (code, list) = raw::get(&kubernetes, &format!("/api/v1/configmaps?{query}"), "").await;
        (code, list["items"].as_array().map(Vec::len))
    };
    assert_eq!(count("").await, (200, Some(2)));
    assert_eq!(count("resourceVersion=0").await, (200, Some(2)));
    assert_eq!(count(&format!("resourceVersion={version}")).await, (200, Some(2)));
    assert_eq!(count(&format!("resourceVersion={version}&resourceVersionMatch=Exact")).await, (200, Some(1)));
    assert_eq!(count(&format!("resourceVersion={version}&limit=5")).await, (200, Some(1)));
    assert_eq!(count("resourceVersion=1000").await.0, 504);
    assert_eq!(count("resourceVersion=x").await.0, 400);
    assert_eq!(count("resourceVersionMatch=Exact").await.0, 422);
    assert_eq!(count("resourceVersionMatch=Exact&resourceVersion=0").await.0, 422);
    assert_eq!(count("limit=-1").await, (200, Some(2)));
}

#[tokio::test(start_paused = true)]
async fn selectors_narrow_lists() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({ "app": "web" }))).unwrap();
    kubernetes.create(config_map("b", json!({ "app": "db" }))).unwrap();
    let mut elsewhere = config_map("c", json!({ "app": "web" }));
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    kubernetes.create(elsewhere).unwrap();
    let all: Api<ConfigMap> = Api::all(client(&kubernetes));
    let labelled = all.list(&ListParams::default().labels("app in (web)")).await.unwrap();
    assert_eq!(names(&labelled.items), ["a", "c"]);
    let named =
        all.list(&ListParams::default().fields("metadata.name=c,metadata.namespace!=default")).await.unwrap();
    assert_eq!(names(&named.items), ["c"]);
    let limited = all.list(&ListParams::default().labels("app").limit(2)).await.unwrap();
    assert_eq!(names(&limited.items), ["a", "b"]);
    assert!(limited.metadata.continue_.is_some() && limited.metadata.remaining_item_count.is_none());
    let unknown = status(all.list(&ListParams::default().fields("data.key=value")).await);
    assert_eq!(unknown.code, 400);
    assert!(unknown.message.starts_with("\"data.key\" is not a known field selector"), "{}", unknown.message);

    let pod = |name: &str, node: &str| {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
            "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] } })
    };
    kubernetes.create(pod("p", "n1")).unwrap();
    kubernetes.create(pod("q", "n2")).unwrap();
    let pods: Api<Pod> = Api::all(client(&kubernetes));
    let on_node = pods.list(&ListParams::default().fields("spec.nodeName=n1")).await.unwrap();
    assert_eq!(names(&on_node.items), ["p"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_and_tables_are_served_on_demand() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({ "app": "web" }))).unwrap();
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::all(client(&kubernetes));
    let list = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].metadata.labels.as_ref().unwrap()["app"], "web");

    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let path = "/api/v1/namespaces/default/configmaps";
    let (_, table) = raw::get(&kubernetes, path, accept).await;
    assert_eq!(
        (table["kind"].as_str(), table["apiVersion"].as_str()),
        (Some("Table"), Some("meta.k8s.io/v1"))
    );
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let (_, one) = raw::get(&kubernetes, &format!("{path}/a?includeObject=Object"), accept).await;
    assert_eq!(one["rows"][0]["object"]["data"]["key"], "value");
    let (code, _) = raw::get(&kubernetes, path, "application/vnd.kubernetes.protobuf").await;
    assert_eq!(code, 406);
}
