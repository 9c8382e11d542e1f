//! Admission hooks: functions and webhooks in the same process.

use std::sync::Arc;

use axum::routing::post;
use axum::{Json, Router};
use http::{Method, Request};
use kubernetes_simulator::{AdmissionHook, Decision, WebhookHost};
use parking_lot::Mutex;
use tower::ServiceExt as _;

use crate::api::*;

#[tokio::test(start_paused = true)]
async fn functions_default_and_refuse_objects() {
    let kubernetes = kubernetes();
    kubernetes.admission_hook(
        AdmissionHook::mutating("default.example.com", async |request| {
            let mut object = request.object.unwrap();
            object["data"]["default"] = json!("set");
            // Only the server sets these.
            object["metadata"]["uid"] = json!("forged");
            Decision::replace(object)
        })
        .on(&["CREATE", "UPDATE"], "", &["configmaps"]),
    );
    kubernetes.admission_hook(
        AdmissionHook::validating("validate.example.com", async |request| {
            let changed = request.old_object.as_ref().map(|old| &old["data"]["key"]);
            match &request.object {
                Some(object) if changed.is_some_and(|old| *old != object["data"]["key"]) => {
                    Decision::deny("data.key is immutable").code(422)
                }
                None => Decision::deny("nothing is deleted here").warn("this was noted"),
                Some(_) => Decision::allow(),
            }
        })
        .on(&["*"], "", &["configmaps"]),
    );
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, created) = raw::post(&kubernetes, path, &config_map("a", json!({}))).await;
    assert_eq!((code, &created["data"]["default"]), (201, &json!("set")));
    let stored = kubernetes.get("cm", "default", "a").unwrap();
    assert_eq!(stored.value(), &created);
    assert_ne!(stored.uid(), "forged");

    let mut other = created.clone();
    other["data"] = json!({ "key": "other" });
    let (code, refused) = raw::put(&kubernetes, &format!("{path}/a"), &other).await;
    let denied = "admission webhook \"validate.example.com\" denied the request";
    assert_eq!(
        (code, refused["message"].as_str()),
        (422, Some(&*format!("{denied}: data.key is immutable")))
    );
    let request = Request::builder().method(Method::DELETE).uri(format!("{path}/a"));
    let request = request.body(axum::body::Body::empty()).unwrap();
    let response = kubernetes.router().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 403);
    assert!(kubernetes.get("cm", "default", "a").is_some());
    // Writes through the handle call no hooks.
    kubernetes.delete("cm", "default", "a").unwrap();
}

#[tokio::test(start_paused = true)]
async fn hooks_may_use_the_server_while_a_request_waits() {
    let kubernetes = kubernetes();
    let (api, inner) = (config_maps(&kubernetes), kubernetes.clone());
    kubernetes.admission_hook(
        AdmissionHook::validating("busy.example.com", move |request| {
            let kubernetes = inner.clone();
            async move {
                // Another client is faster, once.
                if request.operation == "UPDATE" && kubernetes.get("cm", "default", "seen").is_none() {
                    kubernetes.create(config_map("seen", json!({}))).unwrap();
                    let label = json!({ "metadata": { "labels": { "faster": "yes" } } });
                    kubernetes.merge("cm", "default", &request.name, &label).unwrap();
                }
                Decision::allow()
            }
        })
        .on(&["*"], "", &["configmaps"]),
    );
    let created = api.create(&Default::default(), &typed(config_map("a", json!({})))).await.unwrap();
    let patch = kube::api::Patch::Merge(json!({ "data": { "key": "mine" } }));
    let patched = api.patch("a", &Default::default(), &patch).await.unwrap();
    assert_eq!(patched.data.unwrap()["key"], "mine");
    assert_eq!(patched.metadata.labels.unwrap()["faster"], "yes", "both writes are there");
    kubernetes.delete("cm", "default", "seen").unwrap();
    let stale = status(api.replace("a", &Default::default(), &created).await);
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));
}

/// A webhook in this process that records its requests and responds with `decide`.
fn webhook(decide: fn(&Value) -> Value) -> (Router, Arc<Mutex<Vec<Value>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let answer = async move |Json(review): Json<Value>| {
        let mut response = decide(&review["request"]);
        response["uid"] = review["request"]["uid"].clone();
        notes.lock().push(review["request"].clone());
        Json(json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }))
    };
    (Router::new().fallback(post(answer)), asked)
}

