//! Errors of the control API: JSON, as Resource Manager's are.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use azure_engine::refusal::Refusal;

/// The answer to what is refused.
pub(crate) fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    (status, Json(refusal.body())).into_response()
}
