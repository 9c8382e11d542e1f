//! The controller of AzureASOManagedMachinePools.

use std::sync::Arc;

use capz_api::azure_aso_managed::{
    AzureAsoManagedControlPlaneSpec, AzureAsoManagedMachinePoolSpec, RawResource,
};
use capz_planner::pool::EXTERNAL_REPLICAS;
use capz_planner::raw::{MANAGED_BY_AKS, ReplicasManager, count_of, replicas_manager};
use capz_planner::{Observation, Terminal};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::context::manager::{Ended, Manager};
use crate::context::reconcile::Reconcile;
use crate::kubernetes::core::{self, Cluster, MachinePool};
use crate::kubernetes::kinds::ObjectKind;
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Key, key_of};
use crate::managed::access::Owner;
use crate::raw::control_plane::declared;
use crate::raw::kinds::RawKind as _;
use crate::raw::reconcile::{Held, Reached};

type PoolReconcile<'a> = Reconcile<'a, AzureAsoManagedMachinePoolSpec, Arc<Cluster>>;

impl Manager {
    /// Reconciles an AzureASOManagedMachinePool with Azure.
    pub(crate) async fn reconcile_raw_pool(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.raw_pools, &key)?;
        let owner = core::owner(&object.metadata, "MachinePool").ok_or(Outcome::Idle)?;
        let owner = self.dependency(&object, &self.stores.machine_pools, owner).ok_or(Outcome::Idle)?;
        let cluster = self.cluster_of_raw(&object, &owner.spec.cluster_name).ok_or(Outcome::Idle)?;
        let mut reconcile = Reconcile::of(&self, &key, &object, not_before, Arc::clone(&cluster))?;
        let is_paused = core::is_paused(&cluster, object.metadata.annotations.as_ref());
        if let Err(error) = reconcile.take_over(is_paused).await {
            return Ok(reconcile.not_taken_over(error).await?);
        }
        if reconcile.is_left_alone(&cluster).await? {
            return Ok(Outcome::Idle);
        }
        if reconcile.is_deleting() {
            if cluster.metadata.deletion_timestamp.is_some() {
                return Ok(Box::pin(reconcile.end_with_cluster()).await?);
            }
            return Ok(Box::pin(reconcile.delete()).await?);
        }
        Ok(Box::pin(reconcile.run(owner)).await?)
    }
}

impl PoolReconcile<'_> {
    async fn run(mut self, owner: Arc<MachinePool>) -> Result<Outcome, PatchError> {
        let cluster = Arc::clone(&self.own);
        let control_plane = &cluster.spec.control_plane_ref;
        if control_plane.kind != AzureAsoManagedControlPlaneSpec::NAME {
            let words = format!(
                "spec.controlPlaneRef of the Cluster is the {} {}: name an AzureASOManagedControlPlane",
                control_plane.kind, control_plane.name
            );
            return self.failed(&Failure::Terminal(Terminal::configuration(words))).await;
        }
        let resources: Vec<RawResource> = self.edited.object.spec.resources().to_vec();
        let annotation = owner.metadata.annotations.as_ref().and_then(|all| all.get(EXTERNAL_REPLICAS));
        let manager = match replicas_manager(&resources, annotation.map(String::as_str)) {
            Ok(manager) => manager,
            Err(terminal) => return self.failed(&Failure::Terminal(terminal)).await,
        };
        if let Err(failure) = self.name_manager(&owner, manager).await {
            return self.failed(&failure).await;
        }
        if manager != ReplicasManager::Stays {
            // The watch shows the annotation, by which the number of machines is judged.
            self.save().await?;
            return Ok(Outcome::Idle);
        }
        let mutate = |held: &Held<'_>| {
            let count = match held("ManagedClustersAgentPool") {
                Observation::Present(held) => count_of(held),
                Observation::Absent | Observation::Unknown => None,
            };
            let mutated = declared(&owner, count).mutated(&resources)?;
            Ok(mutated.into_iter().map(Value::Object).collect())
        };
        let reached = match self.pursue(&mutate).await {
            Ok(reached) => reached,
            Err(why) => return self.not_reached(why).await,
        };
        if !reached.awaited.is_empty() {
            return self.waits(&reached.awaited).await;
        }
        if let Err(failure) = self.show(&owner, &reached).await {
            return self.failed(&failure).await;
        }
        self.save().await?;
        Ok(Outcome::Rest)
    }

    /// Writes who decides the number of machines to the MachinePool.
    async fn name_manager(&self, owner: &MachinePool, manager: ReplicasManager) -> Result<(), Failure> {
        let value = match manager {
            ReplicasManager::Stays => return Ok(()),
            ReplicasManager::Aks => json!(MANAGED_BY_AKS),
            ReplicasManager::Nobody => Value::Null,
        };
        let patch = json!({ "metadata": { "annotations": { EXTERNAL_REPLICAS: value } } });
        self.manager.patch_machine_pool(&key_of(owner), patch).await
    }

    /// Shows the machines of the pool.
    async fn show(&mut self, owner: &MachinePool, reached: &Reached) -> Result<(), Failure> {
        let secrets = Owner {
            kind: AzureAsoManagedMachinePoolSpec::NAME,
            metadata: &self.edited.object.metadata,
            cluster: self.own.metadata.name.as_deref().unwrap_or_default(),
        };
        self.manager.export(&reached.context.access, &reached.placed, &reached.observed, secrets).await?;
        let after = self.manager.settings.timeouts.requeue;
        let resource = reached.placed.iter().find(|it| it.resource.kind.kind == "ManagedClustersAgentPool");
        let held = reached.document("ManagedClustersAgentPool");
        let (Some(resource), Some(held)) = (resource, held) else {
            return Err(Failure::Later { after, words: "the node pool is gone again".to_owned() });
        };
        let count = count_of(held);
        let is_external =
            owner.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(EXTERNAL_REPLICAS));
        if is_external && count.is_some() && count != owner.spec.replicas.map(i64::from) {
            let patch = json!({ "spec": { "replicas": count } });
            self.manager.patch_machine_pool(&key_of(owner), patch).await?;
        }
        let cluster = Key::of(&self.own.metadata);
        let group =
            self.node_group(&resource.id().and_then(azure_types::ResourceId::parent), reached).await?;
        let ids = self.manager.nodes_of(&cluster, &resource.resource.azure_name, &group).await?;
        self.edited.object.spec.provider_id_list = Some(ids);
        let status = self.edited.status();
        status.replicas = count.and_then(|count| i32::try_from(count).ok());
        status.ready = Some(true);
        Ok(())
    }

    /// The resource group of the nodes, which the managed cluster names.
    async fn node_group(
        &self,
        cluster: &Option<azure_types::ResourceId>,
        reached: &Reached,
    ) -> Result<String, Failure> {
        let after = self.manager.settings.timeouts.requeue;
        let unknown = || Failure::Later { after, words: "waiting for the managed cluster".to_owned() };
        let id = cluster.as_ref().ok_or_else(unknown)?;
        let version = capz_planner::kind::Kind::of(id).api_version;
        let found =
            crate::azure::reads::get(&reached.context.access.client, id, version, arm::Class::Refresh).await;
        let found = found.map_err(|error| Failure::of(&error, after))?;
        found.as_ref().and_then(|held| capz_planner::raw::read_back(held).node_group).ok_or_else(unknown)
    }
}
