//! Verbs that need a conversion webhook.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::ConversionWebhook;
use super::known::Key;
use crate::kubernetes::Kubernetes;
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::State;

/// How often a verb is run again. One conversion may show that another one is needed, and others may write meanwhile.
const ROUNDS: usize = 100;

/// How many questions are open at the same time, where a list needs many.
const AT_ONCE: usize = 8;

/// An object that nobody knows yet in another version.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) webhook: Arc<ConversionWebhook>,
    pub(super) key: Key,
    /// The object, without its resource version.
    pub(super) object: Value,
    /// The `apiVersion` that it is wanted in.
    pub(super) to: String,
}

/// What must be asked before a verb can go on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Vec<Wanted>);

impl Pending {
    pub(super) fn one(wanted: Wanted) -> Self {
        Self(vec![wanted])
    }

    /// Notes what an outcome lacks, so that all of it is asked at once. `None` where it lacks something.
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

    /// How many objects it is about.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Goes on when nothing is lacking.
    ///
    /// # Errors
    /// Something must be asked first.
    pub(crate) fn settle(self) -> Result<(), ApiError> {
        match self.0.first() {
            None => Ok(()),
            Some(first) => Err(ApiError::pending(&first.webhook.unasked(), self)),
        }
    }

    /// Asks everybody concerned.
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
    /// Runs a verb on objects of a kind, and asks the kind's conversion webhook for what it needs. Everything that waits
    /// goes through here. A verb that is run again draws the same random numbers, and finds what others did meanwhile.
    ///
    /// # Errors
    /// What the verb refuses, and what is wrong with the webhook: 500 without a reason, in the API server's words.
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
