//! The controller of AzureMachinePools: the scale set first, then the objects of its instances (`pool_objects`).

use std::sync::Arc;
use std::time::Duration;

use arm::Class;
use capz_api::Future;
use capz_api::azure_machine_pool::{AzureMachinePoolSpec, AzureMachinePoolStatus};
use capz_planner::condition::{self, Severity, fails};
use capz_planner::kind::Kind;
use capz_planner::pool::{
    Claim, EXTENSIONS, Instance, MachineInputs, OwnerMachinePool, PoolScope, TAGS, complete, ends, goals,
    rival, unproven_end,
};
use capz_planner::sku::VIRTUAL_MACHINES;
use capz_planner::terminal::Reason;
use capz_planner::{
    Goal, GoalError, OWNER_TAGS, Observation, ObservedResources, Plan, State, Upkeep, service,
};
use controllers::Reference;
use serde_json::Value;
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::instances::{ObservationTurn, PoolObservation};
use crate::azure::reach::Subject;
use crate::azure::reads::{self, Answer};
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::ClusterObjects;
use crate::context::manager::Manager;
use crate::kubernetes::core::{self, MachinePool};
use crate::kubernetes::kinds::{API_VERSION, AzureMachinePool, NO_ENTRIES};
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, key_of};
use crate::secrets::bootstrap::password;

pub(crate) const KIND: &str = "AzureMachinePool";
/// The finalizer by which an AzureMachinePool waits for the deletion of its scale set and its machines.
const FINALIZER: &str = "machinepool.cluster.x-k8s.io";
/// The kind of the objects that represent instances.
pub(crate) const MACHINE_KIND: &str = crate::kubernetes::kinds::POOL_MACHINE;

/// The condition of the scale set's machines.
const RUNNING: &str = "ScaleSetRunning";
/// The condition of the scale set itself, with the name that established installations use.
const MADE: &str = "BootstrapSucceeded";

pub(crate) type EditedPool = Edited<AzureMachinePoolSpec, AzureMachinePoolStatus>;

impl Manager {
    /// Reconciles an AzureMachinePool with Azure, and its objects with the instances in Azure.
    pub(crate) async fn reconcile_pool(self: Arc<Self>, key: &Key, not_before: Instant) -> Outcome {
        let object = match self.own(&self.stores.azure_machine_pools, key) {
            Ok(object) => object,
            Err(end) => {
                self.instances.forget(key);
                return end;
            }
        };
        let Some((owner, cluster)) = self.pool_owner_of(&object) else { return Outcome::Idle };
        let edited = match Edited::of(&self.client, KIND, &object) {
            Ok(edited) => edited,
            Err(error) => return self.lost(key, &error),
        };
        let work =
            PoolReconcile { manager: &self, key, owner, cluster, edited, observation: None, not_before };
        match work.run().await {
            Ok(outcome) => outcome,
            Err(error) => self.lost(key, &error),
        }
    }

    /// The MachinePool that owns an AzureMachinePool, and its cluster; `None` while an object is missing, whose creation
    /// wakes the reconcile.
    pub(crate) fn pool_owner_of(
        &self,
        object: &AzureMachinePool,
    ) -> Option<(Arc<MachinePool>, ClusterObjects)> {
        let owner = core::owner(object.metadata.owner_references.as_deref(), "MachinePool")?;
        let object = (KIND, &object.metadata);
        let owner = self.dependency(object, "MachinePool", &self.stores.machine_pools, owner)?;
        let cluster = self.cluster_of(object, &owner.spec.cluster_name)?;
        Some((owner, cluster))
    }
}

/// One reconcile of one AzureMachinePool.
pub(crate) struct PoolReconcile<'a> {
    pub manager: &'a Manager,
    pub key: &'a Key,
    pub owner: Arc<MachinePool>,
    pub cluster: ClusterObjects,
    pub edited: EditedPool,
    /// The latest observation of this reconcile.
    observation: Option<Arc<PoolObservation>>,
    not_before: Instant,
}

/// The result of reconciling the scale set.
enum Reached {
    /// It is as desired.
    Done {
        observed: ObservedResources,
        /// Whether anything was written, or an operation was running already.
        written: bool,
    },
    /// The set needs a write, in a version for which this reconcile has not listed the instances yet.
    Unchecked,
}

