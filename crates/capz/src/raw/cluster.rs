//! The controller of AzureASOManagedClusters.

use std::sync::Arc;

use capz_api::azure_aso_managed::{AzureAsoManagedClusterSpec, AzureAsoManagedControlPlaneSpec};
use capz_planner::Terminal;
use serde_json::Value;
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::context::manager::{Ended, Manager};
use crate::context::reconcile::Reconcile;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{ObjectKind, reference};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::Key;
use crate::managed::access::Owner;
use crate::raw::kinds::RawKind as _;
use crate::raw::reconcile::Held;

type ClusterReconcile<'a> = Reconcile<'a, AzureAsoManagedClusterSpec, Arc<Cluster>>;

impl Manager {
    /// Reconciles an AzureASOManagedCluster with Azure.
    pub(crate) async fn reconcile_raw_cluster(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.raw_clusters, &key)?;
        let Some(owner) = core::owner(&object.metadata, "Cluster") else {
            self.recorder.normal(reference(&object), "OwnerRefNotSet", "waiting for its owner Cluster");
            return Ok(Outcome::Idle);
        };
        let cluster = self.dependency(&object, &self.stores.clusters, owner).ok_or(Outcome::Idle)?;
        let mut reconcile = Reconcile::of(&self, &key, &object, not_before, Arc::clone(&cluster))?;
        let is_paused = core::is_paused(&cluster, object.metadata.annotations.as_ref());
        if let Err(error) = reconcile.take_over(is_paused).await {
            return Ok(reconcile.not_taken_over(error).await?);
        }
        if reconcile.is_left_alone(&cluster).await? {
            return Ok(Outcome::Idle);
        }
        if reconcile.is_deleting() {
            return Ok(Box::pin(reconcile.delete()).await?);
        }
        Ok(Box::pin(reconcile.run()).await?)
    }
}

impl ClusterReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let control_plane = self.own.spec.control_plane_ref.clone();
        if control_plane.kind != AzureAsoManagedControlPlaneSpec::NAME {
            let words = format!(
                "spec.controlPlaneRef of the Cluster is the {} {}: name an AzureASOManagedControlPlane",
                control_plane.kind, control_plane.name
            );
            return self.failed(&Failure::Terminal(Terminal::configuration(words))).await;
        }
        let resources: Vec<Value> =
            self.edited.object.spec.resources().iter().map(|it| Value::Object(it.0.clone())).collect();
        let mutate = |_: &Held<'_>| Ok(resources.clone());
        let reached = match self.pursue(&mutate).await {
            Ok(reached) => reached,
            Err(why) => return self.not_reached(why).await,
        };
        if !reached.awaited.is_empty() {
            return self.waits(&reached.awaited).await;
        }
        let owner = Owner {
            kind: AzureAsoManagedClusterSpec::NAME,
            metadata: &self.edited.object.metadata,
            cluster: self.own.metadata.name.as_deref().unwrap_or_default(),
        };
        let exported =
            self.manager.export(&reached.context.access, &reached.placed, &reached.observed, owner).await;
        if let Err(failure) = exported {
            return self.failed(&failure).await;
        }
        let control_plane = self.manager.stores.raw_control_planes.get(&self.key.beside(&control_plane.name));
        let endpoint = control_plane.and_then(|it| it.status.as_ref()?.control_plane_endpoint.clone());
        let endpoint = endpoint.filter(|it| it.host.as_deref().is_some_and(|host| !host.is_empty()));
        self.edited.status().ready = Some(endpoint.is_some());
        if let Some(endpoint) = endpoint {
            self.edited.object.spec.control_plane_endpoint = Some(endpoint);
        }
        self.save_and_wake().await?;
        Ok(Outcome::Rest)
    }
}
