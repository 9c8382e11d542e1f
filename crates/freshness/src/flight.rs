//! One request at a time for one question, shared by all that wait for it.

use std::time::Duration;

use logical_time::LogicalTime;
use tokio::time::Instant;

use crate::Moment;

/// A failure that several callers get.
pub trait SharedError: Clone {
    /// How long the server wants no other request: until then every caller gets this failure.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The failure for a caller that comes when only this much of [`Self::retry_after`] is left.
    #[must_use]
    fn with_retry_after(self, _left: Duration) -> Self {
        self
    }
}

/// The requests for one question: at most one is in flight.
///
/// A failed request is the failure of all callers that came before it was sent. If the server said when to retry, it is
/// the failure of all callers before that time: thousands of nodes need one list.
#[derive(Debug)]
pub(crate) struct Flight<E>(tokio::sync::Mutex<Option<FailedRequest<E>>>);

#[derive(Debug)]
struct FailedRequest<E> {
    asked: LogicalTime,
    failed: Instant,
    error: E,
}

impl<E: SharedError> FailedRequest<E> {
    fn for_caller(&self, came: LogicalTime) -> Option<E> {
        let left = self.error.retry_after().map(|wait| wait.saturating_sub(self.failed.elapsed()));
        match left.filter(|left| !left.is_zero()) {
            Some(left) => Some(self.error.clone().with_retry_after(left)),
            None => (self.asked > came).then(|| self.error.clone()),
        }
    }
}

impl<E> Default for Flight<E> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }
}

impl<E: SharedError> Flight<E> {
    /// Answers a caller that came at `came`: from what is `known` once no request is in flight, with a shared failure,
    /// or by a request of its own, whose answer it has to `store`.
    pub(crate) async fn share<V, A, F>(
        &self,
        came: LogicalTime,
        known: impl FnOnce() -> Option<A>,
        ask: impl FnOnce() -> F,
        store: impl FnOnce(Moment, V) -> A,
    ) -> Result<A, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let mut failed = self.0.lock().await;
        if let Some(answer) = known() {
            return Ok(answer);
        }
        if let Some(error) = failed.as_ref().and_then(|failed| failed.for_caller(came)) {
            return Err(error);
        }
        // Other callers of this moment may join the request before it is sent.
        tokio::task::yield_now().await;
        let asked = Moment::now();
        match ask().await {
            Ok(value) => {
                *failed = None;
                Ok(store(asked, value))
            }
            Err(error) => {
                *failed =
                    Some(FailedRequest { asked: asked.order, failed: Instant::now(), error: error.clone() });
                Err(error)
            }
        }
    }
}
