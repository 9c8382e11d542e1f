//! The interface between a writer and its resource.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use logical_time::LogicalTime;

use crate::accepted_intents::Disturbance;
use crate::failure::Failure;

/// A resource that many objects share.
#[async_trait]
pub trait Resource: Send + Sync + 'static {
    /// The owner of an intent. Of two intents of one owner only the later counts.
    type Key: Clone + Ord + fmt::Display + Send + Sync;
    /// The desired state of one owner.
    type Intent: Clone + Send + Sync;
    /// The observed state of the resource.
    type Observed: Send + Sync;
    /// One conditional write (for a scale set: of model and instances).
    type Write: Send + Sync;
    /// What a plan may rely on, because it was claimed before.
    type Claim: Send + Sync;
    /// A message for an owner beside the answer; [`Infallible`](std::convert::Infallible) if there are none.
    type Notice: Clone + Send + Sync;

    /// The resource in words, such as `load balancer kubernetes`.
    fn name(&self) -> String;

    /// The resource as read after `newer_than`, with no operation running on it.
    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure<Self::Notice>>;

    /// Claims what other writers must leave alone, once for the latest observed state: plans are also made for older
    /// states.
    fn claim(&self, observed: &Self::Observed, batch: &[(Self::Key, Self::Intent)]) -> Self::Claim;

    /// Plans the write that brings the resource to the state that the batch wants. Changes nothing.
    fn plan(
        &self,
        observed: &Self::Observed,
        batch: &[(Self::Key, Self::Intent)],
        claim: &Self::Claim,
    ) -> Planned<Self>;

    /// Writes, on condition of the version that was planned against.
    async fn write(
        &self,
        observed: &Self::Observed,
        write: &Self::Write,
    ) -> Result<Written<Self::Observed>, Failure<Self::Notice>>;

    /// A hash of a write without what Azure changes on its own: equal for equal writes.
    fn fingerprint(&self, write: &Self::Write) -> u64;

    /// The owners in a batch that need the write. The others have what they want.
    fn concerned(&self, _write: &Self::Write, batch: &[(Self::Key, Self::Intent)]) -> Vec<Self::Key> {
        batch.iter().map(|(owner, _)| owner.clone()).collect()
    }

    /// The owners whose resources Azure's text names; empty if that is unclear.
    fn blame(&self, _message: &str, _batch: &[(Self::Key, Self::Intent)]) -> Vec<Self::Key> {
        Vec::new()
    }

    /// Repairs what Azure reports as not ready, if the text names no part of the batch. Returns the remaining failure.
    async fn overcome(&self, failure: Failure<Self::Notice>) -> Failure<Self::Notice> {
        failure
    }

    /// The resource as before a write that failed late, if the write left anything behind: a plan on this state reverts
    /// it. Pure.
    fn undone(&self, _before: &Self::Observed, _now: &Self::Observed) -> Option<Self::Observed> {
        None
    }

    /// Reverts what a write that failed late may have left behind.
    async fn restore(&self, _before: &Self::Observed) -> Result<(), Failure<Self::Notice>> {
        Ok(())
    }

    /// Whether an owner's intent does not wait for announced intents.
    fn is_urgent(&self, _key: &Self::Key) -> bool {
        false
    }

    /// Whether a write only repairs, and changes nothing that the batch asks for.
    fn is_repair(&self, _write: &Self::Write) -> bool {
        false
    }

    /// Whether a write serves all owners, although it belongs to none in particular.
    fn serves_all(&self, _write: &Self::Write) -> bool {
        false
    }

    /// Whether an intent counts even if its caller no longer waits for the answer. Otherwise it is dropped when the caller
    /// has gone before it is planned, and the intent of the same owner that it replaced counts again, if its caller
    /// still waits.
    fn outlives_its_caller(&self, _intent: &Self::Intent) -> bool {
        true
    }

    /// Whether an intent is maintained after it was carried out.
    fn is_maintained(&self, _intent: &Self::Intent) -> bool {
        false
    }

    /// An accepted intent in the form that is maintained: without its references to earlier states.
    fn carried_out(&self, intent: Self::Intent) -> Self::Intent {
        intent
    }

    /// Whether an accepted intent is still wanted.
    fn is_wanted(&self, _key: &Self::Key, _intent: &Self::Intent) -> bool {
        true
    }

    /// Records a change of the part of an owner without a pending intent.
    fn disturbed(&self, _key: &Self::Key, _intent: &Self::Intent, _what: Disturbance) {}

    /// The notice for an owner beside the error; `write` is `None` if reading failed.
    fn complaint(
        &self,
        _key: &Self::Key,
        _write: Option<&Self::Write>,
        _failure: &Failure<Self::Notice>,
    ) -> Option<Self::Notice> {
        None
    }
}

/// The result of planning a batch.
pub struct Planned<R: Resource + ?Sized> {
    /// The write; `None` if the resource already has the desired state.
    pub write: Option<R::Write>,
    /// The owners whose intents cannot be carried out, each with the reason.
    pub refused: Vec<(R::Key, Failure<R::Notice>)>,
    /// Notices, each with its owner.
    pub notices: Vec<(R::Key, R::Notice)>,
}

/// The result of a write.
pub enum Written<O> {
    /// It was made: the new state of the resource.
    Whole(O),
    /// An obstacle was removed, and the write was not made: the resource is read and planned again.
    Prepared {
        /// Hash of the obstacle: equal for the same one.
        what: u64,
    },
}

/// The positive answer for the owner of an intent.
pub struct Acknowledged<R: Resource> {
    /// The current state of the resource.
    pub observed: Arc<R::Observed>,
    /// Notices for this owner.
    pub notices: Vec<R::Notice>,
}

impl<R: Resource> Clone for Acknowledged<R> {
    fn clone(&self) -> Self {
        Self { observed: Arc::clone(&self.observed), notices: self.notices.clone() }
    }
}

/// The answer for the owner of an intent.
pub type Answer<R> = Result<Acknowledged<R>, Failure<<R as Resource>::Notice>>;
