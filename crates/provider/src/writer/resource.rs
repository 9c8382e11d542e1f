//! What a writer asks of the resource that it writes.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use cloud::LogicalTime;

use super::standing::Disturbance;
use crate::Notice;
use crate::failure::Failure;

/// A resource that many objects share.
#[async_trait]
pub(crate) trait Resource: Send + Sync + 'static {
    /// The owner of an intent. Of two intents of one owner only the later counts.
    type Key: Clone + Ord + fmt::Display + Send + Sync;
    /// What one owner wants of the resource.
    type Intent: Clone + Send + Sync;
    /// What is known of the resource.
    type Observed: Send + Sync;
    /// One conditional write (for a scale set: of model and instances).
    type Work: Send + Sync;
    /// What a plan may count on, because it was taken hold of before.
    type Claim: Send + Sync;

    /// The resource in words, such as `load balancer kubernetes`.
    fn name(&self) -> String;

    /// The resource as read after `newer_than`, settled: no operation is running on it.
    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure>;

    /// Takes hold of what other writers must leave alone, once for what was observed last: a plan is made for older
    /// observations as well.
    fn claim(&self, observed: &Self::Observed, batch: &[(Self::Key, Self::Intent)]) -> Self::Claim;

    /// What to write so that the resource is as the batch wants it. It changes nothing.
    fn plan(
        &self,
        observed: &Self::Observed,
        batch: &[(Self::Key, Self::Intent)],
        claim: &Self::Claim,
    ) -> Planned<Self>;

    /// Writes, under the version that was planned against.
    async fn write(
        &self,
        observed: &Self::Observed,
        work: &Self::Work,
    ) -> Result<Written<Self::Observed>, Failure>;

    /// What a write would write, without what Azure changes by itself: equal for equal writes.
    fn fingerprint(&self, work: &Self::Work) -> u64;

    /// The owners in a batch for which a write is made. The others have what they want already.
    fn concerned(&self, work: &Self::Work, batch: &[(Self::Key, Self::Intent)]) -> Vec<Self::Key>;

    /// The owners whose intents Azure's text names; empty where that is unclear.
    fn blame(&self, message: &str, batch: &[(Self::Key, Self::Intent)]) -> Vec<Self::Key>;

    /// Sees to what Azure says is not ready, where the text does not name a part of the batch; gives the failure as it is then.
    async fn overcome(&self, failure: Failure) -> Failure {
        failure
    }

    /// The resource as before a write that failed late, if that left anything behind: what is planned on this takes it back. Pure.
    fn undone(&self, _before: &Self::Observed, _now: &Self::Observed) -> Option<Self::Observed> {
        None
    }

    /// Takes back what a write that failed late may have left behind.
    async fn restore(&self, _before: &Self::Observed) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether an owner's intent does not wait for others that are on the way.
    fn is_urgent(&self, _key: &Self::Key) -> bool {
        false
    }

    /// Whether a write changes nothing that the batch asks for, and only repairs.
    fn is_repair(&self, _work: &Self::Work) -> bool {
        false
    }

    /// Whether all owners are served by what a write changes, although it is no one's in particular.
    fn serves_all(&self, _work: &Self::Work) -> bool {
        false
    }

    /// Whether an intent goes on to be wanted once it was carried out.
    fn stands(&self, _intent: &Self::Intent) -> bool {
        false
    }

    /// An intent as it stands from when it was carried out: without what it says of before.
    fn carried_out(&self, intent: Self::Intent) -> Self::Intent {
        intent
    }

    /// Whether an intent that stands is still wanted.
    fn is_wanted(&self, _key: &Self::Key, _intent: &Self::Intent) -> bool {
        true
    }

    /// Takes note of what happened to the part of an owner who did not ask.
    fn disturbed(&self, _key: &Self::Key, _intent: &Self::Intent, _what: Disturbance) {}

    /// What an owner hears besides the error; `work` is absent where reading failed.
    fn complaint(&self, _key: &Self::Key, _work: Option<&Self::Work>, _failure: &Failure) -> Option<Notice> {
        None
    }
}

/// What planning a batch gave.
pub(crate) struct Planned<R: Resource + ?Sized> {
    /// The write; `None` where the resource already is as it should be.
    pub(crate) work: Option<R::Work>,
    /// The owners whose intents cannot be carried out, each with why.
    pub(crate) refused: Vec<(R::Key, Failure)>,
    /// Notices, each with its owner.
    pub(crate) notices: Vec<(R::Key, Notice)>,
}

/// What came of a write.
pub(crate) enum Written<O> {
    /// It was made: the resource as it is now.
    Whole(O),
    /// What stood in its way was cleared, and it was not made: the resource is read and planned again.
    Prepared {
        /// Of what was cleared: equal for the same.
        what: u64,
    },
}

/// What the owner of an intent gets when the resource is as it wants.
pub(crate) struct Acknowledged<R: Resource> {
    /// The resource as it is now.
    pub(crate) observed: Arc<R::Observed>,
    /// What to tell this owner.
    pub(crate) notices: Vec<Notice>,
}

impl<R: Resource> Clone for Acknowledged<R> {
    fn clone(&self) -> Self {
        Self { observed: Arc::clone(&self.observed), notices: self.notices.clone() }
    }
}

/// What the owner of an intent gets.
pub(crate) type Answer<R> = Result<Acknowledged<R>, Failure>;
