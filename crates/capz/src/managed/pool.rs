//! The controller of AzureManagedMachinePools.

use std::sync::Arc;

use capz_api::Future;
use capz_api::azure_managed_machine_pool::AzureManagedMachinePoolSpec;
use capz_planner::agent_pool::{
    AgentPool, Machines, PoolReplicas, TAGS, end, goals, instances_reading, machines, remembered_tags,
    scale_set_of, scale_sets_reading, sync,
};
use capz_planner::condition;
use capz_planner::pool::EXTERNAL_REPLICAS;
use capz_planner::service::MANAGED_MACHINE_POOL;
use capz_planner::{Goal, Observation, ObservedResources, Plan};
use kube::Api;
use kube::api::{DynamicObject, Patch};
use serde_json::json;
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::azure::reach::Subject;
use crate::context::azure_context::AzureContext as _;
use crate::context::manager::{Ended, Manager, Stores};
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core::{self, MachinePool};
use crate::kubernetes::kinds::NO_ENTRIES;
use crate::kubernetes::patch::{PatchError, params};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, Store, key_of};
use crate::managed::context::{ManagedContext, ManagedObjects};

const RUNNING: &str = "AgentPoolsReady";

/// The MachinePool that owns an AzureManagedMachinePool, and its cluster.
pub(crate) struct ManagedPoolOwner {
    pub owner: Arc<MachinePool>,
    pub objects: ManagedObjects,
}

type PoolReconcile<'a> = Reconcile<'a, AzureManagedMachinePoolSpec, ManagedPoolOwner>;

impl Reconciled for AzureManagedMachinePoolSpec {
    // The established provider has one finalizer for several kinds.
    const FINALIZER: &'static str = "azurecluster.infrastructure.cluster.x-k8s.io";
    const RUNNING: &'static str = RUNNING;

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.managed_pools
    }
}

impl Manager {
    /// Reconciles an AzureManagedMachinePool with Azure.
    pub(crate) async fn reconcile_managed_pool(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.managed_pools, &key)?;
        let owner = core::owner(&object.metadata, "MachinePool").ok_or(Outcome::Idle)?;
        let owner = self.dependency(&object, &self.stores.machine_pools, owner).ok_or(Outcome::Idle)?;
        let objects = self.managed_cluster_of(&object, &owner.spec.cluster_name).ok_or(Outcome::Idle)?;
        let own = ManagedPoolOwner { owner, objects };
        let mut reconcile = Reconcile::of(&self, &key, &object, not_before, own)?;
        let cluster = Arc::clone(&reconcile.own.objects.cluster);
        let is_paused = core::is_paused(&cluster, object.metadata.annotations.as_ref());
        if let Err(error) = reconcile.take_over(is_paused).await {
            return Ok(reconcile.not_taken_over(error).await?);
        }
        if reconcile.is_left_alone(&cluster).await? {
            return Ok(Outcome::Idle);
        }
        Ok(Box::pin(reconcile.run()).await?)
    }
}

