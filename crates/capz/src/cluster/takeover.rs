//! Takes a cluster over from the established provider: Azure Service Operator stops writing to its resources.

use tokio::time::Instant;

use crate::cluster::edited::{EditedCluster, reference};
use crate::context::manager::Manager;
use crate::kubernetes::operator::{self, OperatorError};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::key_of;

/// Why a cluster is not taken over yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum TakeoverError {
    /// Objects of Azure Service Operator are in the way.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The AzureCluster was not written.
    #[error(transparent)]
    Write(#[from] PatchError),
}

impl Manager {
    /// Prevents Azure Service Operator from writing to and deleting from Azure for this cluster.
    pub(super) async fn take_over(
        &self,
        edited: &mut EditedCluster,
        is_paused: bool,
        not_before: Instant,
    ) -> Result<(), TakeoverError> {
        let owner = edited.object.metadata.uid.clone().unwrap_or_default();
        // A paused cluster may be moved next, so its objects are read afresh; otherwise a recent list will do.
        let not_before = if is_paused { not_before } else { operator::lately() };
        let objects = self.operator.make_harmless(&owner, not_before).await?;
        if is_paused || objects.is_empty() {
            return Ok(());
        }
        let annotations = edited.object.metadata.annotations.get_or_insert_default();
        if let Some((key, text)) = operator::kept_besides(annotations, &objects) {
            let words = format!(
                "Azure Service Operator is configured not to delete these, so they are used as they are (annotation {key}): {text}"
            );
            annotations.insert(key, text);
            edited.save_in(&self.stores.azure_clusters).await?;
            self.recorder.normal(reference(&edited.object), "ResourcesKept", words);
        }
        let going = objects.iter().filter(|object| !object.is_deleted()).count();
        if going > 0 {
            let words = format!(
                "deletes {going} objects of Azure Service Operator; their resources in Azure stay, and this program manages them"
            );
            self.recorder.normal(reference(&edited.object), "TakenOver", words);
        }
        Ok(self.operator.remove(&owner).await?)
    }

    /// Reports why a cluster is not taken over yet. Until then it cannot be moved.
    pub(super) async fn not_taken_over(&self, mut edited: EditedCluster, error: &TakeoverError) -> Outcome {
        let key = key_of(&edited.object);
        let error = match error {
            TakeoverError::Operator(error) => error,
            TakeoverError::Write(error) => return self.lost(&key, error),
        };
        if error.is_waiting() {
            tracing::info!(cluster = %key, words = %error, "retrying later");
            return Outcome::After(operator::GOING);
        }
        self.recorder.warning(reference(&edited.object), "OperatorObjectsLeft", error.to_string());
        edited.block_move();
        match edited.save_in(&self.stores.azure_clusters).await {
            Ok(()) => Outcome::Retry,
            Err(error) => self.lost(&key, &error),
        }
    }
}