fn configuration(kind: &str, name: &str, webhooks: Value) -> Value {
    json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": name },
        "webhooks": webhooks })
}

fn registered(name: &str, members: Value) -> Value {
    let mut webhook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": { "service": { "name": "hooks", "namespace": "system", "path": format!("/{name}") } },
        "rules": [{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] }],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    json_patch::merge(&mut webhook, &members);
    webhook
}

#[tokio::test(start_paused = true)]
async fn registered_webhooks_are_chosen_by_rules_and_labels() {
    let kubernetes = kubernetes();
    let (router, asked) = webhook(|_| json!({ "allowed": true, "warnings": ["mind \"this\""] }));
    kubernetes.webhook_host("hooks.system.svc", WebhookHost::InProcess(router));
    let namespaced = json!({ "namespaceSelector": { "matchExpressions":
        [{ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"] }] } });
    let labelled = json!({ "objectSelector": { "matchLabels": { "a": "b" } } });
    let cluster = json!({ "rules": [{ "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*/*"], "scope": "Cluster" }] });
    let status = json!({ "rules": [{ "operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["services/status"] }] });
    let events = json!({ "rules": [{ "operations": ["CREATE"], "apiGroups": ["events.k8s.io"],
        "apiVersions": ["v1"], "resources": ["events"] }] });
    let mut exact = events.clone();
    exact["matchPolicy"] = json!("Exact");
    kubernetes
        .create(configuration(
            "ValidatingWebhookConfiguration",
            "all",
            json!([
                registered("plain", json!({})),
                registered("namespaced", namespaced),
                registered("labelled", labelled),
                registered("cluster", cluster),
                registered("status", status),
                registered("events", events),
                registered("exact", exact),
            ]),
        ))
        .unwrap();
    let who = async |path: &str, object: Value| -> Vec<String> {
        asked.lock().clear();
        let (code, answer) = raw::post(&kubernetes, path, &object).await;
        assert!(code < 300, "{answer}");
        let asked = asked.lock().clone();
        asked.iter().map(|request| request["kind"]["kind"].as_str().unwrap().to_owned()).collect()
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(who(maps, config_map("a", json!({}))).await.len(), 1);
    assert_eq!(who(maps, config_map("b", json!({ "a": "b" }))).await.len(), 2);
    let mut elsewhere = config_map("c", json!({}));
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    assert_eq!(who("/api/v1/namespaces/kube-system/configmaps", elsewhere).await.len(), 2);
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    assert_eq!(who("/api/v1/namespaces", namespace).await, ["Namespace"]);
    let event = json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e", "namespace": "default" },
        "involvedObject": { "kind": "Node", "name": "x" }, "message": "hello" });
    assert_eq!(who("/api/v1/namespaces/default/events", event).await, ["Event"]);
    let seen = asked.lock().clone();
    assert_eq!(seen[0]["resource"]["group"], "events.k8s.io", "an equivalent resource is converted");
    assert_eq!(seen[0]["requestResource"]["group"], "");
    assert_eq!((&seen[0]["object"]["note"], &seen[0]["object"]["message"]), (&json!("hello"), &Value::Null));

    // Warnings are headers.
    let request =
        Request::builder().method(Method::POST).uri(maps).header("content-type", "application/json");
    let body = config_map("d", json!({})).to_string();
    let response =
        kubernetes.router().oneshot(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap();
    assert_eq!(response.headers()["warning"], "299 - \"mind \\\"this\\\"\"");
}

#[tokio::test(start_paused = true)]
async fn mutating_webhooks_go_by_name_and_are_asked_again_where_they_wish() {
    let kubernetes = kubernetes();
    let (router, asked) = webhook(|request| {
        use base64::Engine as _;
        let number = request["object"]["data"].as_object().unwrap().len();
        let patch = json!([{ "op": "add", "path": format!("/data/n{number}"), "value": "x" }]);
        let patch = base64::prelude::BASE64_STANDARD.encode(patch.to_string());
        if number > 4 {
            return json!({ "allowed": true });
        }
        json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
    });
    kubernetes.webhook_host("hooks.system.svc", WebhookHost::InProcess(router));
    let mutating = |name: &str, members: Value| {
        configuration("MutatingWebhookConfiguration", name, json!([registered(name, members)]))
    };
    kubernetes.create(mutating("b", json!({}))).unwrap();
    kubernetes.create(mutating("a", json!({ "reinvocationPolicy": "IfNeeded" }))).unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    let (_, created) = raw::post(&kubernetes, path, &config_map("m", json!({}))).await;
    let sizes: Vec<usize> =
        asked.lock().iter().map(|asked| asked["object"]["data"].as_object().unwrap().len()).collect();
    assert_eq!(sizes, [1, 2, 3], "a, b, and a again because b changed the object");
    assert_eq!(created["data"].as_object().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn slow_broken_and_dangerous_webhooks_are_refused_in_the_servers_words() {
    let kubernetes = kubernetes();
    let never = Router::new().fallback(post(async || std::future::pending::<()>().await));
    kubernetes.webhook_host("hooks.system.svc", WebhookHost::InProcess(never));
    let validating = |members: Value| {
        configuration("ValidatingWebhookConfiguration", "v", json!([registered("slow", members)]))
    };
    kubernetes.create(validating(json!({ "timeoutSeconds": 3 }))).unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    let start = tokio::time::Instant::now();
    let (code, refused) = raw::post(&kubernetes, path, &config_map("m", json!({}))).await;
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            500,
            "Internal error occurred: failed calling webhook \"slow.example.com\": failed to call webhook: Post \
             \"https://hooks.system.svc:443/slow?timeout=3s\": context deadline exceeded"
        )
    );
    kubernetes.delete("validatingwebhookconfigurations", "", "v").unwrap();
    let unknown = kubernetes.create(validating(json!({ "sideEffects": "Unknown" }))).unwrap_err();
    assert!(unknown.message.contains("webhooks[0].sideEffects: Unsupported value: \"Unknown\""), "{unknown}");
    let (stranger, _) = webhook(|_| json!({ "allowed": true, "patch": "e30=" }));
    kubernetes.webhook_host("hooks.system.svc", WebhookHost::InProcess(stranger));
    kubernetes.create(validating(json!({}))).unwrap();
    let (_, refused) = raw::post(&kubernetes, path, &config_map("m", json!({}))).await;
    let message = refused["message"].as_str().unwrap();
    assert!(
        message
            .ends_with("received invalid webhook response: validating webhook may not return response.patch"),
        "{message}"
    );
    kubernetes.delete("validatingwebhookconfigurations", "", "v").unwrap();
    kubernetes.create(validating(json!({ "failurePolicy": "Ignore" }))).unwrap();
    assert_eq!(raw::post(&kubernetes, path, &config_map("m", json!({}))).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn conditions_say_when_a_webhook_is_asked() {
    let kubernetes = kubernetes();
    let (router, asked) = webhook(|_| json!({ "allowed": true }));
    kubernetes.webhook_host("hooks.system.svc", WebhookHost::InProcess(router));
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let try_it = async |policy: &str, expressions: &[&str]| {
        let conditions: Vec<Value> =
            expressions.iter().map(|text| json!({ "name": "c", "expression": text })).collect();
        let members = json!({ "matchConditions": conditions, "failurePolicy": policy });
        let webhooks = json!([registered("conditional", members)]);
        kubernetes.create(configuration("ValidatingWebhookConfiguration", "v", webhooks)).unwrap();
        asked.lock().clear();
        let (code, answer) = raw::post(&kubernetes, path, &config_map("m", json!({ "a": "b" }))).await;
        kubernetes.delete("validatingwebhookconfigurations", "", "v").unwrap();
        (code, asked.lock().len(), answer["message"].as_str().unwrap_or_default().to_owned())
    };
    for (expressions, is_asked) in [
        (&["object.metadata.name == 'm'"][..], 1),
        (&["object.metadata.name.startsWith('x')"], 0),
        (&["request.operation == 'CREATE' && oldObject == null", "size(object.metadata.labels) == 1"], 1),
        (&["request.userInfo.username.startsWith('system:')"], 0),
        (&["object.data.none == 'x'", "false"], 0),
    ] {
        assert_eq!(try_it("Fail", expressions).await, (201, is_asked, String::new()), "{expressions:?}");
    }
    let (code, count, message) = try_it("Fail", &["object.data.none == 'x'"]).await;
    assert_eq!((code, count), (403, 0));
    assert!(
        message.starts_with("configmaps \"m\" is forbidden: expression 'object.data.none == 'x''"),
        "{message}"
    );
    assert_eq!(try_it("Ignore", &["object.data.none == 'x'"]).await.0, 201);
}
