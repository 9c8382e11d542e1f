//! Refusals as registries word them.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::json;

/// The refusal of an unauthorized client.
pub(super) fn unauthorized(message: &str) -> Response {
    errors(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
}

pub(super) fn unknown(code: &str) -> Response {
    errors(StatusCode::NOT_FOUND, code, "not found in this registry")
}

/// An error as registries write it.
pub(super) fn errors(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "errors": [{ "code": code, "message": message }] }))).into_response()
}
