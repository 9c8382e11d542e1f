//! A minimal HTTP client for programs on this machine.

use std::io;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Keeps connections open between requests.
pub type HttpClient = Client<HttpConnector, Full<Bytes>>;

/// A client that reuses its connections.
pub fn client() -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

/// Sends one request and reads the whole response: its status and body.
///
/// # Errors
/// The URL is invalid, there is no answer, or the response ends early.
pub async fn send(
    client: &HttpClient,
    method: Method,
    url: &str,
    body: impl Into<Bytes>,
) -> anyhow::Result<(u16, Bytes)> {
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json")
        .body(Full::new(body.into()))?;
    let answer = client.request(request).await.map_err(|error| match source_of(&error) {
        Some(source) => anyhow::anyhow!("no answer: {source}"),
        None => error.into(),
    })?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.context("the answer breaks off")?;
    Ok((status, body.to_bytes()))
}

/// The system's error behind an error of the client.
fn source_of<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref::<io::Error>())
}

/// GET of one URL.
///
/// # Errors
/// As [`send`].
pub async fn get(url: &str) -> anyhow::Result<(u16, Bytes)> {
    send(&client(), Method::GET, url, Bytes::new()).await
}
