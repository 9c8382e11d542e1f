//! The controller of AzureManagedControlPlanes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use capz_api::Future;
use capz_api::azure_managed_control_plane::{AzureManagedControlPlaneSpec, OidcIssuerProfileStatus};
use capz_planner::agent_pool::AgentPool;
use capz_planner::cluster::{CLUSTER_ID, Memory, contact, unrecorded};
use capz_planner::condition::{self, Severity, fails};
use capz_planner::kind::Kind;
use capz_planner::managed_cluster::{
    RESOURCE_HEALTH, Reported, ends, goals, health_condition, health_reading, read_back, remembered,
    remembered_of,
};
use capz_planner::service::MANAGED_CONTROL_PLANE;
use capz_planner::{Goal, Observation, ObservedResources, OwnershipRule, Plan, State, elsewhere};
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::reach::Subject;
use crate::context::azure_context::AzureContext as _;
use crate::context::cluster_life;
use crate::context::ending::Ending;
use crate::context::identity::IdentityError;
use crate::context::manager::{Ended, Manager, Stores};
use crate::context::namesakes;
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core::{self, MachinePool};
use crate::kubernetes::kinds::{
    AzureManagedControlPlane, AzureManagedMachinePool, NO_ENTRIES, ObjectKind, reference,
};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, Store, key_of};
use crate::managed::access::{Owner, Place, renewal};
use crate::managed::context::{ManagedContext, ManagedObjects};

/// The condition of the managed cluster.
const RUNNING: &str = "ManagedClusterRunning";
/// A finalizer of old releases of the established provider.
const OLDER_FINALIZER: &str = "azurecluster.infrastructure.cluster.x-k8s.io";

type ControlPlaneReconcile<'a> = Reconcile<'a, AzureManagedControlPlaneSpec, &'a ManagedContext>;

impl Reconciled for AzureManagedControlPlaneSpec {
    const FINALIZER: &'static str = "azuremanagedcontrolplane.infrastructure.cluster.x-k8s.io";
    const RUNNING: &'static str = RUNNING;

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.managed_control_planes
    }
}

impl Manager {
    /// Reconciles an AzureManagedControlPlane with Azure.
    pub(crate) async fn reconcile_managed_control_plane(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.managed_control_planes, &key)?;
        if core::is_managed_elsewhere(&object.metadata) {
            return Ok(Outcome::Idle);
        }
        let Some(owner) = core::owner(&object.metadata, "Cluster") else {
            self.recorder.normal(reference(&object), "OwnerRefNotSet", "waiting for its owner Cluster");
            return Ok(Outcome::Idle);
        };
        let cluster = self.dependency(&object, &self.stores.clusters, owner).ok_or(Outcome::Idle)?;
        let mut reconcile = Reconcile::of(&self, &key, &object, not_before, ())?;
        let is_paused = core::is_paused(&cluster, object.metadata.annotations.as_ref());
        if let Err(error) = reconcile.take_over(is_paused).await {
            return Ok(reconcile.not_taken_over(error).await?);
        }
        if reconcile.is_left_alone(&cluster).await? {
            return Ok(Outcome::Idle);
        }
        let deleting = reconcile.is_deleting();
        if deleting && cluster_life::has_ended(&object.metadata) {
            return Ok(reconcile.let_go().await?);
        }
        let objects = ManagedObjects { cluster, control_plane: Arc::clone(&object) };
        let mut context = match self.managed_context_if_allowed(objects).await {
            Ok(context) => context,
            Err(error) => return Ok(reconcile.without_access(&error).await?),
        };
        if context.id.is_empty() {
            context.id = object.metadata.uid.clone().unwrap_or_default();
        }
        let reconcile = reconcile.with(&context);
        Ok(if deleting { Box::pin(reconcile.delete()).await } else { Box::pin(reconcile.reconcile()).await }?)
    }

    async fn managed_context_if_allowed(
        &self,
        objects: ManagedObjects,
    ) -> Result<ManagedContext, IdentityError> {
        if objects.control_plane.metadata.deletion_timestamp.is_none() {
            self.check_can_hold(&objects.control_plane)?;
        }
        self.managed_context(objects).await
    }

    /// The node pools of a managed cluster, each with the MachinePool that owns it.
    ///
    /// # Errors
    /// A pool has no MachinePool yet: it is unknown how many machines it has.
    fn pools_of(&self, control_plane: &AzureManagedControlPlane) -> Result<Vec<OwnedPool>, String> {
        let metadata = &control_plane.metadata;
        let mut pools = self.stores.managed_pools.all();
        pools.retain(|pool| {
            pool.metadata.namespace == metadata.namespace
                && pool.metadata.deletion_timestamp.is_none()
                && core::cluster_name(&pool.metadata) == core::cluster_name(metadata)
        });
        let owned = pools.into_iter().map(|pool| {
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let owner = core::owner(&pool.metadata, "MachinePool");
            let owner = owner.and_then(|owner| self.stores.machine_pools.get(&key_of(&*pool).beside(owner)));
            let owner = owner
                .ok_or_else(|| format!("waiting for the MachinePool of AzureManagedMachinePool {name}"))?;
            Ok(OwnedPool { pool, owner })
        });
        owned.collect()
    }
}

