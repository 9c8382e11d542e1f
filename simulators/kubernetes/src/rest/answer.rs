//! Responses.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;

use crate::object::to_bytes;
use crate::status::ApiError;

/// Warnings for the client, beside the response.
pub(super) type Warnings = Arc<Mutex<Vec<String>>>;

pub(super) const JSON: &str = "application/json";

pub(super) fn bytes(status: StatusCode, media_type: &'static str, body: Bytes) -> Response<Body> {
    stream(status, media_type, Body::from(body))
}

pub(super) fn json(status: StatusCode, body: &Value) -> Response<Body> {
    bytes(status, JSON, to_bytes(body))
}

pub(super) fn stream(status: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

pub(super) fn text(status: StatusCode, body: &'static str) -> Response<Body> {
    bytes(status, "text/plain; charset=utf-8", Bytes::from_static(body.as_bytes()))
}

/// Adds a `Warning` header, which kubectl and client-go print.
pub(super) fn warn(response: &mut Response<Body>, text: &str) {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    // A warning that is invalid in a header is dropped: the response matters more.
    if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
        response.headers_mut().append(WARNING, value);
    }
}

pub(super) fn error(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &error.to_status());
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
