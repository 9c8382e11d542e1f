//! Errors of the control API: JSON, as Resource Manager's are.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;

use azure_engine::error::Refusal;

/// The answer to what is refused.
pub(crate) fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    (status, Json(refusal.body())).into_response()
}

/// What cannot be read is refused in plain text by the framework; here every error is JSON.
pub(crate) async fn as_json(response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let status = response.status();
    if !status.is_client_error() || !kind.starts_with("text/plain") {
        return response;
    }
    let text = match response.into_body().collect().await {
        Ok(text) => String::from_utf8_lossy(&text.to_bytes()).into_owned(),
        Err(_) => String::new(),
    };
    refused(&Refusal::new(status.as_u16(), "InvalidRequest", text))
}
