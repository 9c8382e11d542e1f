//! The controller of AzureMachinePoolMachines, each of which represents an instance of a scale set. The state of the
//! instance comes from its pool's observation, the state of the node from the Machine that owns the object.

use std::sync::Arc;

use capz_api::azure_machine_pool::{
    AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, AzureMachinePoolSpec,
};
use capz_api::{Future, ObjectReference};
use capz_planner::condition::{Severity, fails, holds};
use capz_planner::pool::{Instance, Node, instance_end, is_instance_of};
use capz_planner::{Claimant, Goal, Observation, ObservedResources, Plan};
use kube::Api;
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::azure::instances::{PoolObservation, is_within};
use crate::azure::reach::Subject;
use crate::context::azure_context::AzureContext as _;
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::ClusterObjects;
use crate::context::manager::{Ended, Manager, Stores};
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core::{self, MachinePool};
use crate::kubernetes::kinds::{self, AzureMachinePool, ObjectKind};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, Store};
use crate::pool::reconcile::pool_scope;

const RUNNING: &str = "VMRunning";

type PoolMachineReconcile<'a> = Reconcile<'a, AzureMachinePoolMachineSpec, ()>;

impl Reconciled for AzureMachinePoolMachineSpec {
    const FINALIZER: &'static str = "azuremachinepoolmachine.infrastructure.cluster.x-k8s.io";
    const RUNNING: &'static str = RUNNING;

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.azure_machine_pool_machines
    }
}

impl Manager {
    /// Reports the state of its instance in an AzureMachinePoolMachine; or deletes the instance, once its node is
    /// drained.
    pub(crate) async fn reconcile_pool_machine(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.stores.azure_machine_pool_machines.get(&key).ok_or(Outcome::Gone)?;
        Ok(Reconcile::of(&self, &key, &object, not_before, ())?.run().await?)
    }
}

