//! One ID for all calls that belong together: Azure records it in its activity log and uses it in support cases.

use http::HeaderValue;
use http::header::HeaderName;
use uuid::Uuid;

/// The header that bears the id.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-ms-correlation-request-id");

tokio::task_local! {
    static ID: HeaderValue;
}

/// Runs `work`. All calls to Azure that it makes in its own task bear this ID.
pub async fn correlated<F: Future>(id: Uuid, work: F) -> F::Output {
    match HeaderValue::try_from(id.to_string()) {
        Ok(id) => ID.scope(id, work).await,
        // Digits and hyphens are a valid header value.
        Err(_) => work.await,
    }
}

/// The ID of the work in this task.
pub(crate) fn id() -> Option<HeaderValue> {
    ID.try_with(HeaderValue::clone).ok()
}
