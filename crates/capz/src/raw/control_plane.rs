//! The controller of AzureASOManagedControlPlanes.

use std::sync::Arc;

use capz_api::azure_aso_managed::{AzureAsoManagedClusterSpec, AzureAsoManagedControlPlaneSpec, RawResource};
use capz_planner::pool::EXTERNAL_REPLICAS;
use capz_planner::raw::{ControlPlane, Pool, RawReported, read_back};
use capz_planner::{Observation, Terminal};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::context::manager::{Ended, Manager};
use crate::context::reconcile::Reconcile;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{ObjectKind, reference};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Key, key_of};
use crate::managed::access::{Owner, renewal};
use crate::managed::kubeconfig::Kubeconfig;
use crate::raw::kinds::RawKind as _;
use crate::raw::reconcile::{Held, Reached};

type ControlPlaneReconcile<'a> = Reconcile<'a, AzureAsoManagedControlPlaneSpec, Arc<Cluster>>;

impl Manager {
    /// Reconciles an AzureASOManagedControlPlane with Azure.
    pub(crate) async fn reconcile_raw_control_plane(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.raw_control_planes, &key)?;
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

    /// The node pools of a Cluster with which its managed cluster is created; none while one of them lacks its
    /// MachinePool.
    fn raw_pools_of(&self, cluster: &Key) -> Result<Vec<Map<String, Value>>, Terminal> {
        let mut pools = self.stores.raw_pools.all();
        pools.retain(|pool| {
            pool.metadata.namespace.as_deref() == Some(&cluster.namespace)
                && core::cluster_name(&pool.metadata) == Some(&cluster.name)
                && pool.metadata.deletion_timestamp.is_none()
        });
        pools.sort_by_key(|pool| pool.metadata.name.clone());
        let mut all = Vec::new();
        for pool in pools {
            let owner = core::owner(&pool.metadata, "MachinePool");
            let owner = owner.and_then(|owner| self.stores.machine_pools.get(&key_of(&*pool).beside(owner)));
            let Some(owner) = owner else { return Ok(Vec::new()) };
            let mutated = declared(&owner, None).mutated(pool.spec.resources())?;
            all.extend(Pool::of(&mutated).cloned());
        }
        Ok(all)
    }
}

/// What a MachinePool decides about its node pool. `count` is the number of machines that Azure reports.
pub(crate) fn declared(owner: &core::MachinePool, count: Option<i64>) -> Pool<'_> {
    let is_external = owner
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key(EXTERNAL_REPLICAS));
    Pool {
        version: owner.spec.template.spec.version.as_deref(),
        replicas: owner.spec.replicas.map(i64::from),
        decided_elsewhere: count.filter(|_| is_external),
    }
}

impl ControlPlaneReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let cluster = Arc::clone(&self.own);
        let infrastructure = &cluster.spec.infrastructure_ref;
        if infrastructure.kind != AzureAsoManagedClusterSpec::NAME {
            let words = format!(
                "spec.infrastructureRef of the Cluster is the {} {}: name an AzureASOManagedCluster",
                infrastructure.kind, infrastructure.name
            );
            return self.failed(&Failure::Terminal(Terminal::configuration(words))).await;
        }
        let resources: Vec<RawResource> = self.edited.object.spec.resources().to_vec();
        let version = self.edited.object.spec.version.clone();
        let manager = self.manager;
        let key = Key::of(&cluster.metadata);
        let network = &cluster.spec.cluster_network;
        let is_made =
            self.edited.object.status.as_ref().is_some_and(|status| status.initialized == Some(true));
        let mutate = |held: &Held<'_>| {
            let has_pools = |held: &Value| {
                held["properties"]["agentPoolProfiles"].as_array().is_some_and(|pools| !pools.is_empty())
            };
            // Only the creation of a cluster reads its pools: a bad one does not stop a cluster that has pools.
            let pools = match held("ManagedCluster") {
                Observation::Present(held) if has_pools(held) => Vec::new(),
                Observation::Unknown if is_made => Vec::new(),
                Observation::Unknown => manager.raw_pools_of(&key).unwrap_or_default(),
                Observation::Present(_) | Observation::Absent => manager.raw_pools_of(&key)?,
            };
            let control_plane = ControlPlane {
                cluster: &key.name,
                version: version.as_deref(),
                service_ranges: &network.services.cidr_blocks,
                pod_ranges: &network.pods.cidr_blocks,
                pools,
            };
            control_plane.mutated(&resources)
        };
        let reached = match self.pursue(&mutate).await {
            Ok(reached) => reached,
            Err(why) => return self.not_reached(why).await,
        };
        if !reached.awaited.is_empty() {
            return self.waits(&reached.awaited).await;
        }
        let Some(held) = reached.document("ManagedCluster").cloned() else {
            return Ok(Outcome::Retry);
        };
        let reported = read_back(&held);
        self.edited.status().control_plane_endpoint.clone_from(&reported.endpoint);
        self.edited.status().version.clone_from(&reported.version);
        let outcome = match self.give_access(&reached, &reported).await {
            Ok(outcome) => outcome,
            Err(failure) => return self.failed(&failure).await,
        };
        let is_known = reported.endpoint.is_some();
        let status = self.edited.status();
        (status.ready, status.initialized) = (Some(is_known), Some(is_known));
        self.save_and_wake().await?;
        Ok(outcome)
    }

    /// Writes the exported Secrets, and the kubeconfig of Cluster API.
    async fn give_access(&self, reached: &Reached, reported: &RawReported) -> Result<Outcome, Failure> {
        let cluster = self.own.metadata.name.as_deref().unwrap_or_default();
        let owner = Owner {
            kind: AzureAsoManagedControlPlaneSpec::NAME,
            metadata: &self.edited.object.metadata,
            cluster,
        };
        let own = format!("{cluster}-kubeconfig");
        let access = &reached.context.access;
        if reported.is_without_local_accounts
            && reached
                .placed
                .iter()
                .flat_map(|it| it.resource.exports().unwrap_or_default())
                .any(|export| export.member == "secrets.userCredentials" && export.destination.name == own)
        {
            return Err(Failure::Refused(format!(
                "spec.operatorSpec.secrets.userCredentials names Secret {own}, which gets a kubeconfig with a token, because the cluster \
                 has no local accounts: name another Secret"
            )));
        }
        let mut exported = self.manager.export(access, &reached.placed, &reached.observed, owner).await?;
        // A fleet exports credentials, too.
        let mut of_cluster = |member: &str| exported.remove(&("ManagedCluster", member.to_owned()));
        let found = of_cluster("secrets.adminCredentials").or_else(|| of_cluster("secrets.userCredentials"));
        let Some((destination, text)) = found else {
            return Err(Failure::Terminal(Terminal::configuration(
                "no kubeconfig is exported: name a Secret in spec.operatorSpec.secrets.adminCredentials of the ManagedCluster",
            )));
        };
        let kubeconfig = Kubeconfig::read(text).map_err(|error| Failure::Refused(error.to_string()))?;
        if reported.is_without_local_accounts {
            let (with_token, left) = self.manager.with_token(access, kubeconfig).await?;
            self.manager.keep_kubeconfig(owner, &own, &with_token).await?;
            return Ok(renewal(left, self.manager.settings.sync_period));
        }
        if destination.name != own || destination.key != "value" {
            self.manager.keep_kubeconfig(owner, &own, &kubeconfig).await?;
        }
        Ok(Outcome::Rest)
    }
}
