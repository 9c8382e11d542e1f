//! The controller of AzureMachinePools: the scale set first, then the objects of its instances (`pool_objects`).

use std::sync::Arc;
use std::time::Duration;

use arm::Class;
use capz_api::Future;
use capz_api::azure_machine_pool::AzureMachinePoolSpec;
use capz_planner::condition;
use capz_planner::kind::Kind;
use capz_planner::pool::{
    Claim, EXTENSIONS, Instance, MachineInputs, OwnerMachinePool, PoolScope, TAGS, complete, ends, goals,
    rival, unproven_end,
};
use capz_planner::sku::VIRTUAL_MACHINES;
use capz_planner::terminal::Reason;
use capz_planner::{Goal, OWNER_TAGS, Observation, ObservedResources, Plan, State, Upkeep, service};
use serde_json::Value;
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::azure::instances::{ObservationTurn, PoolObservation};
use crate::azure::reach::{Reach, Subject};
use crate::azure::reads;
use crate::context::azure_context::AzureContext as _;
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::ClusterObjects;
use crate::context::manager::{Ended, Manager, Stores};
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core::{self, MachinePool};
use crate::kubernetes::kinds::{AzureMachinePool, NO_ENTRIES, POOL_MACHINE};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, Store, key_of};
use crate::secrets::bootstrap::password;

/// The condition of the scale set's machines.
const RUNNING: &str = "ScaleSetRunning";
/// The condition of the scale set itself, with the name that established installations use.
const MADE: &str = "BootstrapSucceeded";

/// The MachinePool that owns an AzureMachinePool, its cluster, and what is observed of its scale set.
pub(crate) struct PoolOwner {
    pub owner: Arc<MachinePool>,
    pub cluster: ClusterObjects,
    /// The latest observation of this reconcile.
    observation: Option<Arc<PoolObservation>>,
}

pub(crate) type PoolReconcile<'a> = Reconcile<'a, AzureMachinePoolSpec, PoolOwner>;

impl Reconciled for AzureMachinePoolSpec {
    const FINALIZER: &'static str = "machinepool.cluster.x-k8s.io";
    const RUNNING: &'static str = RUNNING;

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.azure_machine_pools
    }
}

