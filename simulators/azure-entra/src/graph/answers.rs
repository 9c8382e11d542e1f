//! Refusals in the words of Microsoft Graph.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::directory::Entra;
use crate::refusal::correlation;
use crate::verifier::AuthFailure;

/// Why a request is refused: status, code and text ("Microsoft Graph error responses and resource types").
pub(super) struct GraphRefusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl GraphRefusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn no_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "InvalidAuthenticationToken", "Access token is empty.")
    }

    pub(super) fn bad_token(why: &AuthFailure) -> Self {
        let message = match why {
            AuthFailure::Expired { .. } => "Lifetime validation failed, the token is expired.",
            AuthFailure::WrongAudience { .. } => "Access token validation failure. Invalid audience.",
            _ => "Access token validation failure.",
        };
        Self::new(StatusCode::UNAUTHORIZED, "InvalidAuthenticationToken", message)
    }

    pub(super) fn absent(id: &str) -> Self {
        let message = format!(
            "Resource '{id}' does not exist or one of its queried reference-property objects are not present."
        );
        Self::new(StatusCode::NOT_FOUND, "Request_ResourceNotFound", message)
    }

    /// Only users are `me`, and a simulated directory has none.
    pub(super) fn no_user_signed_in() -> Self {
        let message = "/me request is only valid with delegated authentication flow.";
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn unknown_segment(segment: &str) -> Self {
        let message = format!("Resource not found for the segment '{segment}'.");
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn unsupported_filter(text: &str) -> Self {
        let message = format!("Unsupported or invalid query filter clause specified: {text}");
        Self::new(StatusCode::BAD_REQUEST, "Request_UnsupportedQuery", message)
    }

    pub(super) fn bad_body() -> Self {
        let message = "Unable to read JSON request payload. Please ensure Content-Type header is set and payload is \
                       of valid JSON format.";
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn into_answer(self, entra: &Entra, request: &HeaderMap) -> Response {
        let id = entra.next_id().to_string();
        let body = json!({ "error": {
            "code": self.code,
            "message": self.message,
            "innerError": {
                "date": entra.now().strftime("%Y-%m-%dT%H:%M:%S").to_string(),
                "request-id": id,
                "client-request-id": correlation(request).map_or(id.clone(), |given| given.to_string()),
            },
        }});
        (self.status, Json(body)).into_response()
    }
}
