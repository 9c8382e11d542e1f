//! Runs verbs that need a conversion webhook.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::ConversionWebhook;
use super::known::Key;
use crate::kubernetes::Kubernetes;
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::State;

/// How often a verb is run again. One conversion may need another one, and other clients may write meanwhile.
const ROUNDS: usize = 100;

/// Maximum number of concurrent requests for a list.
const AT_ONCE: usize = 8;

/// A missing conversion: an object that is not cached in another version.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) webhook: Arc<ConversionWebhook>,
    pub(super) key: Key,
    /// The object, without its resource version.
    pub(super) object: Value,
    /// The requested `apiVersion`.
    pub(super) to: String,
}

/// The conversions that a verb is waiting for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Vec<Wanted>);

impl Pending {
    pub(super) fn one(wanted: Wanted) -> Self {
        Self(vec![wanted])
    }

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

    /// The number of missing conversions.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Succeeds if nothing is missing.
    ///
    /// # Errors
    /// Conversions are missing.
    pub(crate) fn settle(self) -> Result<(), ApiError> {
        match self.0.first() {
            None => Ok(()),
            Some(first) => Err(ApiError::pending(&first.webhook.unasked(), self)),
        }
    }

    /// Requests all missing conversions.
    async fn ask(self, kubernetes: &Kubernetes) -> Result<(), ApiError> {
        let asked = self.0.into_iter().map(|wanted| ConversionWebhook::ask(kubernetes, wanted));
        let mut answers = stream::iter(asked).buffered(AT_ONCE);
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
                Err(ApiError { pending: Some(pending), .. }) => pending.ask(self).await?,
                settled => return settled,
            }
        }
        let definition = &kind.shelf;
        Err(ApiError::internal(&format!(
            "conversion webhook for {definition} was asked {ROUNDS} times, and its objects still change"
        )))
    }
}
