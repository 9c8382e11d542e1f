//! Runs verbs that need a conversion webhook.

use futures::{StreamExt as _, stream};

use super::webhook::{ConversionWebhook, Pending};
use crate::registry::Kind;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;
use crate::verbs::State;

/// How often a verb is run again. One conversion may need another one, and other clients may write meanwhile.
const ROUNDS: usize = 100;

/// Maximum number of concurrent requests for a list.
const AT_ONCE: usize = 8;

impl Pending {
    /// Collects the missing conversions of an outcome, so that all of them are requested at once. Returns `None` if any
    /// is missing.
    ///
    /// # Errors
    /// All other errors.
    pub(crate) fn note<T>(&mut self, outcome: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(ApiError { pending: Some(more), .. }) => {
                self.0.extend(more.0);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Succeeds if nothing is missing.
    ///
    /// # Errors
    /// Conversions are missing.
    pub(crate) fn settle(self) -> Result<(), ApiError> {
        match self.0.first() {
            None => Ok(()),
            Some(first) => Err(ApiError::pending(&first.webhook.uncalled(), self)),
        }
    }

    /// Requests all missing conversions.
    async fn request(self, kubernetes: &Kubernetes) -> Result<(), ApiError> {
        let calls = self.0.into_iter().map(|missing| ConversionWebhook::call(kubernetes, missing));
        let mut answers = stream::iter(calls).buffered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            answer.map_err(|why| ApiError::new(500, "", why))?;
        }
        Ok(())
    }
}

impl Kubernetes {
    /// Runs a verb on objects of a kind, and calls the kind's conversion webhook as needed. Every operation that may
    /// wait for the webhook uses this function. A verb that is run again draws the same random numbers, and sees what
    /// other clients wrote meanwhile.
    ///
    /// # Errors
    /// The verb's own errors, and failures of the webhook: 500 without a reason, with the API server's message.
    pub(crate) async fn settled<T>(
        &self,
        kind: &Kind,
        verb: impl Fn(&mut State) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if !kind.is_converted() {
            return verb(&mut self.shared.state.lock());
        }
        let seed = self.shared.state.lock().new_seed();
        for _ in 0..ROUNDS {
            let outcome = self.shared.state.lock().seeded(seed, &verb);
            match outcome {
                Err(ApiError { pending: Some(pending), .. }) => pending.request(self).await?,
                settled => return settled,
            }
        }
        let definition = &kind.shelf;
        Err(ApiError::internal(&format!(
            "conversion webhook for {definition} was asked {ROUNDS} times, and its objects still change"
        )))
    }
}