/// A node pool, and the MachinePool that owns it.
pub(crate) struct OwnedPool {
    pub pool: Arc<AzureManagedMachinePool>,
    pub owner: Arc<MachinePool>,
}

impl OwnedPool {
    /// The pool, as goals are derived from it.
    pub fn declared(&self) -> AgentPool<'_> {
        AgentPool {
            name: self.pool.metadata.name.as_deref().unwrap_or_default(),
            spec: &self.pool.spec,
            annotations: self.pool.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES),
            version: self.owner.spec.template.spec.version.as_deref(),
            replicas: self.owner.spec.replicas.and_then(|replicas| i32::try_from(replicas).ok()),
        }
    }
}

/// The desired state of one reconcile.
enum Target {
    Declared { pools: Vec<OwnedPool>, memory: Memory, strangers: BTreeSet<ResourceId> },
    Ended { memory: Memory, ending: Ending },
}

impl ControlPlaneReconcile<'_> {
    fn memory(&self) -> Memory {
        Memory::of(self.edited.object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES))
    }

    fn remember(&mut self, memory: &Memory) {
        self.edited.object.metadata.annotations.get_or_insert_default().extend(memory.annotations());
    }

    async fn reconcile(mut self) -> Result<Outcome, PatchError> {
        if let Err(failure) = self.own.check_rival() {
            return self.failed(&failure).await;
        }
        let pools = match self.manager.pools_of(&self.own.control_plane) {
            Ok(pools) => pools,
            Err(words) => {
                let after = self.manager.settings.timeouts.requeue;
                return self.failed(&Failure::Later { after, words }).await;
            }
        };
        let before = self.memory();
        let (strangers, observed) = match self.contact(&pools, &before).await {
            Ok(contact) => contact,
            Err(failure) => return self.failed(&failure).await,
        };
        // The resources to create and the cluster's ID are recorded first: if this process ends in between, they are
        // still known to be the cluster's.
        self.manager.hold_identity(&self.edited.object, true).await?;
        self.edited.let_go(OLDER_FINALIZER);
        self.edited.hold(AzureManagedControlPlaneSpec::FINALIZER);
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        annotations.insert(CLUSTER_ID.to_owned(), self.own.id.clone());
        self.remember(&before.with(&remembered(self.own.scope()).without(&strangers)));
        self.save().await?;

        let target = Target::Declared { pools, memory: before, strangers: strangers.clone() };
        match self.drive(observed, target).await {
            Ok((observed, _)) => self.reached(observed, &strangers).await,
            Err(failure) => self.failed(&failure).await,
        }
    }

    /// Reads the resources that the cluster has not recorded yet. Returns those that are foreign, and everything
    /// observed.
    async fn contact(
        &self,
        pools: &[OwnedPool],
        memory: &Memory,
    ) -> Result<(BTreeSet<ResourceId>, ObservedResources), Failure> {
        let mut observed = ObservedResources::default();
        // Resources of the established provider bear no ID and are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            return Ok((BTreeSet::new(), observed));
        }
        let scope = self.own.scope();
        let declared: Vec<AgentPool<'_>> = pools.iter().map(OwnedPool::declared).collect();
        let goals = unrecorded(goals(scope, &declared, memory, &observed)?, memory);
        self.reach(self.own).read_missing(&mut observed, &goals).await?;
        let strangers = contact(scope, &goals, &observed).map_err(Failure::Refused)?;
        Ok((strangers, observed))
    }

    async fn drive(
        &mut self,
        observed: ObservedResources,
        target: Target,
    ) -> Result<(ObservedResources, Plan), Failure> {
        let (operations, reach) = (self.edited.operations(), self.reach(self.own));
        let deleting = matches!(target, Target::Ended { .. });
        let mut subject = ControlPlaneSubject { context: self.own, reconcile: self, deleting, target };
        let (observed, plan) = reach.run_from(observed, &mut subject, &operations).await?;
        self.manager.recorder.changed_by_others(&self.about(), &plan, &observed);
        Ok((observed, plan))
    }

    /// The observed state matches the desired state.
    async fn reached(
        mut self,
        observed: ObservedResources,
        strangers: &BTreeSet<ResourceId>,
    ) -> Result<Outcome, PatchError> {
        let scope = self.own.scope();
        let known = self.edited.object.status.as_ref().map(|it| (it.initialized, it.version.clone()));
        let memory = remembered_of(scope, &observed).without(strangers).with(&self.memory().until_the_end());
        self.remember(&memory);
        let reported = match observed.get(&scope.managed_cluster()) {
            Observation::Present(held) => read_back(scope, held),
            Observation::Absent | Observation::Unknown => Reported::default(),
        };
        // The documents are not held while the cluster's API server is reached.
        drop(observed);
        self.show(&reported);
        self.save().await?;
        let outcome = match self.give_access(&reported).await {
            Ok(outcome) => outcome,
            Err(failure) => return self.failed(&failure).await,
        };
        if let Err(failure) = self.check_health(&scope.managed_cluster()).await {
            return self.failed(&failure).await;
        }
        let status = self.edited.status();
        (status.ready, status.initialized) = (Some(true), Some(true));
        self.save().await?;
        let status = self.edited.object.status.as_ref().map(|it| (it.initialized, it.version.clone()));
        if status != known {
            // Pools wait for their cluster, and for its new version.
            self.manager.wake_dependants_of_managed(&self.edited.object);
        }
        Ok(outcome)
    }

    /// Shows what Azure reports.
    fn show(&mut self, reported: &Reported) {
        if let Some(endpoint) = &reported.endpoint {
            self.edited.object.spec.control_plane_endpoint = Some(endpoint.clone());
        }
        let status = self.edited.status();
        status.version.clone_from(&reported.version);
        status.auto_upgrade_version.clone_from(&reported.auto_upgrade_version);
        status.oidc_issuer_profile = reported.issuer_url.clone().map(|url| OidcIssuerProfileStatus {
            issuer_url: Some(url),
            ..OidcIssuerProfileStatus::default()
        });
    }

    /// Writes the Secrets with which the cluster is used.
    async fn give_access(&self, reported: &Reported) -> Result<Outcome, Failure> {
        let endpoint = reported.endpoint.as_ref();
        let host = endpoint.and_then(|endpoint| endpoint.host.as_deref());
        let Some(host) = host else {
            let words = "waiting for the address of the API server".to_owned();
            return Err(Failure::Later { after: self.manager.settings.timeouts.requeue, words });
        };
        let (spec, id) = (&self.own.control_plane.spec, self.own.scope().managed_cluster());
        let directory = spec.aad_profile.as_ref();
        let place = Place {
            api_version: Kind::of(&id).api_version,
            id,
            has_directory: directory.is_some_and(|directory| directory.managed == Some(true)),
            is_without_local_accounts: directory.is_some() && spec.disable_local_accounts == Some(true),
            endpoint: (host, endpoint.and_then(|endpoint| endpoint.port).unwrap_or_default()),
        };
        let credentials = self.manager.credentials(&self.own.access, &place).await?;
        let owner = Owner {
            kind: AzureManagedControlPlaneSpec::NAME,
            metadata: &self.edited.object.metadata,
            cluster: self.own.cluster.metadata.name.as_deref().unwrap_or_default(),
        };
        self.manager.keep_access(&credentials, &place, owner).await?;
        let is_issuer = spec.oidc_issuer_profile.as_ref().is_some_and(|it| it.enabled == Some(true));
        if let Some(url) = reported.issuer_url.as_deref().filter(|_| is_issuer) {
            self.manager.keep_issuer(owner, url).await?;
        }
        let sync_period = self.manager.settings.sync_period;
        Ok(credentials.token_left.map_or(Outcome::Rest, |left| renewal(left, sync_period)))
    }

    /// Asks Azure for the health of the cluster, if the feature gate is on.
    async fn check_health(&mut self, cluster: &ResourceId) -> Result<(), Failure> {
        if !self.manager.settings.gates.aks_resource_health {
            let conditions = self.edited.status().conditions.get_or_insert_default();
            conditions.retain(|it| it.condition.as_deref() != Some(RESOURCE_HEALTH));
            return Ok(());
        }
        let answer = self.reach(self.own).list(&health_reading(cluster)).await?;
        let created = self.edited.object.metadata.creation_timestamp.as_ref();
        let created = created.map_or(0, |created| created.0.as_second());
        let age = self.manager.clock.now().as_second().saturating_sub(created);
        let age = Duration::from_secs(u64::try_from(age).unwrap_or_default());
        let nothing = serde_json::Value::Null;
        let health = health_condition(answer.first().unwrap_or(&nothing), age);
        let words = (health.status.as_deref() == Some("False")).then(|| {
            format!(
                "Azure Resource Health: {}",
                health.message.as_deref().unwrap_or("the cluster is not available")
            )
        });
        self.set([health]);
        words.map_or(Ok(()), |words| Err(Failure::Refused(words)))
    }

    async fn failed(mut self, failure: &Failure) -> Result<Outcome, PatchError> {
        let outcome = self.report_failure(failure, RUNNING);
        self.save().await?;
        Ok(outcome.unwrap_or(Outcome::Idle))
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        let is_held = self.edited.is_held(AzureManagedControlPlaneSpec::FINALIZER);
        if !is_held && !self.edited.is_held(OLDER_FINALIZER) {
            return Ok(Outcome::Gone);
        }
        // Set before Azure is asked, which may not answer.
        if !["Deleting", DELETION_FAILED].iter().any(|reason| self.edited.has_reason(RUNNING, reason)) {
            self.set([fails(RUNNING, "Deleting", Severity::Info, "")]);
            self.save().await?;
        }
        let scope = self.own.scope();
        let mut memory = self.memory();
        // Resources of the established provider are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            memory = memory.with(&remembered(scope));
        }
        let kind = AzureManagedControlPlaneSpec::NAME;
        let ending = self.manager.ending(self.own, kind, scope.cluster, true, self.not_before).await;
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return self.failed(&failure).await,
        };
        let left = ending.left();
        match self.drive(ObservedResources::default(), Target::Ended { memory, ending }).await {
            Ok((_, plan)) => {
                let left: Vec<String> = left.into_iter().chain(plan.in_use()).collect();
                if !left.is_empty() {
                    self.manager.recorder.warning(self.about(), "ResourcesLeft", left.join(". "));
                }
                self.edited.let_go(OLDER_FINALIZER);
                self.let_go().await
            }
            Err(failure) => self.failed(&failure).await,
        }
    }
}