impl PoolReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        if self.is_deleting() {
            return self.delete().await;
        }
        let status = self.own.objects.control_plane.status.as_ref();
        if status.and_then(|status| status.initialized) != Some(true) {
            // The pool is created with the cluster, whose reconcile wakes this one.
            return Ok(Outcome::Idle);
        }
        self.edited.hold(AzureManagedMachinePoolSpec::FINALIZER);
        self.save().await?;
        match self.pursue().await {
            Ok(machines) => self.reached(machines).await,
            Err(failure) => self.failed(&failure).await,
        }
    }

    /// Reconciles until the pool is as declared, and returns its machines.
    async fn pursue(&mut self) -> Result<Machines, Failure> {
        let context = self.own.objects.context(self.manager).await?;
        context.check_rival()?;
        let scope = context.scope();
        let pool = scope.managed_cluster().child("agentPools", self.declared().azure_name());
        // The documents are not held while others are read.
        let wanted = match self.drive(&context, false).await?.get(&pool) {
            Observation::Present(held) => Some(sync(held)),
            Observation::Absent | Observation::Unknown => None,
        };
        let Some(wanted) = wanted else {
            let words = "the node pool is gone again".to_owned();
            return Err(Failure::Later { after: self.manager.settings.timeouts.requeue, words });
        };
        self.show_replicas(wanted).await?;
        if self.edited.object.spec.subnet_name.as_deref().is_none_or(str::is_empty) {
            self.edited.object.spec.subnet_name = Some(scope.subnet_name().to_owned());
        }
        if let Some(tags) = remembered_tags(&self.declared()) {
            self.edited.object.metadata.annotations.get_or_insert_default().insert(TAGS.to_owned(), tags);
        }
        self.machines(&context).await
    }

    /// The machines of the pool.
    async fn machines(&self, context: &ManagedContext) -> Result<Machines, Failure> {
        let reach = self.reach(context);
        let name = self.declared().azure_name().to_owned();
        let scale_set = scale_set_of(&name, &reach.list(&scale_sets_reading(context.scope())).await?);
        let Some(scale_set) = scale_set else {
            let words = format!("waiting for the scale set of node pool {name}");
            return Err(Failure::Later { after: self.manager.settings.timeouts.requeue, words });
        };
        Ok(machines(&reach.list(&instances_reading(&scale_set)).await?))
    }

    /// The pool, as goals are derived from it.
    fn declared(&self) -> AgentPool<'_> {
        let (object, owner) = (&self.edited.object, &self.own.owner);
        AgentPool {
            name: object.metadata.name.as_deref().unwrap_or_default(),
            spec: &object.spec,
            annotations: object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES),
            version: owner.spec.template.spec.version.as_deref(),
            replicas: owner.spec.replicas.and_then(|replicas| i32::try_from(replicas).ok()),
        }
    }

    async fn drive(
        &mut self,
        context: &ManagedContext,
        deleting: bool,
    ) -> Result<ObservedResources, Failure> {
        let (operations, reach) = (self.edited.operations(), self.reach(context));
        let mut subject = PoolSubject { reconcile: self, context, deleting };
        let (observed, plan) = reach.run(&mut subject, &operations).await?;
        self.manager.recorder.changed_by_others(&self.about(), &plan, &observed);
        Ok(observed)
    }

    /// Shows the MachinePool how many machines Azure's autoscaler wants.
    async fn show_replicas(&self, wanted: PoolReplicas) -> Result<(), Failure> {
        let owner = &self.own.owner;
        let known = owner.metadata.annotations.as_ref().and_then(|all| all.get(EXTERNAL_REPLICAS));
        let mut patch = json!({});
        if wanted.is_autoscaled && known.is_none_or(|known| known != AUTOSCALED) {
            patch["metadata"]["annotations"][EXTERNAL_REPLICAS] = json!(AUTOSCALED);
        }
        if !wanted.is_autoscaled && known.is_some_and(|known| known == AUTOSCALED) {
            patch["metadata"]["annotations"][EXTERNAL_REPLICAS] = serde_json::Value::Null;
        }
        let count = wanted.replicas.and_then(|count| u32::try_from(count).ok());
        if count.is_some() && count != owner.spec.replicas {
            patch["spec"]["replicas"] = json!(count);
        }
        if patch == json!({}) {
            return Ok(());
        }
        self.manager.patch_machine_pool(&key_of(&**owner), patch).await
    }

    async fn reached(mut self, machines: Machines) -> Result<Outcome, PatchError> {
        self.edited.object.spec.provider_id_list = Some(machines.provider_ids);
        let status = self.edited.status();
        (status.replicas, status.ready) = (Some(machines.replicas), Some(true));
        (status.error_reason, status.error_message) = (None, None);
        self.save().await?;
        Ok(Outcome::Rest)
    }

    async fn failed(mut self, failure: &Failure) -> Result<Outcome, PatchError> {
        let outcome = self.report_failure(failure, RUNNING);
        if !matches!(failure, Failure::Changed | Failure::Later { .. }) {
            self.edited.status().ready = Some(false);
        }
        self.save().await?;
        Ok(outcome.unwrap_or(Outcome::Idle))
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        // Azure deletes the pools of a cluster with it.
        if self.own.objects.cluster.metadata.deletion_timestamp.is_some() {
            return self.end_deletion().await;
        }
        if !self.begin_deletion("Deleting").await? {
            return Ok(Outcome::Gone);
        }
        let gone = async {
            let context = self.own.objects.context(self.manager).await?;
            self.drive(&context, true).await
        };
        match gone.await {
            Ok(_) => self.end_deletion().await,
            Err(failure) => self.failed(&failure).await,
        }
    }
}

/// The value of the annotation [`EXTERNAL_REPLICAS`] on the MachinePool of a pool that Azure's autoscaler scales.
const AUTOSCALED: &str = capz_planner::agent_pool::MANAGED_BY_AUTOSCALER;

impl Manager {
    /// Writes a part of a MachinePool that Azure decides.
    pub(crate) async fn patch_machine_pool(
        &self,
        key: &Key,
        patch: serde_json::Value,
    ) -> Result<(), Failure> {
        let resource = core::resource(&self.core_version, "MachinePool");
        let pools: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let written = pools.patch(&key.name, &params(), &Patch::Merge(&patch)).await;
        written
            .map(drop)
            .map_err(|error| Failure::of_write(&PatchError::Api(error), self.settings.timeouts.requeue))
    }
}

struct PoolSubject<'s, 'a> {
    reconcile: &'s mut PoolReconcile<'a>,
    context: &'s ManagedContext,
    deleting: bool,
}

impl Subject for PoolSubject<'_, '_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let (scope, memory) = (self.context.scope(), self.context.memory());
        let pool = self.reconcile.declared();
        if self.deleting {
            return Ok(end(scope, &pool, &memory));
        }
        Ok(goals(scope, &pool, &memory, observed)?)
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        self.reconcile.report(condition::project(&MANAGED_MACHINE_POOL, plan), operations).await
    }

    fn has_changed(&self) -> bool {
        let owner = &self.reconcile.own.owner;
        let newest = self.reconcile.manager.stores.machine_pools.get(&key_of(&**owner));
        self.reconcile.has_changed(self.context, self.deleting)
            || (!self.deleting && newest.is_none_or(|newest| newest.spec != owner.spec))
    }

    fn changes(&self) -> Changes {
        let owner = key_of(&*self.reconcile.own.owner);
        let owner = self.reconcile.manager.stores.machine_pools.changes_of(&owner);
        self.reconcile.changes(self.context).and(owner)
    }
}
