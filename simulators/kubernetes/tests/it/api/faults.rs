//! Declared faults.

use std::time::Duration;

use axum::body::Body;
use http::{Method, Request};
use kube::api::{ListParams, PostParams};
use kubernetes_simulator::{Fault, FaultAction, Kubernetes, Options};
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::api::*;

#[tokio::test(start_paused = true)]
async fn a_fault_meets_the_requests_it_names_and_no_more() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    kubernetes.inject(Fault::status(503).verb("create").resource("configmaps").times(2));
    let object = typed(config_map("a", json!({})));
    assert!(api.list(&ListParams::default()).await.is_ok());
    for _ in 0..2 {
        assert_eq!(status(api.create(&PostParams::default(), &object).await).code, 503);
    }
    api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(kubernetes.requests("create", "configmaps"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_the_write_done() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let late = FaultAction::FailAfter { status: 504, code: String::new(), message: String::new() };
    kubernetes.inject(Fault::new(late).verb("create"));
    let object = typed(config_map("a", json!({})));
    assert_eq!(status(api.create(&PostParams::default(), &object).await).code, 504);
    assert!(api.get_opt("a").await.unwrap().is_some());

    kubernetes.inject(Fault::new(FaultAction::DropAnswer).verb("delete"));
    assert!(!matches!(api.delete("a", &Default::default()).await, Err(kube::Error::Api(_)) | Ok(_)));
    assert!(api.get_opt("a").await.unwrap().is_none());
    kubernetes.inject(Fault::new(FaultAction::DropRequest).verb("create"));
    assert!(!matches!(api.create(&PostParams::default(), &object).await, Err(kube::Error::Api(_)) | Ok(_)));
    assert!(api.get_opt("a").await.unwrap().is_none());
    api.create(&PostParams::default(), &object).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn delays_and_retry_after_are_heard() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    kubernetes.inject(Fault::new(FaultAction::delay(Duration::from_secs(7))).verb("list"));
    let start = Instant::now();
    api.list(&ListParams::default()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    kubernetes.inject(Fault::new(FaultAction::Throttle { retry_after: Some(3) }).name("a"));
    let refused = status(api.get("a").await);
    assert_eq!((refused.code, refused.details.unwrap().retry_after_seconds), (429, 3));
}

#[tokio::test(start_paused = true)]
async fn one_seed_makes_one_history() {
    let history = async |seed: u64| {
        let options = kubernetes_simulator::Options { seed, ..Default::default() };
        let kubernetes = kubernetes_simulator::Kubernetes::new(options);
        for name in ["a", "b"] {
            kubernetes.create(service(name)).unwrap();
        }
        kubernetes
            .create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "c-" } }))
            .unwrap();
        let all = [kubernetes.list("svc"), kubernetes.list("cm")].concat();
        all.iter().map(|object| object.value().clone()).collect::<Vec<_>>()
    };
    assert_eq!(history(7).await, history(7).await);
    assert_ne!(history(7).await, history(8).await);
}

#[tokio::test(start_paused = true)]
async fn somebody_else_is_faster() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let read = api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await.unwrap();
    let patch = json!({ "metadata": { "labels": { "by": "somebody" } } });
    kubernetes.inject(Fault::new(FaultAction::Interfere { patch }).verb("update").resource("configmaps"));
    assert_eq!(status(api.replace("a", &PostParams::default(), &read).await).code, 409);
    assert_eq!(kubernetes.get("cm", "default", "a").unwrap()["metadata"]["labels"]["by"], "somebody");
}

#[tokio::test(start_paused = true)]
async fn a_cache_lags_where_the_client_allows_it() {
    let kubernetes = kubernetes();
    for name in ["a", "b", "c"] {
        kubernetes.create(config_map(name, json!({}))).unwrap();
    }
    let newest = kubernetes.resource_version();
    kubernetes.inject(Fault::new(FaultAction::Stale { changes: 2 }).verb("*").times(5));
    let names = async |query: &str| {
        let path = format!("/api/v1/namespaces/default/configmaps{query}");
        let (code, list) = raw::get(&kubernetes, &path, "application/json").await;
        assert_eq!(code, 200, "{list}");
        let version: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        (list["items"].as_array().unwrap().len(), version)
    };
    let (count, version) = names("?resourceVersion=0").await;
    assert!(count == 1 && version < newest, "{count} {version}");
    assert_eq!(names("").await, (3, newest), "the newest state was asked for");
    assert_eq!(names(&format!("?resourceVersion={newest}")).await.0, 3, "and here nothing older than it");
    let path = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion=0";
    let events = raw::watch(&kubernetes, path).await;
    assert_eq!(raw::describe_events(&events), ["ADDED a"], "a watch stays behind, too");
}