struct ControlPlaneSubject<'s, 'a> {
    reconcile: &'s mut ControlPlaneReconcile<'a>,
    context: &'a ManagedContext,
    deleting: bool,
    target: Target,
}

impl Subject for ControlPlaneSubject<'_, '_> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let scope = self.context.scope();
        match &self.target {
            Target::Declared { pools, memory, strangers } => {
                let pools: Vec<AgentPool<'_>> = pools.iter().map(OwnedPool::declared).collect();
                let mut goals = goals(scope, &pools, memory, observed)?;
                for goal in goals.iter_mut().filter(|goal| strangers.contains(&goal.id)) {
                    goal.ownership = OwnershipRule::Foreign;
                }
                Ok(goals)
            }
            Target::Ended { memory, ending } => Ok(ends(scope, memory, ending.end, &ending.inventory)),
        }
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let group = self.context.scope().cluster.group();
        // From here on another subscription is refused: the cluster would be created a second time, and the first one
        // abandoned.
        if !self.deleting && plan.state_of(&group).is_some_and(State::is_there) {
            let annotations = self.reconcile.edited.object.metadata.annotations.get_or_insert_default();
            annotations.insert(elsewhere::SUBSCRIPTION.to_owned(), self.context.subscription.clone());
        }
        self.reconcile.report(condition::project(&MANAGED_CONTROL_PLANE, plan), operations).await
    }

    fn has_changed(&self) -> bool {
        self.reconcile.has_changed(self.context, self.deleting)
    }

    fn changes(&self) -> Changes {
        self.reconcile.changes(self.context)
    }
}
