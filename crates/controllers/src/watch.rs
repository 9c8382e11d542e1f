//! Watches of slim types.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as start};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

/// Page size of lists: memory depends on the page, not on the number of objects (5,000 nodes took 89 MB as one list and
/// 19 MB in pages).
const PAGE_SIZE: u32 = 50;

/// How long the API server may take to answer: with the headers of a watch, or with a whole page of a list. Without a
/// limit, a missing answer would leave a leader that sees nothing and reports health. Later silence of a watch is
/// handled by kube, which ends a watch that is silent for too long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// There was no answer in time.
#[derive(Debug, thiserror::Error)]
#[error("the API server did not answer {path} within {} s", ANSWER_TIMEOUT.as_secs())]
struct NoAnswer {
    path: String,
}

/// The client, with a timeout for each answer.
pub fn with_answer_timeout(client: &Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            let path = request.uri().path().to_owned();
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
            let answer = async {
                let (parts, body) = client.send(request).await?.into_parts();
                let body = if is_watch { body } else { Body::from(body.collect().await?.to_bytes()) };
                Ok(http::Response::from_parts(parts, body))
            };
            match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(kube::Error::Service(Box::new(NoAnswer { path }))),
            }
        }
    });
    Client::new(service, namespace)
}

/// Selects the watched objects: all, or those that match selectors.
#[derive(Debug, Default)]
pub struct Selector {
    /// By labels.
    pub labels: Option<String>,
    /// By fields.
    pub fields: Option<String>,
}

/// Passes every event of a watch to `on`, until `stop`. Failures are logged and retried with kube's backoff (0.8 s to
/// 30 s).
pub async fn watch<K>(
    api: Api<K>,
    selector: Selector,
    what: &'static str,
    stop: CancellationToken,
    mut on: impl FnMut(Event<K>),
) where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut config = watcher::Config::default().page_size(PAGE_SIZE);
    config.label_selector = selector.labels;
    config.field_selector = selector.fields;
    let mut events = std::pin::pin!(start(api, config).default_backoff());
    loop {
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(Ok(event)) => on(event),
            Some(Err(error)) => tracing::warn!(kind = what, %error, "watch failed, trying again"),
            None => return,
        }
    }
}
