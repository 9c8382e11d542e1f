//! One request and its answer.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::Error;

/// The timeout of an answer. A new machine gets the first one late.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest document that is read, in bytes: user data alone may be 64 kB.
const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;
/// The longest part of a refusal in an error.
const MAX_TEXT_CHARS: usize = 300;
/// The user agent.
const AGENT: &str = concat!("cerulean/", env!("CARGO_PKG_VERSION"));

/// The address of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    authority: String,
    /// The path before `/metadata`.
    path: String,
}

/// A text that is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the URL of an instance metadata service: write one such as http://169.254.169.254")]
pub struct EndpointError(String);

impl Default for Endpoint {
    /// The endpoint of every machine in Azure.
    fn default() -> Self {
        let host = "169.254.169.254".to_owned();
        Self { authority: host.clone(), host, port: 80, path: String::new() }
    }
}

impl std::str::FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = || EndpointError(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|_| uri.query().is_none()).ok_or_else(wrong)?;
        if uri.scheme_str() != Some("http") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        Ok(Self {
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(80),
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// Sends requests to the service: over a connection of its own for each, unless a test provides the service in process.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Sends one request and returns its answer.
    ///
    /// # Errors
    /// There is no answer.
    async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>>;
}

/// The service, for requests.
#[derive(Debug)]
pub(crate) struct Service {
    pub endpoint: Endpoint,
    pub transport: Box<dyn Transport>,
}

impl Service {
    /// Reads a document.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, limit: Duration) -> Result<T, Error> {
        let body = self.ask(Method::GET, path, Bytes::new(), limit).await?;
        serde_json::from_slice(&body)
            .map_err(|error| Error::Unreadable { url: self.url(path), reason: error.to_string() })
    }

    /// Posts a body.
    pub async fn post(&self, path: &str, body: Bytes) -> Result<(), Error> {
        self.ask(Method::POST, path, body, ANSWER_TIMEOUT).await.map(|_| ())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{}{path}", self.endpoint.authority, self.endpoint.path)
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes, limit: Duration) -> Result<Bytes, Error> {
        let no_answer = |reason: String| Error::NoAnswer { url: self.url(path), reason };
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.endpoint.path))
            .header(HOST, &self.endpoint.authority)
            .header(USER_AGENT, AGENT)
            .header(CONNECTION, "close")
            .header("metadata", "True")
            .body(body)
            .map_err(|error| no_answer(error.to_string()))?;
        let overdue = |_| no_answer(format!("nothing came within {} s", limit.as_secs()));
        let answer = timeout(limit, self.transport.send(request)).await.map_err(overdue)?;
        let (head, body) = answer.map_err(|error| no_answer(error.to_string()))?.into_parts();
        if head.status != StatusCode::OK {
            let text = String::from_utf8_lossy(&body);
            let words: Vec<&str> = text.split_whitespace().collect();
            let text = words.join(" ").chars().take(MAX_TEXT_CHARS).collect();
            return Err(Error::Status { status: head.status, url: self.url(path), text });
        }
        Ok(body)
    }
}

#[async_trait]
impl Transport for Endpoint {
    /// Uses a connection of its own: requests are too few to keep one.
    async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Aborted at the end of this function, however it ends.
        let mut running = JoinSet::new();
        running.spawn(connection);
        let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, MAX_DOCUMENT_BYTES).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls_in_the_clear_and_may_have_a_path() {
        let endpoint = |text: &str| text.parse::<Endpoint>();
        assert_eq!(endpoint("http://169.254.169.254").unwrap(), Endpoint::default());
        assert_eq!(endpoint("http://169.254.169.254/").unwrap(), Endpoint::default());
        let named = endpoint("http://[::1]:8080/instances/pool_1/").unwrap();
        assert_eq!((named.host.as_str(), named.port), ("::1", 8080));
        assert_eq!((named.authority.as_str(), named.path.as_str()), ("[::1]:8080", "/instances/pool_1"));
        for wrong in
            ["", "169.254.169.254", "https://169.254.169.254", "http://a?b", "http://u:p@a", "/metadata"]
        {
            let error = endpoint(wrong).unwrap_err().to_string();
            assert!(error.contains("http://169.254.169.254"), "{error}");
        }
    }
}