impl PoolMachineReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let metadata = &self.edited.object.metadata;
        let deleting = metadata.deletion_timestamp.is_some();
        let stores = &self.manager.stores;
        let cluster =
            core::cluster_name(metadata).and_then(|name| stores.clusters.get(&self.key.beside(name)));
        if cluster.is_some_and(|cluster| core::is_paused(&cluster, metadata.annotations.as_ref())) {
            return Ok(Outcome::Idle);
        }
        let name = kinds::owner(metadata, AzureMachinePoolSpec::NAME);
        let pool = name.map(|name| self.key.beside(name));
        let Some((pool_key, pool)) =
            pool.clone().and_then(|key| Some((key.clone(), stores.azure_machine_pools.get(&key)?)))
        else {
            return if deleting { self.delete_without(pool).await } else { Ok(Outcome::Idle) };
        };
        // The manager that reconciles the pool also reconciles its machines, whatever their labels say.
        if !self.manager.settings.takes(pool.metadata.labels.as_ref()) {
            return Ok(Outcome::Idle);
        }
        if deleting {
            return self.delete(&pool_key, &pool).await;
        }
        if pool.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Idle);
        }
        self.report_instance(&pool_key).await
    }

    /// Reports the state of the instance and its node.
    async fn report_instance(&mut self, pool: &Key) -> Result<Outcome, PatchError> {
        let manager = self.manager;
        let id = self.edited.object.spec.provider_id.clone().unwrap_or_default();
        // The pool wakes this object after its next observation.
        let Some(observation) = manager.instances.latest(pool) else { return Ok(Outcome::Reported) };
        let Some(instance) = observation.see(&id) else { return Ok(Outcome::Reported) };
        let machine = manager.machine_of(&self.edited.object);
        let marked = machine.as_ref().is_some_and(|machine| {
            machine.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(core::DELETE_FIRST))
        });
        if marked {
            let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
            annotations.insert(core::DELETE_FIRST.to_owned(), "true".to_owned());
        }
        let node =
            machine.as_ref().and_then(|machine| machine.status.as_ref()).map(core::MachineStatus::node);
        let node = node.unwrap_or_default();
        let status = self.edited.status();
        let before = status.clone();
        let version =
            machine.as_ref().and_then(|machine| machine.status.as_ref()?.node_info.kubelet_version.clone());
        set_status(status, instance, &observation, &node, version);
        let running = match instance.state.as_str() {
            "Succeeded" => holds(RUNNING),
            "Failed" => fails(RUNNING, "VMProvisionFailed", Severity::Error, ""),
            state => fails(RUNNING, state, Severity::Info, ""),
        };
        let counts = |status: &AzureMachinePoolMachineStatus| {
            let node = status.node_ref.as_ref().and_then(|node| node.name.clone());
            (status.ready, node, status.version.clone())
        };
        let news = counts(&before) != counts(status);
        // Its virtual machine may be deleted, too.
        let lost_node = before.ready == Some(true) && status.ready != Some(true);
        let failed = instance.state == "Failed" && before.provisioning_state.as_deref() != Some("Failed");
        let deleted = instance.state == "Deleting";
        let new = [Some(running), instance.bootstrap_condition(), Some(node.condition(&instance.state))];
        self.set(new.into_iter().flatten());
        self.save().await?;
        if failed {
            let words = "the provisioning state of the instance is Failed: it is replaced";
            manager.recorder.warning(self.about(), "FailedVMState", words);
        }
        if lost_node {
            manager.instances.outdate(pool);
        }
        if news {
            manager.pools.wake(pool.clone());
        }
        // The instance is being deleted in Azure: its node is drained as far as there is time.
        if let Some(machine) =
            machine.filter(|machine| deleted && machine.metadata.deletion_timestamp.is_none())
        {
            manager.delete_machine(&machine).await?;
        }
        Ok(Outcome::Reported)
    }

    async fn delete(mut self, pool_key: &Key, pool: &AzureMachinePool) -> Result<Outcome, PatchError> {
        if !self.edited.is_held(AzureMachinePoolMachineSpec::FINALIZER) {
            return Ok(Outcome::Gone);
        }
        // The scale set is deleted with all its instances.
        if pool.metadata.deletion_timestamp.is_some() {
            return self.let_go(Some(pool_key)).await;
        }
        // Deleting this object alone means to remove the machine, and not the workload on it: its Machine is deleted
        // first, so that the node is drained.
        if let Some(machine) = self.manager.machine_of(&self.edited.object) {
            if machine.metadata.deletion_timestamp.is_none() {
                self.manager.delete_machine(&machine).await?;
                return Ok(Outcome::Idle);
            }
            if !core::is_drained(&machine) {
                return Ok(Outcome::Idle);
            }
        }
        let Some((owner, cluster)) = self.manager.pool_owner_of(pool) else { return Ok(Outcome::Idle) };
        match self.end(&owner, &cluster, pool_key, pool).await {
            Ok(()) => self.let_go(Some(pool_key)).await,
            Err(failure) => Ok(self.manager.again(&failure, self.about()).unwrap_or_else(|terminal| {
                self.manager.recorder.warning(self.about(), "ReconcileError", terminal.to_string());
                Outcome::Retry
            })),
        }
    }

    /// Removes the finalizer of an object whose pool, and so its scale set, is deleted: only the API server knows that
    /// for certain.
    async fn delete_without(self, pool: Option<Key>) -> Result<Outcome, PatchError> {
        if let Some(pool) = pool {
            let resource = kinds::resource(AzureMachinePoolSpec::NAME);
            let client = self.manager.client.clone();
            let pools: Api<AzureMachinePool> = Api::namespaced_with(client, &pool.namespace, &resource);
            if pools.get_metadata_opt(&pool.name).await?.is_some() {
                return Ok(Outcome::After(self.manager.settings.timeouts.requeue));
            }
        }
        self.let_go(None).await
    }

    /// Reconciles until the instance is deleted.
    async fn end(
        &mut self,
        owner: &MachinePool,
        cluster: &ClusterObjects,
        pool_key: &Key,
        pool: &AzureMachinePool,
    ) -> Result<(), Failure> {
        let manager = self.manager;
        let id = self.edited.object.spec.provider_id.clone().unwrap_or_default();
        let context = cluster.context_for(manager, Some(&id)).await?;
        if manager.goes_with_its_group(&context, self.not_before).await? {
            return Ok(());
        }
        let scope = pool_scope(&context, owner, pool);
        let (scale_set, flexible) = (scope.scale_set(), scope.is_flexible());
        let goal = instance_end(&id, &scale_set).filter(|_| flexible || is_within(&id, &scale_set));
        let Some(goal) = goal else {
            return Err(Failure::Refused(format!(
                "{id} is not an instance of the scale set {scale_set}: it is left alone"
            )));
        };
        let (operations, reach) = (self.edited.operations(), self.reach(&context));
        // The pool's observation of the set saves another read.
        let mut observed = ObservedResources::default();
        if let Some(observation) = manager.instances.latest(pool_key) {
            observed.take(&scale_set, Some(observation.scale_set.clone()));
        }
        let mut subject = EndSubject {
            reconcile: self,
            context: &context,
            pool: pool_key,
            goal,
            scale_set,
            flexible,
            claimant: context.scope().claimant(),
        };
        let ended = reach.run_from(observed, &mut subject, &operations).await;
        manager.see_anew(pool_key);
        ended.map(|_| ())
    }

    /// Removes the finalizer: the instance is deleted, or is deleted with its scale set.
    async fn let_go(mut self, pool: Option<&Key>) -> Result<Outcome, PatchError> {
        self.edited.let_go(AzureMachinePoolMachineSpec::FINALIZER);
        self.edited.save().await?;
        if let Some(pool) = pool {
            self.manager.pools.wake(pool.clone());
        }
        Ok(Outcome::Gone)
    }
}

