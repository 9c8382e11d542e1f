//! Rules for every request to the control API and the page: allowed hosts, and the form of errors.

use std::net::IpAddr;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST};

use crate::control_error::refused;
use azure_engine::refusal::Refusal;

/// Limits routes to requests for this machine, and gives all their errors as JSON.
pub(crate) fn guarded<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes.layer(middleware::from_fn(with_json_errors)).layer(middleware::from_fn(refuse_foreign_hosts))
}

/// Refuses requests for a host with a DNS name: a page in a browser could send them, after pointing its name at this
/// machine.
async fn refuse_foreign_hosts(request: Request, next: Next) -> Response {
    let named = request.headers().get(HOST).map(|host| host.to_str().unwrap_or_default());
    let host = named.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    match host {
        Some(host) if !is_own(host) => {
            let text = format!(
                "The control API is not for the host '{host}': ask for it by an address such as 127.0.0.1, or as \
                 localhost."
            );
            refused(&Refusal::new(403, "ForeignHost", text))
        }
        // A caller in this process names no host.
        _ => next.run(request).await,
    }
}

/// Whether only this machine decides what the host resolves to: an address, or `localhost`.
fn is_own(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if port.is_empty() || port.starts_with(':') => name,
            _ => return false,
        },
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Longest error text that is passed on; our own are shorter.
const MAX_TEXT: usize = 64 * 1024;

/// Puts errors that no handler worded, such as those of the router and of body extractors, into the common form.
async fn with_json_errors(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    let status = response.status();
    let told = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if told || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), MAX_TEXT).await.unwrap_or_default();
    let text = match (text.is_empty(), status) {
        (false, _) => String::from_utf8_lossy(&text).into_owned(),
        (true, StatusCode::NOT_FOUND) => format!("There is no {path}."),
        (true, StatusCode::METHOD_NOT_ALLOWED) => format!("{path} takes no {method}."),
        (true, _) => status.canonical_reason().unwrap_or("The request is refused.").to_owned(),
    };
    let (status, code) = match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            (StatusCode::BAD_REQUEST, "InvalidRequestContent")
        }
        StatusCode::NOT_FOUND => (status, "NotFound"),
        StatusCode::METHOD_NOT_ALLOWED => (status, "MethodNotAllowed"),
        StatusCode::PAYLOAD_TOO_LARGE => (status, "RequestContentTooLarge"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (status, "UnsupportedMediaType"),
        _ if status.is_server_error() => (status, "InternalServerError"),
        _ => (status, "InvalidRequest"),
    };
    refused(&Refusal::new(status.as_u16(), code, text))
}

/// The answer to an unknown path.
pub(crate) fn nothing_at(path: &str) -> Response {
    refused(&Refusal::new(404, "NotFound", format!("There is no {path}.")))
}
