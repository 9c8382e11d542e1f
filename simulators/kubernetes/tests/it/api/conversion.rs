//! Conversion webhooks in the same process, on paused time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::routing::post;
use axum::{Json, Router};
use futures::future::join_all;
use http::Method;
use kubernetes_simulator::{Collection, Kubernetes, Options, Token, WebhookHost};
use parking_lot::Mutex;

use crate::api::*;

const V1: &str = "/apis/example.com/v1/namespaces/default/widgets";
const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// A kind whose objects are stored as `v1` with `spec.size`, and have `spec.length` in `v2`.
fn definition() -> Value {
    let version = |name: &str, member: &str| {
        json!({ "name": name, "served": true, "storage": name == "v1", "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": { member: { "type": "integer" } } },
                "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } } })
    };
    let service = json!({ "name": "converter", "namespace": "system", "path": "/convert" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [version("v1", "size"), version("v2", "length")],
            "conversion": { "strategy": "Webhook",
                "webhook": { "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] } } },
    })
}

fn widget(version: &str, name: &str, size: u64) -> Value {
    let member = if version == "v1" { "size" } else { "length" };
    json!({ "apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": { "name": name, "namespace": "default" }, "spec": { member: size } })
}

/// The webhook's requests, object by object.
type ReceivedReviews = Arc<Mutex<Vec<Value>>>;

fn answer(review: &Value) -> Value {
    let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let objects: Vec<Value> = review["request"]["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| {
            let mut object = object.clone();
            let size = object["spec"]["size"].as_u64().or(object["spec"]["length"].as_u64());
            let member = if to.ends_with("v1") { "size" } else { "length" };
            object["apiVersion"] = json!(to);
            object["spec"] = json!({ member: size });
            object["metadata"]["labels"][to.rsplit('/').next().unwrap()] = json!("yes");
            object
        })
        .collect();
    json!({ "apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": { "uid": review["request"]["uid"], "result": { "status": "Success" },
            "convertedObjects": objects } })
}

fn converter(kubernetes: &Kubernetes) -> ReceivedReviews {
    let asked = ReceivedReviews::default();
    let notes = Arc::clone(&asked);
    let router = Router::new().fallback(post(async move |Json(review): Json<Value>| {
        notes.lock().extend(review["request"]["objects"].as_array().unwrap().iter().cloned());
        Json(answer(&review))
    }));
    kubernetes.webhook_host("converter.system.svc", WebhookHost::InProcess(router));
    asked
}

fn world(options: Options) -> (Kubernetes, ReceivedReviews) {
    let kubernetes = Kubernetes::new(options);
    let asked = converter(&kubernetes);
    kubernetes.create(definition()).unwrap();
    (kubernetes, asked)
}

/// Makes the webhook unreachable.
fn silence(kubernetes: &Kubernetes) {
    let never = Router::new().fallback(post(async || std::future::pending::<()>().await));
    kubernetes.webhook_host("converter.system.svc", WebhookHost::InProcess(never));
}

async fn send(
    kubernetes: &Kubernetes,
    method: Method,
    path: &str,
    content: &str,
    body: &Value,
) -> (u16, Value) {
    let headers = [("content-type", content)];
    let (code, bytes) = raw::send(kubernetes, method, path, &headers, &body.to_string()).await;
    (code, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_is_remembered_until_the_definition_changes() {
    let (kubernetes, asked) = world(Options::default());
    let (_, created) = raw::post(&kubernetes, V2, &widget("v2", "w", 3)).await;
    assert_eq!(created["spec"], json!({ "length": 3 }));
    let seen = asked.lock().clone();
    assert_eq!(seen.len(), 2, "to be stored, and to be answered: {seen:?}");
    assert!(seen.iter().all(|object| object["metadata"]["uid"] == created["metadata"]["uid"]));
    assert!(seen.iter().all(|object| object["metadata"].get("resourceVersion").is_none()));
    for _ in 0..3 {
        assert_eq!(raw::get(&kubernetes, &format!("{V2}/w"), "").await.1, created);
        assert_eq!(raw::get(&kubernetes, &format!("{V1}/w"), "").await.1["spec"], json!({ "size": 3 }));
    }
    let list = raw::get(&kubernetes, V2, "").await.1;
    assert_eq!(list["items"][0], created);
    assert_eq!(asked.lock().len(), 2);

    for (change, count) in [
        (json!({ "metadata": { "annotations": { "example.com/changed": "yes" } } }), 2),
        (json!({ "spec": { "names": { "categories": ["all"] } } }), 3),
    ] {
        kubernetes.merge("customresourcedefinitions", "", "widgets.example.com", &change).unwrap();
        assert_eq!(raw::get(&kubernetes, &format!("{V2}/w"), "").await.1, created);
        assert_eq!(asked.lock().len(), count, "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_and_selections_are_of_converted_objects() {
    let (kubernetes, asked) = world(Options::default());
    for number in 0..30 {
        kubernetes.create(widget("v1", &format!("w{number:02}"), number)).unwrap();
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let (_, page) = raw::get(&kubernetes, &format!("{V2}?limit=10"), "").await;
    assert_eq!((names(&page).len(), &page["metadata"]["remainingItemCount"]), (10, &json!(20)));
    assert_eq!(asked.lock().len(), 10, "objects on other pages are not converted");
    let token = page["metadata"]["continue"].as_str().unwrap();
    let (_, page) = raw::get(&kubernetes, &format!("{V2}?limit=10&continue={token}"), "").await;
    assert_eq!(names(&page)[0], "w10");
    let (_, selected) = raw::get(&kubernetes, &format!("{V2}?labelSelector=v2&limit=3"), "").await;
    assert_eq!(names(&selected), ["w00", "w01", "w02"]);
    let (_, selected) = raw::get(&kubernetes, &format!("{V2}?labelSelector=!v2"), "").await;
    assert!(names(&selected).is_empty());
    assert_eq!(asked.lock().len(), 30);
    let events = raw::watch(&kubernetes, &format!("{V2}?watch=true&timeoutSeconds=1")).await;
    assert_eq!(events.len(), 30);
    assert!(events.iter().all(|event| event["object"]["spec"]["length"].is_u64()));
}

#[tokio::test(start_paused = true)]
async fn writers_at_the_same_time_do_not_disturb_each_other() {
    let (kubernetes, _) = world(Options::default());
    let path = format!("{V2}?fieldManager=test");
    let creations = (0..50).map(|number| {
        let mut widget = widget("v2", "", number);
        widget["metadata"] = json!({ "generateName": "w-" });
        let (kubernetes, path) = (&kubernetes, &path);
        async move { raw::post(kubernetes, path, &widget).await }
    });
    let created = join_all(creations).await;
    let uids: std::collections::BTreeSet<String> = created
        .iter()
        .map(|(code, object)| {
            assert_eq!(*code, 201, "{object}");
            object["metadata"]["uid"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(uids.len(), 50);
    // All for one object.
    kubernetes.create(widget("v1", "shared", 0)).unwrap();
    let path = format!("{V2}/shared");
    let patches = (0..20).map(|number| {
        let patch = json!({ "metadata": { "annotations": { format!("a{number}"): "x" } } });
        let (kubernetes, path) = (&kubernetes, &path);
        async move { send(kubernetes, Method::PATCH, path, "application/merge-patch+json", &patch).await.0 }
    });
    assert_eq!(join_all(patches).await, [200; 20]);
    let shared = kubernetes.get("widgets", "default", "shared").unwrap();
    assert_eq!(shared["metadata"]["annotations"].as_object().unwrap().len(), 20);
}

/// Concurrent watches and requests for the same conversion share one call.
#[tokio::test(start_paused = true)]
async fn many_that_want_the_same_ask_once() {
    let (kubernetes, asked) = world(Options::default());
    kubernetes.create(widget("v1", "w", 1)).unwrap();
    let path = format!("{V2}/w");
    let reads = join_all((0..20).map(|_| raw::get(&kubernetes, &path, ""))).await;
    assert!(reads.iter().all(|(code, object)| *code == 200 && object["spec"]["length"] == 1));
    assert_eq!(asked.lock().len(), 1);
    let from = kubernetes.resource_version();
    let path = format!("{V2}?watch=true&resourceVersion={from}&timeoutSeconds=5");
    let watches = join_all((0..20).map(|_| raw::watch(&kubernetes, &path)));
    let change =
        async { kubernetes.merge("widgets", "default", "w", &json!({ "spec": { "size": 2 } })).unwrap() };
    let (watches, _) = futures::join!(watches, change);
    assert!(watches.iter().all(|events| events.len() == 1 && events[0]["object"]["spec"]["length"] == 2));
    assert_eq!(asked.lock().len(), 2);
    // A failed call fails for all of them, and the next request calls again.
    kubernetes.merge("widgets", "default", "w", &json!({ "spec": { "size": 3 } })).unwrap();
    silence(&kubernetes);
    let path = format!("{V2}/w");
    let start = tokio::time::Instant::now();
    let reads = join_all((0..20).map(|_| raw::get(&kubernetes, &path, ""))).await;
    assert!(reads.iter().all(|(code, _)| *code == 500));
    assert_eq!(start.elapsed().as_secs(), 30);
    // A client that gave up while the call was in flight does not fail later clients.
    let gave_up =
        tokio::time::timeout(std::time::Duration::from_secs(29), raw::get(&kubernetes, &path, "")).await;
    assert!(gave_up.is_err());
    converter(&kubernetes);
    assert_eq!(raw::get(&kubernetes, &path, "").await.1["spec"], json!({ "length": 3 }));
}

/// The same requests give the same objects, whatever the webhook does.
#[tokio::test(start_paused = true)]
async fn a_seed_gives_the_same_objects() {
    let mut runs = vec![];
    for _ in 0..2 {
        let (kubernetes, _) = world(Options::default());
        for number in 0..3 {
            let mut widget = widget("v2", "", number);
            widget["metadata"] = json!({ "generateName": "w-" });
            raw::post(&kubernetes, V2, &widget).await;
        }
        runs.push(raw::get(&kubernetes, V2, "").await.1);
    }
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0]["items"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_has_thirty_seconds() {
    let (kubernetes, _) = world(Options::default());
    kubernetes.create(widget("v1", "w", 1)).unwrap();
    silence(&kubernetes);
    let start = tokio::time::Instant::now();
    let (code, refused) = raw::get(&kubernetes, &format!("{V2}/w"), "").await;
    assert_eq!((start.elapsed().as_secs(), code, refused.get("reason")), (30, 500, None));
    assert_eq!(
        refused["message"],
        "conversion webhook for example.com/v1, Kind=Widget failed: Post \
         \"https://converter.system.svc:443/convert?timeout=30s\": context deadline exceeded"
    );
    // An open watch reports it, and ends.
    let watched = format!("{V2}?watch=true&resourceVersion={}", kubernetes.resource_version());
    let watch = raw::watch(&kubernetes, &watched);
    let change =
        async { kubernetes.merge("widgets", "default", "w", &json!({ "spec": { "size": 2 } })).unwrap() };
    let (events, _) = futures::join!(watch, change);
    assert_eq!((events.len(), &events[0]["type"]), (1, &json!("ERROR")));
    assert_eq!(events[0]["object"]["message"], refused["message"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_never_rests_is_given_up() {
    let (kubernetes, _) = world(Options::default());
    kubernetes.create(widget("v1", "w", 1)).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let (inner, times) = (kubernetes.clone(), Arc::clone(&count));
    let router = Router::new().fallback(post(async move |Json(review): Json<Value>| {
        // Every call changes the object, so the result never matches it.
        let number = times.fetch_add(1, Ordering::SeqCst);
        inner.merge("widgets", "default", "w", &json!({ "spec": { "size": number + 10 } })).unwrap();
        Json(answer(&review))
    }));
    kubernetes.webhook_host("converter.system.svc", WebhookHost::InProcess(router));
    let (code, refused) = raw::get(&kubernetes, &format!("{V2}/w"), "").await;
    assert_eq!(code, 500);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("conversion webhook for widgets.example.com"), "{message}");
    assert_eq!(count.load(Ordering::SeqCst), 100);
}

/// Garbage collection reads metadata alone: an unreachable webhook does not block it.
#[tokio::test(start_paused = true)]
async fn nobody_is_asked_to_collect_what_is_left_behind() {
    let within = Collection::Within(std::time::Duration::from_secs(5));
    for collection in [Collection::Prompt, within] {
        let (kubernetes, asked) = world(Options { collection, ..Options::default() });
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "going" } });
        kubernetes.create(namespace).unwrap();
        let owner = kubernetes.create(config_map("owner", json!({}))).unwrap();
        let mut owned = widget("v1", "owned", 1);
        owned["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid() }]);
        kubernetes.create(owned).unwrap();
        let mut elsewhere = widget("v1", "elsewhere", 1);
        elsewhere["metadata"]["namespace"] = json!("going");
        kubernetes.create(elsewhere).unwrap();
        kubernetes.create(widget("v1", "stays", 1)).unwrap();
        // From now on existing objects are stored in an old version.
        let mut changed = definition();
        changed["spec"]["versions"][0]["storage"] = json!(false);
        changed["spec"]["versions"][1]["storage"] = json!(true);
        let change = json!({ "spec": { "versions": changed["spec"]["versions"] } });
        kubernetes.merge("customresourcedefinitions", "", "widgets.example.com", &change).unwrap();
        silence(&kubernetes);
        kubernetes.delete("configmaps", "default", "owner").unwrap();
        kubernetes.delete("namespaces", "", "going").unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
        let left: Vec<String> =
            kubernetes.list("widgets").iter().map(|widget| widget.name().to_owned()).collect();
        assert_eq!(left, ["stays"]);
        assert!(kubernetes.get("namespaces", "", "going").is_none());
        kubernetes.delete("customresourcedefinitions", "", "widgets.example.com").unwrap();
        assert!(kubernetes.get("customresourcedefinitions", "", "widgets.example.com").is_none());
        assert!(asked.lock().is_empty());
    }
}

/// Calls that do not wait see the stored form, and write the storage version.
#[tokio::test(start_paused = true)]
async fn calls_in_process_ask_nobody() {
    let (kubernetes, asked) = world(Options::default());
    kubernetes.create(widget("v1", "w", 1)).unwrap();
    let refused = kubernetes.create(widget("v2", "x", 1)).unwrap_err();
    assert_eq!(refused.code, 500);
    assert!(refused.message.contains("conversion webhook for widgets.example.com must be asked first"));
    assert!(kubernetes.get("widgets", "default", "x").is_none());
    assert_eq!(kubernetes.get("Widget", "default", "w").unwrap()["spec"], json!({ "size": 1 }));
    let merged = kubernetes.merge("widgets", "default", "w", &json!({ "spec": { "size": 2 } })).unwrap();
    assert_eq!(merged["apiVersion"], "example.com/v1");
    assert_eq!(kubernetes.list("widgets")[0]["spec"], json!({ "size": 2 }));
    kubernetes.delete("widgets", "default", "w").unwrap();
    assert!(asked.lock().is_empty());
}

/// Objects of a restored state are converted as before.
#[tokio::test(start_paused = true)]
async fn a_saved_state_is_converted() {
    let (kubernetes, _) = world(Options::default());
    raw::post(&kubernetes, V2, &widget("v2", "w", 3)).await;
    let other = Kubernetes::new(Options::default());
    let asked = converter(&other);
    other.restore(kubernetes.save()).unwrap();
    assert_eq!(raw::get(&other, &format!("{V2}/w"), "").await.1["spec"], json!({ "length": 3 }));
    assert_eq!(asked.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_follows_its_definition() {
    let (kubernetes, _) = world(Options::default());
    kubernetes.create(widget("v1", "w", 1)).unwrap();
    let changed = AtomicBool::new(false);
    let from = kubernetes.resource_version();
    let path = format!("{V2}?watch=true&resourceVersion={from}&timeoutSeconds=5");
    let watch = raw::watch(&kubernetes, &path);
    let changes = async {
        let none = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
        kubernetes.merge("customresourcedefinitions", "", "widgets.example.com", &none).unwrap();
        kubernetes
            .merge("widgets", "default", "w", &json!({ "metadata": { "labels": { "a": "b" } } }))
            .unwrap();
        changed.store(true, Ordering::SeqCst);
    };
    let (events, ()) = futures::join!(watch, changes);
    assert!(changed.load(Ordering::SeqCst));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["object"]["apiVersion"], "example.com/v2");
    assert_eq!(events[0]["object"]["metadata"]["labels"], json!({ "a": "b" }), "no label was added");
}

/// kubectl shows and writes both versions. Real time and sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_gets_both_versions() {
    let (kubernetes, asked) = world(Options { tokens: vec![Token::generate()], ..Options::default() });
    let Some(kubectl) = kubectl::Kubectl::start(&kubernetes).await else { return };
    kubectl.run(&format!("apply -f {}", kubectl.file("widget.json", &widget("v2", "w", 7)))).await;
    let shown = async |version: &str| {
        let output = "-o jsonpath={.apiVersion}{.spec}";
        kubectl.run(&format!("get widgets.{version}.example.com w {output}")).await
    };
    assert_eq!(shown("v1").await, "example.com/v1{\"size\":7}");
    assert_eq!(shown("v2").await, "example.com/v2{\"length\":7}");
    let patch = "{\"spec\":{\"size\":8}}";
    kubectl.run(&format!("patch widgets.v1.example.com w --type merge -p {patch}")).await;
    assert_eq!(shown("v2").await, "example.com/v2{\"length\":8}");
    let again =
        kubectl.run(&format!("apply -f {}", kubectl.file("widget.json", &widget("v2", "w", 9)))).await;
    assert!(again.contains("configured"), "{again}");
    assert_eq!(shown("v1").await, "example.com/v1{\"size\":9}");
    assert!(!asked.lock().is_empty());
}
