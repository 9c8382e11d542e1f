//! The beginning and the end of a cluster: access to Azure with its identity, which it holds until nothing of it is left.

use capz_planner::condition::{Severity, fails};
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::context::identity::{IdentityError, UsesIdentity};
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;

/// The annotation of a cluster that has no resources left in Azure; its value is the object's UID.
const ENDED: &str = "sigs.k8s.io/cluster-api-provider-azure-deleted";

/// Whether an earlier reconcile has found that the cluster has no resources left in Azure.
pub(crate) fn has_ended(object: &ObjectMeta) -> bool {
    let ended = object.annotations.as_ref().and_then(|annotations| annotations.get(ENDED));
    ended.is_some() && ended == object.uid.as_ref()
}

impl<K: Reconciled + UsesIdentity, T> Reconcile<'_, K, T> {
    /// Reports why a cluster cannot access Azure.
    pub(crate) async fn without_access(mut self, error: &IdentityError) -> Result<Outcome, PatchError> {
        self.manager.recorder.warning(self.about(), "CreateClusterScopeFailed", error.to_string());
        // Failures that need a change by the user are also set as the condition; an older condition would be out of
        // date.
        let reason = match error {
            IdentityError::NotAllowed { .. } => Some("NamespaceNotAllowedByIdentity"),
            error if error.may_pass() => None,
            _ => Some("CreateClusterScopeFailed"),
        };
        if let Some(reason) = reason {
            self.set([fails(K::RUNNING, reason, Severity::Error, error.to_string())]);
        }
        self.save().await?;
        Ok(Outcome::Retry)
    }

    /// Removes the finalizer of a cluster that has no resources left in Azure. An annotation records that first: once
    /// the identity is released it may be deleted, and Azure could not be read again.
    pub(crate) async fn let_go(mut self) -> Result<Outcome, PatchError> {
        let uid = self.edited.object.metadata.uid.clone().unwrap_or_default();
        self.edited.object.metadata.annotations.get_or_insert_default().insert(ENDED.to_owned(), uid);
        self.save().await?;
        self.manager.hold_identity(&self.edited.object, false).await?;
        self.edited.let_go(K::FINALIZER);
        self.save().await?;
        Ok(Outcome::Gone)
    }
}
