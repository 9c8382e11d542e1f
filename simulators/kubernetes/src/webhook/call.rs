//! The call of a webhook.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt as _;

use super::config::ClientConfig;
use super::error::{CallError, DialError};
use super::host::WebhookHost;
use super::{connect, resolve};
use crate::object::to_bytes as json_bytes;
use crate::server::handle::Kubernetes;

/// Maximum size of a response: that of a request.
const MAX_ANSWER_BYTES: usize = 3 * 1024 * 1024;

impl Kubernetes {
    /// Overrides a host of webhooks: `name.namespace.svc` for a `clientConfig.service`, the host of the URL (without
    /// its port) for a `clientConfig.url`. A later call for the same host replaces the earlier one.
    ///
    /// Other hosts are resolved as in a cluster: a Service by its EndpointSlices or Endpoints, all others by the
    /// system.
    pub fn webhook_host(&self, host: impl Into<String>, answers: WebhookHost) {
        self.shared.webhook_hosts.lock().insert(host.into(), answers);
    }

    /// Calls a webhook and waits for its response, at most for `timeout`. The state must not be locked meanwhile: the
    /// webhook may itself call this server.
    pub(crate) async fn call_webhook(
        &self,
        config: &ClientConfig,
        question: &Value,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        let url = config.url(timeout);
        let unanswered = |why| CallError::Unanswered { url: url.clone(), why };
        let request = Request::builder()
            .method(Method::POST)
            .uri(config.path_and_query(timeout))
            .header(HOST, config.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .body(Body::from(json_bytes(question)))
            .map_err(|error| CallError::Url(error.to_string()))?;
        let host = self.shared.webhook_hosts.lock().get(config.host()).cloned();
        let exchange = async {
            let answer = match host {
                Some(WebhookHost::InProcess(service)) => match service.oneshot(request).await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                },
                Some(WebhookHost::At(address)) => {
                    let tls = config.tls()?;
                    connect::exchange(&[address], config.host(), tls, request).await.map_err(unanswered)?
                }
                None => {
                    let addresses = resolve::addresses(self, config).await.map_err(unanswered)?;
                    let tls = config.tls()?;
                    connect::exchange(&addresses, config.host(), tls, request).await.map_err(unanswered)?
                }
            };
            let status = answer.status();
            let body = to_bytes(answer.into_body(), MAX_ANSWER_BYTES)
                .await
                .map_err(|error| unanswered(DialError::Broken(error.to_string())))?;
            if !status.is_success() {
                return Err(CallError::Refused(refusal(status, &body)));
            }
            serde_json::from_slice(&body).map_err(|error| CallError::Unreadable(error.to_string()))
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(unanswered(DialError::Deadline)),
        }
    }
}

/// client-go's error for an error response: the message of a Status, or one of its own.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let said =
        json.as_ref().filter(|json| json["kind"] == "Status").and_then(|json| json["message"].as_str());
    if let Some(said) = said {
        return said.to_owned();
    }
    let text = String::from_utf8_lossy(body).trim().to_owned();
    match status {
        StatusCode::NOT_FOUND => "the server could not find the requested resource".to_owned(),
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource".to_owned()
        }
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later".to_owned()
        }
        StatusCode::SERVICE_UNAVAILABLE => "the server is currently unable to handle the request".to_owned(),
        status if status.is_server_error() => {
            let text = if text.is_empty() { "unknown" } else { &text };
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        status => format!(
            "the server responded with the status code {} but did not return more information",
            status.as_u16()
        ),
    }
}