#[tokio::test(start_paused = true)]
async fn a_watch_breaks_after_a_while() {
    let kubernetes = kubernetes();
    kubernetes.create(config_map("a", json!({}))).unwrap();
    kubernetes.inject(Fault::new(FaultAction::DropWatch { after_ms: 5000 }).verb("watch"));
    let request = Request::builder().uri("/api/v1/configmaps?watch=1&resourceVersion=0");
    let start = Instant::now();
    let response = kubernetes.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

async fn control(
    kubernetes: &Kubernetes,
    method: Method,
    path: &str,
    host: &str,
    body: &Value,
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(format!("/_cerulean/{path}")).header("host", host);
    let request = request.header("content-type", "application/json").body(Body::from(body.to_string()));
    let response = kubernetes.control_router().oneshot(request.unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (
        code,
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into()),
    )
}

#[tokio::test(start_paused = true)]
async fn another_process_sees_the_journal_and_declares_faults() {
    let kubernetes = kubernetes();
    let ask = async |method: Method, path: &str, body: Value| {
        control(&kubernetes, method, path, "127.0.0.1:8080", &body).await
    };
    let fault = json!({ "name": "bad luck", "verb": "create", "resourceType": "configmaps", "count": 1,
        "action": { "do": "throttle", "retryAfter": 7 } });
    assert_eq!(ask(Method::POST, "faults", fault.clone()).await, (201, json!({ "inForce": 1 })));
    assert_eq!(ask(Method::POST, "faults", json!({ "action": { "do": "nothing" } })).await.0, 400);
    assert_eq!(ask(Method::GET, "faults", json!(null)).await.1.as_array().unwrap().len(), 1);
    let api = config_maps(&kubernetes);
    let params = PostParams { field_manager: Some("tester".to_owned()), ..PostParams::default() };
    for code in [429, 201] {
        let answer = api.create(&params, &typed(config_map("a", json!({})))).await;
        assert_eq!(answer.map_or_else(|error| status::<()>(Err(error)).code, |_| 201), code);
    }
    api.get_opt("none").await.unwrap();
    let (_, journal) = ask(Method::GET, "journal", json!(null)).await;
    let entries = journal["entries"].as_array().unwrap();
    let first = &entries[0];
    assert_eq!(
        (&first["verb"], &first["status"], &first["fault"]),
        (&json!("create"), &json!(429), &json!("bad luck"))
    );
    assert_eq!((&first["resourceType"], &first["fieldManager"]), (&json!("configmaps"), &json!("tester")));
    assert_eq!((&entries[1]["status"], &entries[1]["user"]), (&json!(201), &json!("kubernetes-admin")));
    assert_eq!((&entries[2]["code"], &entries[2]["resource"]), (&json!("NotFound"), &json!("none")));
    assert_eq!(journal["counts"]["writes"], 2);
    assert_eq!((&journal["counts"]["refused"], &journal["counts"]["throttled"]), (&json!(2), &json!(1)));
    let (_, lines) = ask(Method::GET, "journal?after=2&format=lines", json!(null)).await;
    assert!(lines.is_object(), "one line is one entry: {lines}");
    assert_eq!(ask(Method::GET, "journal?since=2", json!(null)).await.0, 400);
    assert_eq!(ask(Method::DELETE, "faults", json!(null)).await.0, 204);
    assert_eq!(ask(Method::GET, "state", json!(null)).await.1["objects"]["configmaps"], 1);
    assert_eq!(control(&kubernetes, Method::GET, "state", "evil.example:80", &json!(null)).await.0, 403);
    let old = kubernetes.resource_version();
    assert_eq!(ask(Method::POST, "compact", json!(null)).await.0, 204);
    let path = format!("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion={old}");
    assert_eq!(raw::watch(&kubernetes, &path).await[0]["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn the_journal_forgets_the_oldest() {
    let kubernetes = Kubernetes::new(Options { journal: 3, ..Options::default() });
    for _ in 0..5 {
        config_maps(&kubernetes).get_opt("a").await.unwrap();
    }
    let journal = kubernetes.journal();
    assert_eq!(journal.entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(journal.counts.requests, 5);
}

#[tokio::test(start_paused = true)]
async fn the_faults_that_the_guide_shows_are_taken() {
    const GUIDE: &str = include_str!("../../../../../docs/simulator-conditions.md");
    let section = GUIDE.split("\n## ").find(|section| section.starts_with("Kubernetes")).unwrap();
    let block = section.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let shown: Value = serde_json::from_str(block).unwrap();
    let kubernetes = kubernetes();
    let (code, answer) = control(&kubernetes, Method::POST, "faults", "localhost", &shown).await;
    assert_eq!(code, 201, "{answer}");
    let taken = control(&kubernetes, Method::GET, "faults", "localhost", &json!(null)).await.1;
    for (taken, shown) in taken.as_array().unwrap().iter().zip(shown.as_array().unwrap()) {
        let mut whole = taken.clone();
        json_patch::merge(&mut whole, shown);
        assert_eq!(&whole, taken);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_watch_stays_behind_until_the_faults_end() {
    let kubernetes = kubernetes();
    let version = kubernetes.create(config_map("a", json!({}))).unwrap().version();
    kubernetes.inject(Fault::new(FaultAction::Stale { changes: 2 }).verb("watch"));
    let told = {
        let kubernetes = kubernetes.clone();
        let path = format!("/api/v1/configmaps?watch=1&timeoutSeconds=60&resourceVersion={version}");
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = kubernetes.router().oneshot(request).await.unwrap();
        let mut lines = response.into_body().into_data_stream();
        let start = Instant::now();
        tokio::spawn(async move {
            use futures::StreamExt as _;
            let mut told = vec![];
            while let Some(Ok(bytes)) = lines.next().await {
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let event: Value = serde_json::from_slice(line).unwrap();
                    let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
                    told.push((start.elapsed().as_secs(), name));
                }
            }
            told
        })
    };
    for name in ["b", "c", "d", "e"] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        kubernetes.create(config_map(name, json!({}))).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    kubernetes.clear_faults();
    let told = told.await.unwrap();
    let told: Vec<(u64, &str)> = told.iter().map(|(at, name)| (*at, name.as_str())).collect();
    assert_eq!(told, [(3, "b"), (4, "c"), (5, "d"), (5, "e")]);
}
