//! What a reconcile knows of the cluster that its object belongs to, whichever of our kinds the cluster has.

use std::collections::BTreeMap;

use capz_planner::Claimant;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::azure::clients::AzureAccess;
use crate::azure::failure::Failure;
use crate::azure::reach::Reach;
use crate::context::manager::Manager;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::store::Key;

/// The cluster that an object belongs to, and Azure with the rights of its identity.
pub(crate) trait AzureContext {
    /// The Cluster.
    fn cluster(&self) -> &Cluster;

    /// Azure, with the rights of the cluster's identity.
    fn access(&self) -> &AzureAccess;

    /// Why another cluster that claims the same resources takes precedence.
    fn rival(&self) -> Option<&str>;

    /// The cluster on whose behalf ownership is judged, for an object of this kind and name.
    fn claimant<'a>(&'a self, kind: &'static str, name: &'a str) -> Claimant<'a>;

    /// Checks that no other cluster takes precedence over this one.
    ///
    /// # Errors
    /// Another cluster does: names it, and says what to do.
    fn check_rival(&self) -> Result<(), Failure> {
        self.rival().map_or(Ok(()), |words| Err(Failure::Refused(words.to_owned())))
    }

    /// The context, if no other cluster takes precedence over this one.
    ///
    /// # Errors
    /// Another cluster does.
    fn without_rival(self) -> Result<Self, Failure>
    where
        Self: Sized,
    {
        self.check_rival().map(|()| self)
    }

    /// The inputs for reconciling an object in this cluster's subscription, with reads no older than `not_before`.
    fn reach<'a>(
        &'a self,
        manager: &'a Manager,
        not_before: Instant,
        (kind, name): (&'static str, &'a str),
    ) -> Reach<'a> {
        Reach {
            access: self.access(),
            reads: &manager.reads,
            written: &manager.written,
            claimant: self.claimant(kind, name),
            not_before,
            requeue: manager.settings.timeouts.requeue,
        }
    }

    /// Whether an object with these annotations is paused by now, or its cluster deleted.
    fn is_paused(&self, manager: &Manager, annotations: Option<&BTreeMap<String, String>>) -> bool {
        let cluster = manager.stores.clusters.get(&Key::of(&self.cluster().metadata));
        cluster.is_none_or(|cluster| core::is_paused(&cluster, annotations))
    }

    /// The changes of the Cluster, on which [`Self::is_paused`] depends.
    fn cluster_changes(&self, manager: &Manager) -> watch::Receiver<()> {
        manager.stores.clusters.changes_of(&Key::of(&self.cluster().metadata))
    }
}
