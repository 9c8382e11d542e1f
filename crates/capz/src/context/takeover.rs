//! Takes an object over from the established provider: Azure Service Operator stops writing to its resources.

use capz_planner::operator::{KEPT, keeping};
use k8s::api::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core;
use crate::kubernetes::kinds::{API_VERSION, Object};
use crate::kubernetes::operator::{self, OperatorError};
use crate::kubernetes::operator_exports::Heir;
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;

/// Why an object is not taken over yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeoverError {
    /// Objects of Azure Service Operator are in the way.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The object was not written.
    #[error(transparent)]
    Write(#[from] PatchError),
}

impl<K: Reconciled, T> Reconcile<'_, K, T> {
    /// Prevents Azure Service Operator from writing to and deleting from Azure for this object.
    pub(crate) async fn take_over(&mut self, is_paused: bool) -> Result<(), TakeoverError> {
        let manager = self.manager;
        let owner = operator::owner_of(&self.edited.object);
        // A paused object may be moved next, so its objects are read afresh; otherwise a recent list will do.
        let not_before = if is_paused { self.not_before } else { operator::lately() };
        let objects = manager.operator.make_harmless(&owner, not_before).await?;
        if objects.is_empty() {
            return Ok(());
        }
        // What the operator's objects say is remembered before they go, and before the owner is moved without them.
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        let before = annotations.clone();
        let kept = keeping(annotations, &objects);
        annotations.extend(kept.iter().map(|text| (KEPT.to_owned(), text.clone())));
        K::take(annotations, &objects);
        if *annotations != before {
            self.save().await?;
        }
        if let Some(text) = kept {
            let words = format!(
                "Azure Service Operator is configured not to delete these, so they are used as they are (annotation {KEPT}): {text}"
            );
            manager.recorder.normal(self.about(), "ResourcesKept", words);
        }
        if is_paused {
            return Ok(());
        }
        let heir = K::HAS_EXPORTS.then(|| heir(&self.edited.object));
        manager.operator.take_exports(&objects, heir.as_ref()).await?;
        let going = objects.iter().filter(|object| !object.is_deleted()).count();
        if going > 0 {
            let words = format!(
                "deletes {going} objects of Azure Service Operator; their resources in Azure stay, and this program manages them"
            );
            manager.recorder.normal(self.about(), "TakenOver", words);
        }
        Ok(manager.operator.remove(&owner).await?)
    }

    /// Reports why the object is not taken over yet. Until then it cannot be moved.
    pub(crate) async fn not_taken_over(mut self, error: TakeoverError) -> Result<Outcome, PatchError> {
        let error = match error {
            TakeoverError::Operator(error) => error,
            TakeoverError::Write(error) => return Err(error),
        };
        if error.is_waiting() {
            tracing::info!(object = %self.key, reason = %error, "retrying later");
            return Ok(Outcome::After(operator::GOING));
        }
        self.manager.recorder.warning(self.about(), "OperatorObjectsLeft", error.to_string());
        self.edited.block_move();
        self.save().await?;
        Ok(Outcome::Retry)
    }
}

fn heir<K: Reconciled>(object: &Object<K>) -> Heir {
    let metadata = &object.metadata;
    let reference = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: K::NAME.to_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    Heir { cluster: core::cluster_name(metadata).unwrap_or_default().to_owned(), reference }
}
