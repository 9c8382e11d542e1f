//! A scripted Azure: a router in this process that answers by a closure and records its requests.
#![allow(dead_code)] // each test file uses its own part

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arm::{Client, ClientBuilder, Clock, Cloud, Credential, Transport};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

/// 2026-11-21, the start time of every scripted Azure, in seconds since 1970.
pub const START: u64 = 1_795_219_200;

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// Since the start.
    pub at: Duration,
    pub method: String,
    pub uri: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl RecordedRequest {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// An answer.
pub struct Reply(pub u16, pub Vec<(&'static str, String)>, pub Value);

pub fn reply(status: u16, body: Value) -> Reply {
    Reply(status, Vec::new(), body)
}

impl Reply {
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.1.push((name, value.to_string()));
        self
    }
}

pub fn error(status: u16, code: &str) -> Reply {
    reply(status, json!({"error": {"code": code, "message": format!("about {code}")}}))
}

pub type Journal = Arc<Mutex<Vec<RecordedRequest>>>;

/// A transport to an Azure that answers request number `n` (from 0) by the closure. Status 0 means that the connection
/// breaks.
pub fn azure(
    answer: impl Fn(usize, &RecordedRequest) -> Reply + Send + Sync + 'static,
) -> (Transport, Journal) {
    let journal = Journal::default();
    let start = Instant::now();
    let answer = Arc::new(answer);
    let seen = Arc::clone(&journal);
    let router = Router::new().fallback(move |request: Request| {
        let (answer, journal) = (Arc::clone(&answer), Arc::clone(&seen));
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            let seen = RecordedRequest {
                at: start.elapsed(),
                method: parts.method.to_string(),
                uri: parts.uri.to_string(),
                headers: parts
                    .headers
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                    .collect(),
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            let number = {
                let mut journal = journal.lock();
                journal.push(seen.clone());
                journal.len() - 1
            };
            let Reply(status, headers, body) = answer(number, &seen);
            if status == 0 {
                return Response::new(Body::new(Broken));
            }
            let mut response =
                Response::builder().status(status).header("x-ms-request-id", format!("r{number}"));
            for (name, value) in headers {
                response = response.header(name, value);
            }
            let text = match body {
                Value::Null => String::new(),
                Value::String(text) => text,
                other => other.to_string(),
            };
            response.body(Body::from(text)).unwrap()
        }
    });
    (Transport::in_process(router), journal)
}

/// A body that breaks off.
struct Broken;

impl hyper::body::Body for Broken {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, std::io::Error>>> {
        std::task::Poll::Ready(Some(Err(std::io::Error::other("connection reset"))))
    }
}

pub fn builder(transport: Transport) -> ClientBuilder {
    let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
    Client::builder(cloud, transport, Credential::fixed("token-of-the-test"))
        .clock(Clock::following_tokio(Duration::from_secs(START)))
        .seed(7)
}

/// A client of a scripted Azure, and the recorded requests.
pub fn scripted_client(
    answer: impl Fn(usize, &RecordedRequest) -> Reply + Send + Sync + 'static,
) -> (Client, Journal) {
    let (transport, journal) = azure(answer);
    (builder(transport).build(), journal)
}

pub fn group() -> ResourceId {
    ResourceId::group("sub", "group")
}

pub fn balancer(name: &str) -> ResourceId {
    group().resource("Microsoft.Network", "loadBalancers", name)
}

pub fn scale_set(name: &str) -> ResourceId {
    group().resource("Microsoft.Compute", "virtualMachineScaleSets", name)
}

/// The URL of an operation of the public cloud.
pub fn operation_url(name: &str) -> String {
    format!(
        "https://management.azure.com/subscriptions/sub/providers/Microsoft.Network/locations/l/operations/{name}?api-version=1&t=x%2By"
    )
}

/// The times of the requests, in whole seconds.
pub fn seconds(journal: &Journal) -> Vec<u64> {
    journal.lock().iter().map(|request| request.at.as_secs()).collect()
}

/// The requests: methods and last parts of paths.
pub fn asked(journal: &Journal) -> Vec<String> {
    journal
        .lock()
        .iter()
        .map(|request| {
            let path = request.uri.split('?').next().unwrap();
            format!("{} {}", request.method, path.rsplit('/').next().unwrap())
        })
        .collect()
}
