//! The controller of AzureManagedClusters: they show Cluster API the endpoint of their AzureManagedControlPlane.

use std::sync::Arc;

use capz_api::ApiEndpoint;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use tokio::time::Instant;

use crate::context::manager::{Ended, Manager};
use crate::kubernetes::core;
use crate::kubernetes::kinds::{ObjectKind, reference};
use crate::kubernetes::patch::Edited;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::Key;

impl Manager {
    /// Reconciles an AzureManagedCluster: Azure has nothing of it.
    pub(crate) async fn reconcile_managed_cluster(
        self: Arc<Self>,
        key: Key,
        _not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.managed_clusters, &key)?;
        if object.metadata.deletion_timestamp.is_some() || core::is_managed_elsewhere(&object.metadata) {
            return Ok(Outcome::Idle);
        }
        let Some(owner) = core::owner(&object.metadata, "Cluster") else {
            self.recorder.normal(reference(&object), "OwnerRefNotSet", "waiting for its owner Cluster");
            return Ok(Outcome::Idle);
        };
        let cluster = self.dependency(&object, &self.stores.clusters, owner).ok_or(Outcome::Idle)?;
        let control_plane = &cluster.spec.control_plane_ref;
        if core::is_paused(&cluster, object.metadata.annotations.as_ref())
            || control_plane.kind != AzureManagedControlPlaneSpec::NAME
        {
            return Ok(Outcome::Idle);
        }
        let control_plane = self
            .dependency(&object, &self.stores.managed_control_planes, &control_plane.name)
            .ok_or(Outcome::Idle)?;
        let mut edited = Edited::of(&self.client, &object)?;
        if let Some(endpoint) = control_plane.spec.control_plane_endpoint.clone().filter(is_known) {
            edited.object.spec.control_plane_endpoint = Some(endpoint);
        }
        // Cluster API asks for nothing else before it goes on to the control plane, which reports the state of the
        // cluster.
        let status = edited.object.status.get_or_insert_default();
        status.ready = Some(true);
        status.initialization.get_or_insert_default().provisioned = Some(true);
        edited.save_in(&self.stores.managed_clusters).await?;
        Ok(Outcome::Idle)
    }
}

/// Whether an endpoint has a host: Cluster API's core takes an empty one for none.
fn is_known(endpoint: &ApiEndpoint) -> bool {
    endpoint.host.as_deref().is_some_and(|host| !host.is_empty())
}
