//! Calls to the Kubernetes API, each with a limit.

use std::time::Duration;

use tokio::time::timeout;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The server answered with an error, or could not be reached.
    #[error("cannot {what}: {source}")]
    Failed {
        /// What was tried.
        what: String,
        /// The answer.
        source: Box<kube::Error>,
    },
    /// There was no answer in time.
    #[error("cannot {what}: no answer within {} s", LIMIT.as_secs())]
    Timeout {
        /// What was tried.
        what: String,
    },
}

impl CallError {
    /// Whether the server says that the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Failed { source, .. } if matches!(&**source, kube::Error::Api(status) if status.code == 404))
    }
}

/// Waits for an answer.
pub(super) async fn call<T>(
    what: impl Into<String>,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, CallError> {
    match timeout(LIMIT, request).await {
        Err(_) => Err(CallError::Timeout { what: what.into() }),
        Ok(answer) => {
            answer.map_err(|source| CallError::Failed { what: what.into(), source: Box::new(source) })
        }
    }
}