impl PoolReconcile<'_> {
    async fn run(mut self) -> Result<Outcome, PatchError> {
        let annotations = self.edited.object.metadata.annotations.clone();
        if core::is_paused(&self.cluster.cluster, annotations.as_ref()) {
            self.edited.pause();
            self.save().await?;
            return Ok(Outcome::Idle);
        }
        if self.edited.object.metadata.deletion_timestamp.is_some() {
            return self.delete().await;
        }
        let status = self.edited.object.status.get_or_insert_default();
        // Cluster API's core treats these as a permanent failure of the pool: failures are reported by conditions only.
        (status.failure_reason, status.failure_message) = (None, None);
        status.infrastructure_machine_kind = Some(MACHINE_KIND.to_owned());
        self.edited.hold(FINALIZER);
        self.save().await?;
        let has_network = self.cluster.has_network();
        let secret = self.owner.spec.template.spec.bootstrap.data_secret_name.clone();
        let Some(secret) = secret.filter(|_| has_network) else { return Ok(Outcome::Idle) };
        if let Some(rival) = self.rival() {
            let name = &self.key.name;
            let words = format!(
                "the AzureMachinePools {rival} and {name} would have one scale set, for its name is made of the last five letters where there is Windows: it belongs to {rival}. Give {name} another name, with other last letters"
            );
            return self.failed(&Failure::Refused(words), None).await;
        }
        let context = match self.context().await {
            Ok(context) => context,
            Err(failure) => return self.failed(&failure, None).await,
        };
        if let Err(failure) = context.check_rival() {
            return self.failed(&failure, None).await;
        }
        let failure = match self.pursue(&context, &secret).await {
            Ok(observation) => return self.reached(&context, observation).await,
            Err(Failure::Changed) => return Ok(Outcome::After(Duration::ZERO)),
            Err(failure) => failure,
        };
        // A failure to reconcile the scale set does not keep the objects of existing machines from being updated.
        let again = match self.latest(&context).await {
            Ok(Some(observation)) if !self.scope(&context).is_foreign(&observation.scale_set) => {
                self.follow(&context, &observation).await?
            }
            _ => None,
        };
        self.failed(&failure, again).await
    }

    /// Another pool of the cluster that owns the scale set.
    fn rival(&self) -> Option<String> {
        let cluster = self.cluster.cluster.metadata.name.as_deref();
        let pools = self.manager.stores.azure_machine_pools.all();
        let ours = pools.iter().filter(|pool| {
            pool.metadata.namespace.as_deref() == Some(&self.key.namespace)
                && core::cluster_name(&pool.metadata) == cluster
        });
        rival(claim(&self.edited.object), ours.map(|pool| claim(pool))).map(str::to_owned)
    }

    pub async fn save(&mut self) -> Result<(), PatchError> {
        self.edited.save_in(&self.manager.stores.azure_machine_pools).await
    }

    pub fn set(&mut self, new: impl IntoIterator<Item = capz_api::Condition>) {
        let conditions = self.edited.object.status.get_or_insert_default().conditions.get_or_insert_default();
        condition::set_all(conditions, new, &self.manager.now());
    }

    /// Reconciles until the scale set is as declared, and returns the observed state.
    async fn pursue(
        &mut self,
        context: &ClusterContext,
        secret: &str,
    ) -> Result<Arc<PoolObservation>, Failure> {
        let inputs = self.inputs(context, secret).await?;
        let mut spec = self.edited.object.spec.clone();
        complete(&mut spec, context.scope()).map_err(Failure::Refused)?;
        self.edited.object.spec = spec;
        self.edited.object.status.get_or_insert_default().image = Some(inputs.image.clone());
        let serving = self.manager.instances.serving(self.key);
        let mut is_new = serving.is_none();
        let mut observation = match serving {
            Some(observation) => Some(observation),
            None => self.observe(context).await?,
        };
        if observation.as_ref().is_some_and(|observation| observation.is_of_a_leaving_set()) {
            // It is created again after its deletion, which may take long.
            let status = self.edited.object.status.as_ref();
            let ready = status.and_then(|status| status.replicas?.try_into().ok()).unwrap_or_default();
            self.set_status("Deleting", ready, ready);
            let saved = self.save().await;
            saved.map_err(|error| Failure::of_write(&error, self.manager.settings.timeouts.requeue))?;
        }
        let (observed, written) = loop {
            match self.reach(context, Some(&inputs), observation.as_deref(), is_new).await? {
                Reached::Done { observed, written } => break (observed, written),
                Reached::Unchecked => {
                    observation = self.observe(context).await?;
                    is_new = true;
                }
            }
        };
        if let Some(observation) = observation.filter(|_| !written) {
            return Ok(observation);
        }
        let Observation::Present(scale_set) = observed.get(&self.scope(context).scale_set()) else {
            let words = "the scale set is gone again".to_owned();
            return Err(Failure::Later { after: self.manager.settings.timeouts.requeue, words });
        };
        let turn = self.manager.instances.turn(self.key).await;
        self.list(context, turn, scale_set.clone()).await
    }

    async fn context(&self) -> Result<ClusterContext, Failure> {
        self.cluster.context_for(self.manager, self.edited.object.spec.provider_id.as_deref()).await
    }

    async fn inputs(&self, context: &ClusterContext, secret: &str) -> Result<MachineInputs, Failure> {
        let skus = context.skus(self.manager).await?;
        let template = self.edited.object.spec.template.as_ref();
        let size = template.and_then(|template| template.vm_size.as_deref()).unwrap_or_default();
        let size = skus.get(size, VIRTUAL_MACHINES).map_err(Failure::Terminal)?.clone();
        let image = self.scope(context).image().map_err(|error| Failure::Refused(error.to_string()))?;
        let bootstrap = self.manager.bootstrap_data(&self.key.namespace, secret).await?;
        Ok(MachineInputs { bootstrap, password: password(), image, size, skus })
    }

    pub fn scope<'a>(&'a self, context: &'a ClusterContext) -> PoolScope<'a> {
        pool_scope(context, &self.owner, &self.edited.object)
    }

    /// The observed state, independent of the desired state: the latest observation, if it may still be used. `None` if
    /// there is no scale set.
    async fn latest(&mut self, context: &ClusterContext) -> Result<Option<Arc<PoolObservation>>, Failure> {
        let instances = &self.manager.instances;
        let ours = self.observation.clone().filter(|ours| instances.is_current(self.key, ours));
        match ours.or_else(|| instances.serving(self.key)) {
            Some(observation) => Ok(Some(observation)),
            None => self.observe(context).await,
        }
    }

    /// Whether this reconcile has read Azure itself.
    pub fn has_observed(&self) -> bool {
        self.observation.is_some()
    }

    /// Reads the current state from Azure; `None` if there is no scale set.
    async fn observe(&mut self, context: &ClusterContext) -> Result<Option<Arc<PoolObservation>>, Failure> {
        let turn = self.manager.instances.turn(self.key).await;
        let id = self.scope(context).scale_set();
        let version = Kind::of(&id).api_version;
        let scale_set = reads::get(&context.access.client, &id, version, Class::Refresh).await;
        let scale_set =
            scale_set.map_err(|error| Failure::of(&error, self.manager.settings.timeouts.requeue))?;
        let Some(scale_set) = scale_set else { return Ok(None) };
        self.list(context, turn, scale_set).await.map(Some)
    }

    /// Lists the instances of a set that was just read.
    async fn list(
        &mut self,
        context: &ClusterContext,
        turn: ObservationTurn,
        scale_set: Value,
    ) -> Result<Arc<PoolObservation>, Failure> {
        // Collected before the list: a machine that is deleted while the list is being read is not created again
        // because it is in the list.
        let known = self.manager.members(self.key).iter().map(|it| it.provider_id().to_lowercase()).collect();
        let scope = self.scope(context);
        let access = &context.access;
        let reading = scope.instances_reading();
        let answer = self.manager.reads.read(&access.tenant, &access.client, &reading, Instant::now()).await;
        let instances =
            match answer.map_err(|error| Failure::of(&error, self.manager.settings.timeouts.requeue))? {
                Answer::List(listed) => scope.read_instances(&listed.all()),
                Answer::One(_) => Vec::new(),
            };
        let observation = Arc::new(PoolObservation::new(turn, scale_set, instances, known));
        self.manager.instances.take(self.key, Arc::clone(&observation));
        self.observation = Some(Arc::clone(&observation));
        Ok(observation)
    }

    /// Reconciles until the scale set is as desired: created from the inputs, or, without inputs, deleted. An existing
    /// set is written only in the version that preceded the list of its instances, and only after a new observation.
    async fn reach(
        &mut self,
        context: &ClusterContext,
        inputs: Option<&MachineInputs>,
        observation: Option<&PoolObservation>,
        is_new: bool,
    ) -> Result<Reached, Failure> {
        let status = self.edited.object.status.as_ref();
        let operations: Vec<Future> =
            status.and_then(|status| status.long_running_operation_states.clone()).unwrap_or_default();
        let reach = context.reach(self.manager, self.not_before, (KIND, &self.key.name));
        let mut observed = ObservedResources::default();
        if let Some(observation) = observation {
            observed.take(&self.scope(context).scale_set(), Some(observation.scale_set.clone()));
        }
        let mut subject = PoolSubject {
            manager: self.manager,
            key: self.key,
            context,
            owner: &self.owner,
            inputs,
            instances: observation.map_or(&[], |observation| &observation.instances),
            checked: observation
                .filter(|_| is_new)
                .and_then(|observation| observation.scale_set["etag"].as_str()),
            is_unchecked: false,
            written: false,
            edited: &mut self.edited,
        };
        let reached = reach.run_from(observed, &mut subject, &operations).await;
        let (written, is_unchecked) = (subject.written, subject.is_unchecked);
        if written {
            self.manager.instances.outdate(self.key);
        }
        match reached {
            Ok((observed, plan)) => {
                let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
                self.manager.recorder.changed_by_others(&about, &plan, &observed);
                Ok(Reached::Done { observed, written })
            }
            Err(Failure::Changed) if is_unchecked => Ok(Reached::Unchecked),
            Err(failure) => Err(failure),
        }
    }

    /// The scale set is as declared.
    async fn reached(
        mut self,
        context: &ClusterContext,
        observation: Arc<PoolObservation>,
    ) -> Result<Outcome, PatchError> {
        let scope = self.scope(context);
        let scale_set = &observation.scale_set;
        let (tags, extensions) = (scope.remembered_tags(), scope.remembered_extensions(scale_set));
        let owner = scope.remembered_owner(scale_set);
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        annotations.insert(TAGS.to_owned(), tags);
        annotations.extend(owner.map(|word| (OWNER_TAGS.to_owned(), word.to_owned())));
        annotations.extend(extensions.map(|names| (EXTENSIONS.to_owned(), names)));
        let again = self.follow(context, &observation).await?;
        Ok(again.map_or(Outcome::Rest, Outcome::After))
    }

    /// `again` is when to reconcile next because something is under way in the scale set.
    async fn failed(mut self, failure: &Failure, again: Option<Duration>) -> Result<Outcome, PatchError> {
        let about = Reference::of(API_VERSION, KIND, &self.edited.object.metadata);
        let deleting = self.edited.object.metadata.deletion_timestamp.is_some();
        let status = self.edited.object.status.get_or_insert_default();
        if let Some((reason, words)) = failure.told(deleting, status.ready == Some(true)) {
            let name = if deleting { RUNNING } else { MADE };
            let condition = condition::untold(status.conditions.as_ref(), name, reason, words);
            self.set(condition);
        }
        let terminal = match self.manager.again(failure, about.clone()) {
            Ok(outcome) => {
                self.save().await?;
                return Ok(outcome);
            }
            Err(terminal) => terminal,
        };
        self.manager.recorder.warning(about, terminal.reason.event(), terminal.message.clone());
        if terminal.reason == Reason::InvalidConfiguration {
            let status = self.edited.object.status.get_or_insert_default();
            status.ready = Some(false);
        }
        self.save().await?;
        // The failure is not retried before something changes, but machines may be on their way.
        Ok(again.map_or(Outcome::Idle, Outcome::After))
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        if !self.edited.is_held(FINALIZER) {
            return Ok(Outcome::Gone);
        }
        let conditions = self.edited.object.status.as_ref().and_then(|status| status.conditions.as_ref());
        if !condition::has_reason(conditions, RUNNING, DELETION_FAILED) {
            self.set([fails(RUNNING, "ScaleSetDeleting", Severity::Info, "")]);
        }
        self.save().await?;
        let gone = async {
            let context = self.context().await?;
            // The scale set belongs to another pool, or is deleted with its resource group as a whole.
            if self.rival().is_some() || self.manager.goes_with_its_group(&context, self.not_before).await? {
                return Ok(());
            }
            self.reach(&context, None, None, true).await.map(|_| ())
        };
        if let Err(failure) = gone.await {
            return self.failed(&failure, None).await;
        }
        if self.dismiss().await? > 0 {
            // The watch shows the deletion of the last one.
            return Ok(Outcome::Idle);
        }
        self.edited.let_go(FINALIZER);
        self.save().await?;
        self.manager.instances.forget(self.key);
        self.manager.wake_cluster_that_waits_for(&self.edited.object.metadata);
        Ok(Outcome::Gone)
    }
}

