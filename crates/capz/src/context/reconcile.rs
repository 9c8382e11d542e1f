//! What the reconciles of all kinds share: an object that is edited, its conditions, and how it is saved.

use std::collections::BTreeMap;

use capz_api::{Condition, Future};
use capz_planner::condition::{Severity, fails, untold};
use capz_planner::operator::OperatorObject;
use capz_planner::terminal::Terminal;
use controllers::Reference;
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::reach::Reach;
use crate::context::azure_context::AzureContext;
use crate::context::manager::{Manager, Stores};
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{Object, ObjectKind, reference};
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::status::ReportedStatus;
use crate::kubernetes::store::{Changes, Key, Store};

/// A kind whose objects have resources in Azure.
pub(crate) trait Reconciled: ObjectKind<Status: ReportedStatus> {
    /// The finalizer by which an object waits for the deletion of its resources.
    const FINALIZER: &'static str;
    /// The condition that says whether the object works.
    const RUNNING: &'static str;

    /// Whether the Secrets and ConfigMaps that Azure Service Operator has written are written for this kind, too.
    const HAS_EXPORTS: bool = false;

    /// The objects of this kind.
    fn store(stores: &Stores) -> &Store<Self>;

    /// Remembers what objects of Azure Service Operator stand for that are taken over.
    fn take(_annotations: &mut BTreeMap<String, String>, _objects: &[OperatorObject]) {}
}

/// One reconcile of one object.
pub(crate) struct Reconcile<'a, K: Reconciled, T> {
    pub manager: &'a Manager,
    pub key: &'a Key,
    pub edited: Edited<K>,
    /// The oldest permitted time of reads.
    pub not_before: Instant,
    /// What only reconciles of this kind need.
    pub own: T,
}

impl<'a, K: Reconciled, T> Reconcile<'a, K, T> {
    /// Begins the reconcile of an object.
    pub fn of(
        manager: &'a Manager,
        key: &'a Key,
        object: &Object<K>,
        not_before: Instant,
        own: T,
    ) -> Result<Self, PatchError> {
        Ok(Self { manager, key, edited: Edited::of(&manager.client, object)?, not_before, own })
    }

    /// This reconcile, with more that it needs.
    pub fn with<U>(self, own: U) -> Reconcile<'a, K, U> {
        let Self { manager, key, edited, not_before, .. } = self;
        Reconcile { manager, key, edited, not_before, own }
    }

    /// The object, for events.
    pub fn about(&self) -> Reference {
        reference(&self.edited.object)
    }

    pub fn is_deleting(&self) -> bool {
        self.edited.object.metadata.deletion_timestamp.is_some()
    }

    /// Sets conditions, and the one that sums them up.
    pub fn set(&mut self, new: impl IntoIterator<Item = Condition>) {
        self.edited.set(new, &self.manager.now());
    }

    /// Writes the differences, and stores the written version.
    pub async fn save(&mut self) -> Result<(), PatchError> {
        let reconciled = self.edited.generation();
        self.edited.show_contract(&self.manager.now());
        self.edited.save_in(K::store(&self.manager.stores)).await?;
        if self.edited.generation() != reconciled {
            // Our own change of the spec has made a new generation, which is reconciled, too.
            self.edited.show_contract(&self.manager.now());
            self.edited.save_in(K::store(&self.manager.stores)).await?;
        }
        Ok(())
    }

    /// Writes the differences while Azure is at work.
    pub async fn save_progress(&mut self) -> Result<(), Failure> {
        let saved = self.save().await;
        saved.map_err(|error| Failure::of_write(&error, self.manager.settings.timeouts.requeue))
    }

    /// Writes the progress of a plan.
    pub async fn report(
        &mut self,
        conditions: impl IntoIterator<Item = Condition>,
        operations: Vec<Future>,
    ) -> Result<(), Failure> {
        self.set(conditions);
        self.edited.set_operations(operations);
        self.save_progress().await
    }

    /// Releases a paused object for moves. Returns whether it is paused.
    pub async fn is_left_alone(&mut self, cluster: &Cluster) -> Result<bool, PatchError> {
        let is_paused = core::is_paused(cluster, self.edited.object.metadata.annotations.as_ref());
        if is_paused {
            self.edited.pause();
            self.save().await?;
        }
        Ok(is_paused)
    }

    /// Reports why the goals were not reached, in a condition and an event. Returns when to try again.
    ///
    /// # Errors
    /// It is not tried again before something changes.
    pub fn report_failure(
        &mut self,
        failure: &Failure,
        condition: &'static str,
    ) -> Result<Outcome, Terminal> {
        let deleting = self.is_deleting();
        let status = self.edited.status();
        let is_ready = status.is_ready();
        if let Some((reason, words)) = failure.condition(deleting, is_ready) {
            let condition = untold(status.conditions().as_ref(), condition, reason, words);
            self.set(condition);
        }
        self.manager.again(failure, self.about()).map_err(|terminal| {
            self.manager.recorder.warning(self.about(), terminal.reason.event(), terminal.message.clone());
            terminal.clone()
        })
    }

    /// Reports the deletion, unless its last attempt failed. Returns whether it is ours to delete.
    pub async fn begin_deletion(&mut self, reason: &str) -> Result<bool, PatchError> {
        if !self.edited.is_held(K::FINALIZER) {
            return Ok(false);
        }
        if !self.edited.has_reason(K::RUNNING, DELETION_FAILED) {
            self.set([fails(K::RUNNING, reason, Severity::Info, "")]);
        }
        self.save().await?;
        Ok(true)
    }

    /// Lets the object go: nothing of it is left in Azure.
    pub async fn end_deletion(mut self) -> Result<Outcome, PatchError> {
        self.edited.let_go(K::FINALIZER);
        self.save().await?;
        self.manager.wake_cluster_that_waits_for(&self.edited.object.metadata);
        Ok(Outcome::Gone)
    }

    /// The inputs for reconciling this object with Azure.
    pub fn reach<'c>(&self, context: &'c impl AzureContext) -> Reach<'c>
    where
        'a: 'c,
    {
        context.reach(self.manager, self.not_before, (K::NAME, &self.key.name))
    }

    /// Whether the object has changed since, so that what is done for it is out of date.
    pub fn has_changed(&self, context: &impl AzureContext, deleting: bool) -> bool {
        let Some(newest) = K::store(&self.manager.stores).get(self.key) else { return true };
        self.edited.is_outdated(&newest.metadata)
            || newest.metadata.deletion_timestamp.is_some() != deleting
            || context.is_paused(self.manager, newest.metadata.annotations.as_ref())
    }

    /// The changes of the object and of its cluster, on which [`Self::has_changed`] depends.
    pub fn changes(&self, context: &impl AzureContext) -> Changes {
        let own = K::store(&self.manager.stores).changes_of(self.key);
        Changes::of([own, context.cluster_changes(self.manager)])
    }
}