impl Manager {
    /// Reconciles an AzureMachinePool with Azure, and its objects with the instances in Azure.
    pub(crate) async fn reconcile_pool(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_machine_pools, &key);
        let object = object.inspect_err(|_| self.instances.forget(&key))?;
        let (owner, cluster) = self.pool_owner_of(&object).ok_or(Outcome::Idle)?;
        let own = PoolOwner { owner, cluster, observation: None };
        let reconcile = Reconcile::of(&self, &key, &object, not_before, own)?;
        Ok(Box::pin(reconcile.run()).await?)
    }

    /// The MachinePool that owns an AzureMachinePool, and its cluster; `None` while an object is missing, whose creation
    /// wakes the reconcile.
    pub(crate) fn pool_owner_of(
        &self,
        object: &AzureMachinePool,
    ) -> Option<(Arc<MachinePool>, ClusterObjects)> {
        let owner = core::owner(&object.metadata, "MachinePool")?;
        let owner = self.dependency(object, &self.stores.machine_pools, owner)?;
        let cluster = self.cluster_joined_by(object, &owner.spec.cluster_name)?;
        Some((owner, cluster))
    }
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
        let cluster = self.own.cluster.clone();
        if self.is_left_alone(&cluster.cluster).await? {
            return Ok(Outcome::Idle);
        }
        if self.is_deleting() {
            return self.delete().await;
        }
        let status = self.edited.status();
        // Cluster API's core treats these as a permanent failure of the pool: failures are reported by conditions only.
        (status.failure_reason, status.failure_message) = (None, None);
        status.infrastructure_machine_kind = Some(POOL_MACHINE.to_owned());
        self.edited.hold(AzureMachinePoolSpec::FINALIZER);
        self.save().await?;
        let has_network = cluster.has_network();
        let secret = self.own.owner.spec.template.spec.bootstrap.data_secret_name.clone();
        let Some(secret) = secret.filter(|_| has_network) else { return Ok(Outcome::Idle) };
        if let Some(rival) = self.rival() {
            let name = &self.key.name;
            let words = format!(
                "the AzureMachinePools {rival} and {name} would have one scale set, for its name is made of the last five letters where there is Windows: it belongs to {rival}. Give {name} another name, with other last letters"
            );
            return self.failed(&Failure::Refused(words), None).await;
        }
        let context = match self.context().await.and_then(ClusterContext::without_rival) {
            Ok(context) => context,
            Err(failure) => return self.failed(&failure, None).await,
        };
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
        let cluster = self.own.cluster.cluster.metadata.name.as_deref();
        let pools = self.manager.stores.azure_machine_pools.all();
        let ours = pools.iter().filter(|pool| {
            pool.metadata.namespace.as_deref() == Some(&self.key.namespace)
                && core::cluster_name(&pool.metadata) == cluster
        });
        rival(claim(&self.edited.object), ours.map(|pool| claim(pool))).map(str::to_owned)
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
        self.edited.status().image = Some(inputs.image.clone());
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
            self.save_progress().await?;
        }
        let (observed, written) = loop {
            match self.drive(context, Some(&inputs), observation.as_deref(), is_new).await? {
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
        self.own.cluster.context_for(self.manager, self.edited.object.spec.provider_id.as_deref()).await
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
        pool_scope(context, &self.own.owner, &self.edited.object)
    }

    /// The observed state, independent of the desired state: the latest observation, if it may still be used. `None` if
    /// there is no scale set.
    async fn latest(&mut self, context: &ClusterContext) -> Result<Option<Arc<PoolObservation>>, Failure> {
        let instances = &self.manager.instances;
        let ours = self.own.observation.clone().filter(|ours| instances.is_current(self.key, ours));
        match ours.or_else(|| instances.serving(self.key)) {
            Some(observation) => Ok(Some(observation)),
            None => self.observe(context).await,
        }
    }

    /// Whether this reconcile has read Azure itself.
    pub fn has_observed(&self) -> bool {
        self.own.observation.is_some()
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
        let reach = Reach { not_before: Instant::now(), ..self.reach(context) };
        let instances = scope.read_instances(&reach.list(&scope.instances_reading()).await?);
        let observation = Arc::new(PoolObservation::new(turn, scale_set, instances, known));
        self.manager.instances.take(self.key, Arc::clone(&observation));
        self.own.observation = Some(Arc::clone(&observation));
        Ok(observation)
    }

    /// Reconciles until the scale set is as desired: created from the inputs, or, without inputs, deleted. An existing
    /// set is written only in the version that preceded the list of its instances, and only after a new observation.
    async fn drive(
        &mut self,
        context: &ClusterContext,
        inputs: Option<&MachineInputs>,
        observation: Option<&PoolObservation>,
        is_new: bool,
    ) -> Result<Reached, Failure> {
        let (operations, reach) = (self.edited.operations(), self.reach(context));
        let mut observed = ObservedResources::default();
        if let Some(observation) = observation {
            observed.take(&self.scope(context).scale_set(), Some(observation.scale_set.clone()));
        }
        let mut subject = PoolSubject {
            reconcile: self,
            context,
            inputs,
            instances: observation.map_or(&[], |observation| &observation.instances),
            checked: observation
                .filter(|_| is_new)
                .and_then(|observation| observation.scale_set["etag"].as_str()),
            is_unchecked: false,
            written: false,
        };
        let reached = reach.run_from(observed, &mut subject, &operations).await;
        let (written, is_unchecked) = (subject.written, subject.is_unchecked);
        if written {
            self.manager.instances.outdate(self.key);
        }
        match reached {
            Ok((observed, plan)) => {
                self.manager.recorder.changed_by_others(&self.about(), &plan, &observed);
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
        let condition = if self.is_deleting() { RUNNING } else { MADE };
        let outcome = self.report_failure(failure, condition);
        if matches!(&outcome, Err(terminal) if terminal.reason == Reason::InvalidConfiguration) {
            self.edited.status().ready = Some(false);
        }
        self.save().await?;
        // The failure is not retried before something changes, but machines may be on their way.
        Ok(outcome.unwrap_or(again.map_or(Outcome::Idle, Outcome::After)))
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        if !self.begin_deletion("ScaleSetDeleting").await? {
            return Ok(Outcome::Gone);
        }
        let gone = async {
            let context = self.context().await?;
            // The scale set belongs to another pool, or is deleted with its resource group as a whole.
            if self.rival().is_some() || self.manager.goes_with_its_group(&context, self.not_before).await? {
                return Ok(());
            }
            self.drive(&context, None, None, true).await.map(|_| ())
        };
        if let Err(failure) = gone.await {
            return self.failed(&failure, None).await;
        }
        if self.dismiss().await? > 0 {
            // The watch shows the deletion of the last one.
            return Ok(Outcome::Idle);
        }
        self.manager.instances.forget(self.key);
        self.end_deletion().await
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

struct PoolSubject<'s, 'a> {
    reconcile: &'s mut PoolReconcile<'a>,
    context: &'s ClusterContext,
    /// What its machines are created from; `None` if it is deleted.
    inputs: Option<&'s MachineInputs>,
    instances: &'s [Instance],
    /// The version of the set in which it may be written: it was read before the instances were listed, and both are
    /// recent.
    checked: Option<&'s str>,
    /// Whether the set needed a write in another version.
    is_unchecked: bool,
    /// Whether anything was written, or an operation was running already.
    written: bool,
}

impl Subject for PoolSubject<'_, '_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let scope = self.reconcile.scope(self.context);
        let Some(inputs) = self.inputs else {
            return match unproven_end(&scope, observed) {
                Some(words) => Err(Failure::Refused(words)),
                None => Ok(ends(&scope)),
            };
        };
        let goals = goals(&scope, inputs, observed, Some(self.instances))?;
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
        self.written |=
            plan.items.iter().any(|(_, state)| matches!(state, State::Now(_) | State::Running(_)));
        self.reconcile.report(condition::project(&service::POOL, plan), operations).await
    }

    fn has_changed(&self) -> bool {
        let owner = &self.reconcile.own.owner;
        let newest = self.reconcile.manager.stores.machine_pools.get(&key_of(&**owner));
        self.reconcile.has_changed(self.context, self.inputs.is_none())
            || (self.inputs.is_some() && newest.is_none_or(|newest| newest.spec != owner.spec))
    }

    fn changes(&self) -> Changes {
        let owner = key_of(&*self.reconcile.own.owner);
        let owner = self.reconcile.manager.stores.machine_pools.changes_of(&owner);
        self.reconcile.changes(self.context).and(owner)
    }
}