/// Writes the observed state into the status.
fn set_status(
    status: &mut AzureMachinePoolMachineStatus,
    instance: &Instance,
    observation: &PoolObservation,
    node: &Node<'_>,
    version: Option<String>,
) {
    status.provisioning_state = Some(instance.state.clone());
    status.latest_model_applied = Some(instance.has_latest_model(&observation.scale_set));
    status.instance_name = Some(instance.computer_name.clone()).filter(|name| !name.is_empty());
    status.ready = Some(node.object_is_ready(&instance.state));
    // A reference to the same Node stays unchanged: the established provider also wrote its UID.
    if status.node_ref.as_ref().and_then(|known| known.name.as_deref()) != node.name {
        status.node_ref = node.name.map(|name| ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        });
    }
    if version.is_some() {
        status.version = version;
    }
}

struct EndSubject<'s, 'a> {
    reconcile: &'s mut PoolMachineReconcile<'a>,
    context: &'s ClusterContext,
    pool: &'s Key,
    goal: Goal,
    /// The scale set that the machine must belong to.
    scale_set: azure_types::ResourceId,
    /// Whether the machine's ID does not contain its scale set.
    flexible: bool,
    claimant: Claimant<'s>,
}

impl Subject for EndSubject<'_, '_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let (scale_set, id) = (&self.scale_set, &self.goal.id);
        if let Observation::Present(held) = observed.get(scale_set)
            && !self.claimant.owns(held)
        {
            return Err(Failure::Refused(format!(
                "{id} is left alone, for its scale set {scale_set} is not proven to be this cluster's by its tags"
            )));
        }
        if let (true, Observation::Present(held)) = (self.flexible, observed.get(id))
            && !is_instance_of(held, scale_set)
        {
            return Err(Failure::Refused(format!(
                "{id} is not a machine of the scale set {scale_set}: it is left alone"
            )));
        }
        Ok(vec![self.goal.clone()])
    }

    async fn report(&mut self, _: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        // The set no longer counts an instance once Azure has begun to delete it.
        if !operations.is_empty() && self.reconcile.edited.operations().is_empty() {
            self.reconcile.manager.see_anew(self.pool);
        }
        let deleting = fails(RUNNING, "Deleting", Severity::Info, "");
        self.reconcile.set([deleting]);
        self.reconcile.edited.set_operations(operations);
        let saved = self.reconcile.edited.save().await;
        let requeue = self.reconcile.manager.settings.timeouts.requeue;
        saved.map(drop).map_err(|error| Failure::of_write(&error, requeue))
    }

    fn has_changed(&self) -> bool {
        let annotations = self.reconcile.edited.object.metadata.annotations.as_ref();
        self.context.is_paused(self.reconcile.manager, annotations)
    }

    fn changes(&self) -> Changes {
        Changes::of([self.context.cluster_changes(self.reconcile.manager)])
    }
}
