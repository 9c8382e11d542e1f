//! One id for all calls that belong together: Azure keeps it in its activity log and in what its support looks at.

use http::HeaderValue;
use http::header::HeaderName;
use uuid::Uuid;

/// The header that bears the id.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-ms-correlation-request-id");

tokio::task_local! {
    static ID: HeaderValue;
}

/// Does some work. All calls to Azure that it makes in its own task bear this id.
pub async fn correlated<F: Future>(id: Uuid, work: F) -> F::Output {
    match HeaderValue::try_from(id.to_string()) {
        Ok(id) => ID.scope(id, work).await,
        // Digits and hyphens are a value of a header.
        Err(_) => work.await,
    }
}

/// The id of the work that goes on in this task.
pub(crate) fn id() -> Option<HeaderValue> {
    ID.try_with(HeaderValue::clone).ok()
}