/// The claim of a pool on its scale set.
fn claim(pool: &AzureMachinePool) -> Claim<'_> {
    let disk = pool.spec.template.as_ref().and_then(|template| template.os_disk.as_ref());
    Claim {
        name: pool.metadata.name.as_deref().unwrap_or_default(),
        os_type: disk.and_then(|disk| disk.os_type.as_deref()),
        made: pool.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty()),
        created: pool.metadata.creation_timestamp.as_ref().map_or(0, |created| created.0.as_second()),
    }
}

/// A pool as the planner sees it.
pub(crate) fn pool_scope<'a>(
    context: &'a ClusterContext,
    owner: &'a MachinePool,
    pool: &'a AzureMachinePool,
) -> PoolScope<'a> {
    PoolScope {
        cluster: context.scope(),
        name: pool.metadata.name.as_deref().unwrap_or_default(),
        spec: &pool.spec,
        annotations: pool.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES),
        owner: OwnerMachinePool {
            version: owner.spec.template.spec.version.as_deref(),
            replicas: owner.spec.replicas.unwrap_or(1),
            failure_domains: &owner.spec.failure_domains,
            annotations: owner.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES),
        },
    }
}

struct PoolSubject<'a> {
    manager: &'a Manager,
    key: &'a Key,
    context: &'a ClusterContext,
    owner: &'a MachinePool,
    /// What its machines are created from; `None` if it is deleted.
    inputs: Option<&'a MachineInputs>,
    instances: &'a [Instance],
    /// The version of the set in which it may be written: it was read before the instances were listed, and both are
    /// recent.
    checked: Option<&'a str>,
    /// Whether the set needed a write in another version.
    is_unchecked: bool,
    /// Whether anything was written, or an operation was running already.
    written: bool,
    edited: &'a mut EditedPool,
}

