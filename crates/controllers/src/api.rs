//! Calls to Kubernetes' API, each with an end.

use std::time::Duration;

use kube::api::PatchParams;

/// How long one call may take. kube sets no limit of its own, so that a hung API server would hang a
/// controller for ever; upstream's clients give up after the same time.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The name under which this program's writes appear in `managedFields`.
pub(crate) const FIELD_MANAGER: &str = "cloud-controller-manager";

/// Why a call to Kubernetes' API failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server answered with an error, or could not be reached.
    #[error("{what}: {}", answer(source))]
    Failed {
        /// What was tried, with its subject.
        what: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// There was no answer in time.
    #[error("{what}: no answer within {} s", limit.as_secs_f64())]
    TimedOut {
        /// What was tried, with its subject.
        what: String,
        /// How long it was waited.
        limit: Duration,
    },
}

/// What the API server said; the error's own text has the whole answer in it, as a Rust value.
fn answer(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

impl ApiError {
    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_not_found)
    }

    /// Whether the object has changed since it was read, or another one has its name.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_conflict)
    }

    /// Whether the same call may succeed later: no answer, too many requests, a failing server.
    pub fn is_transient(&self) -> bool {
        match self.status() {
            Some(status) => status.code == 429 || status.code >= 500,
            None => true,
        }
    }

    fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Failed { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::TimedOut { .. } => None,
        }
    }
}

/// Awaits a call for at most [`CALL_TIMEOUT`].
pub(crate) async fn call<T>(
    what: impl FnOnce() -> String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiError> {
    call_within(CALL_TIMEOUT, what, request).await
}

/// Awaits a call for at most `limit`.
pub(crate) async fn call_within<T>(
    limit: Duration,
    what: impl FnOnce() -> String,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(ApiError::Failed { what: what(), source: Box::new(source) }),
        Err(_) => Err(ApiError::TimedOut { what: what(), limit }),
    }
}

/// Parameters of every patch.
pub(crate) fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
