//! Requests as plain HTTP, for details that a typed client hides.

use axum::body::{Body, to_bytes};
use http::{Method, Request};
use kubernetes_simulator::Kubernetes;
use serde_json::Value;
use tower::ServiceExt;

pub async fn send(
    kubernetes: &Kubernetes,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response =
        kubernetes.router().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    (code, to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
}

pub async fn get(kubernetes: &Kubernetes, path: &str, accept: &str) -> (u16, Value) {
    let (code, bytes) = send(kubernetes, Method::GET, path, &[("accept", accept)], "").await;
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

pub async fn post(kubernetes: &Kubernetes, path: &str, body: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let (code, bytes) = send(kubernetes, Method::POST, path, &headers, &body.to_string()).await;
    (code, serde_json::from_slice(&bytes).unwrap())
}

pub async fn put(kubernetes: &Kubernetes, path: &str, body: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let (code, bytes) = send(kubernetes, Method::PUT, path, &headers, &body.to_string()).await;
    (code, serde_json::from_slice(&bytes).unwrap())
}

/// The events of a watch that ends by itself.
pub async fn watch(kubernetes: &Kubernetes, path: &str) -> Vec<Value> {
    let (code, bytes) = send(kubernetes, Method::GET, path, &[], "").await;
    assert_eq!(code, 200, "{}", String::from_utf8_lossy(&bytes));
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Type and name of each watch event.
pub fn describe_events(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| event["object"]["metadata"]["name"].as_str().unwrap_or("-").to_owned();
    events.iter().map(|event| format!("{} {}", event["type"].as_str().unwrap(), name(event))).collect()
}
