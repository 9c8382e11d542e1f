//! Plain requests over a client, which return status code and body of any response.

use futures::{Stream, StreamExt as _};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

pub const MERGE: &str = "application/merge-patch+json";
pub const JSON: &str = "application/json-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

/// A client with a namespace of its own.
#[derive(Clone)]
pub struct Caller {
    pub client: Client,
    pub namespace: String,
}

/// A server's response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: u16,
    pub body: Value,
}

impl Answer {
    /// The object of a response with this code.
    #[track_caller]
    pub fn ok(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    /// Code, reason and message of a refusal.
    #[track_caller]
    pub fn refused(&self, code: u16, reason: &str) -> &str {
        assert_eq!((self.code, self.body["kind"].as_str()), (code, Some("Status")), "{}", self.body);
        assert_eq!(self.body["status"], "Failure");
        assert_eq!(self.body["code"], code);
        assert_eq!(self.body["reason"].as_str().unwrap_or_default(), reason, "{}", self.body);
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Caller {
    pub async fn new(client: Client, name: &str) -> Caller {
        let namespace = name.replace('_', "-");
        let caller = Caller { client, namespace };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": caller.namespace}});
        caller.post("/api/v1/namespaces", &object).await.ok(201);
        caller
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("user-agent", "agreement/1");
        let bytes = match body {
            Some((content, value)) => {
                request = request.header("content-type", content);
                serde_json::to_vec(value).unwrap()
            }
            None => vec![],
        };
        self.answer(request.header("accept", "application/json").body(Body::from(bytes)).unwrap()).await
    }

    pub async fn answer(&self, request: Request<Body>) -> Answer {
        let response = self.client.send(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Answer { code, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::POST, path, Some(("application/json", object))).await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::PUT, path, Some(("application/json", object))).await
    }

    pub async fn patch(&self, path: &str, content: &str, patch: &Value) -> Answer {
        self.send(Method::PATCH, path, Some((content, patch))).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None).await
    }

    /// `/api/v1/namespaces/…/PLURAL` of the caller's namespace.
    pub fn at(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    /// The events of a watch: type and object.
    pub async fn watch(&self, path: &str) -> impl Stream<Item = (String, Value)> + Unpin + use<> {
        let request =
            Request::builder().uri(path).header("accept", "application/json").body(Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let lines = futures::stream::unfold(
            (response.into_body(), Vec::new()),
            |(mut body, mut buffer): (Body, Vec<u8>)| async move {
                loop {
                    if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = buffer.drain(..=end).collect();
                        let event: Value = serde_json::from_slice(&line).unwrap();
                        let kind = event["type"].as_str().unwrap().to_owned();
                        return Some(((kind, event["object"].clone()), (body, buffer)));
                    }
                    match body.frame().await {
                        Some(Ok(frame)) => buffer.extend(frame.into_data().unwrap_or_default()),
                        _ => return None,
                    }
                }
            },
        );
        lines.boxed()
    }
}

pub fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

/// The names of a list's items.
pub fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}