impl Subject for PoolSubject<'_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let scope = pool_scope(self.context, self.owner, &self.edited.object);
        let Some(inputs) = self.inputs else {
            return match unproven_end(&scope, observed) {
                Some(words) => Err(Failure::Refused(words)),
                None => Ok(ends(&scope)),
            };
        };
        let goals = goals(&scope, inputs, observed, Some(self.instances)).map_err(|error| match error {
            GoalError::Terminal(terminal) => Failure::Terminal(terminal),
            GoalError::NotNow(words) => Failure::Refused(words),
        })?;
        let id = scope.scale_set();
        let writes = goals.iter().any(|goal| goal.id == id && goal.upkeep == Upkeep::Always);
        // A set that has lost a machine since its instances were listed would become larger than desired.
        if let (true, Observation::Present(held)) = (writes, observed.get(&id))
            && let Some(etag) = held["etag"].as_str()
            && self.checked != Some(etag)
        {
            self.is_unchecked = true;
            return Err(Failure::Changed);
        }
        Ok(goals)
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let manager = self.manager;
        self.written |=
            plan.items.iter().any(|(_, state)| matches!(state, State::Now(_) | State::Running(_)));
        let status = self.edited.object.status.get_or_insert_default();
        let conditions = status.conditions.get_or_insert_default();
        condition::set_all(conditions, condition::project(&service::POOL, plan), &manager.now());
        status.long_running_operation_states = (!operations.is_empty()).then_some(operations);
        let saved = self.edited.save_in(&manager.stores.azure_machine_pools).await;
        saved.map_err(|error| Failure::of_write(&error, manager.settings.timeouts.requeue))
    }

    fn has_changed(&self) -> bool {
        let manager = self.manager;
        let stores = &manager.stores;
        let Some(newest) = stores.azure_machine_pools.get(self.key) else { return true };
        let annotations = newest.metadata.annotations.as_ref();
        let owner = stores.machine_pools.get(&key_of(self.owner));
        self.edited.is_outdated(&newest.metadata)
            || newest.metadata.deletion_timestamp.is_some() != self.inputs.is_none()
            || (self.inputs.is_some() && owner.is_none_or(|owner| owner.spec != self.owner.spec))
            || self.context.is_paused(manager, annotations)
    }

    fn changes(&self) -> Changes {
        let stores = &self.manager.stores;
        let own = stores.azure_machine_pools.changes_of(self.key);
        let owner = stores.machine_pools.changes_of(&key_of(self.owner));
        Changes::of([own, owner, self.context.cluster_changes(self.manager)])
    }
}
