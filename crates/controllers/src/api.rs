//! Calls to the Kubernetes API, each with a timeout.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::PatchParams;
use kube::client::Body;
use tokio::sync::Semaphore;

/// How long one call may take. kube sets no limit of its own, so that a hung API server would hang a controller for
/// ever; upstream's clients use the same timeout.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of parallel requests about Services and nodes. Each has a connection of its own, of some forty
/// kilobytes that stay allocated until it is closed; and an API server that answers within 50 ms answers for all 5,000
/// nodes in 4 s.
const MAX_REQUESTS: usize = 64;

/// The client, with a limit on parallel requests.
pub(crate) fn with_few_connections(client: &Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, turns) = (client.clone(), Arc::new(Semaphore::new(MAX_REQUESTS)));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, turns) = (client.clone(), Arc::clone(&turns));
        async move {
            // The semaphore is never closed; if it were, the request would still be sent.
            let _turn = turns.acquire().await.ok();
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

/// The field manager of this program's writes in `managedFields`.
pub(crate) const FIELD_MANAGER: &str = "cloud-controller-manager";

/// Why a call to the Kubernetes API failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server answered with an error, or could not be reached.
    #[error("{what}: {}", answer(source))]
    Failed {
        /// The attempted action, with its subject.
        what: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// There was no answer in time.
    #[error("{what}: no answer within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The attempted action, with its subject.
        what: String,
        /// The timeout.
        limit: Duration,
    },
}

/// The API server's message; the error's own text contains the whole response as a Rust value.
pub fn answer(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

impl ApiError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_not_found)
    }

    /// Whether the object has changed since it was read, or another one has its name.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_conflict)
    }

    /// Whether the same call may succeed later: no answer, too many requests, a server error.
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
pub(crate) fn call<T, W, R>(what: W, request: R) -> impl Future<Output = Result<T, ApiError>> + use<T, W, R>
where
    W: FnOnce() -> String,
    R: Future<Output = kube::Result<T>>,
{
    call_within(CALL_TIMEOUT, what, request)
}

/// Awaits a call for at most `limit`.
pub(crate) fn call_within<T, W, R>(
    limit: Duration,
    what: W,
    request: R,
) -> impl Future<Output = Result<T, ApiError>> + use<T, W, R>
where
    W: FnOnce() -> String,
    R: Future<Output = kube::Result<T>>,
{
    // kube's requests are kilobytes. A task for one of hundreds of objects waits for something else most of the time,
    // and would reserve memory for each of its requests.
    let request = Box::pin(request);
    async move {
        match tokio::time::timeout(limit, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(ApiError::Failed { what: what(), source: Box::new(source) }),
            Err(_) => Err(ApiError::TimedOut { what: what(), limit }),
        }
    }
}

/// Parameters of every patch.
pub(crate) fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
