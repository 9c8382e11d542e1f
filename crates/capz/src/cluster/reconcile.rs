//! The controller of AzureClusters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::{FailureDomain, Future};
use capz_planner::cluster::{
    CLUSTER_ID, Endpoint, Memory, complete, contact, endpoint, ends_beside, goals, linked_already,
    links_of_zones, read_back, remembered, remembered_of, unrecorded,
};
use capz_planner::condition::{self, Severity, fails, holds};
use capz_planner::elsewhere;
use capz_planner::service::{CLUSTER, DNS_LINKS};
use capz_planner::{Goal, ObservedResources, OwnershipRule, Plan, State};
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::reach::Subject;
use crate::context::azure_context::AzureContext as _;
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_life;
use crate::context::cluster_objects::{ClusterObjects, zones_of};
use crate::context::ending::Ending;
use crate::context::identity::IdentityError;
use crate::context::manager::{Ended, Manager, Stores};
use crate::context::namesakes::{self, FINALIZER};
use crate::context::reconcile::{Reconcile, Reconciled};
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{AzureCluster, NO_ENTRIES, ObjectKind as _, reference};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, Store, key_of};

const NETWORK_READY: &str = "NetworkInfrastructureReady";

type ClusterReconcile<'a> = Reconcile<'a, AzureClusterSpec, &'a ClusterContext>;

impl Reconciled for AzureClusterSpec {
    const FINALIZER: &'static str = FINALIZER;
    const RUNNING: &'static str = NETWORK_READY;

    fn store(stores: &Stores) -> &Store<Self> {
        &stores.azure_clusters
    }
}

impl Manager {
    /// Reconciles an AzureCluster with Azure.
    pub(crate) async fn reconcile_cluster(
        self: Arc<Self>,
        key: Key,
        not_before: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_clusters, &key)?;
        let annotations = object.metadata.annotations.as_ref();
        if core::is_managed_elsewhere(&object.metadata) {
            return Ok(Outcome::Idle);
        }
        let Some(owner) = core::owner(&object.metadata, "Cluster") else {
            self.recorder.normal(reference(&object), "OwnerRefNotSet", "waiting for its owner Cluster");
            return Ok(Outcome::Idle);
        };
        let cluster = self.dependency(&object, &self.stores.clusters, owner).ok_or(Outcome::Idle)?;
        let mut reconcile = Reconcile::of(&self, &key, &object, not_before, ())?;
        let is_paused = core::is_paused(&cluster, annotations);
        if let Err(error) = reconcile.take_over(is_paused).await {
            return Ok(reconcile.not_taken_over(error).await?);
        }
        if is_paused {
            reconcile.edited.pause();
            reconcile.edited.show_contract(&self.now());
            if reconcile.edited.save().await? {
                let words = "it, or its Cluster, is paused: it is left alone";
                self.recorder.normal(reconcile.about(), "ClusterPaused", words);
                reconcile.edited.keep_in(&self.stores.azure_clusters);
            }
            return Ok(Outcome::Idle);
        }
        let deleting = reconcile.is_deleting();
        if deleting && cluster_life::has_ended(&object.metadata) {
            return Ok(reconcile.let_go().await?);
        }
        let mut context = match self.context_if_allowed(&object, cluster).await {
            Ok(context) => context,
            Err(error) => return Ok(reconcile.without_access(&error).await?),
        };
        if context.id.is_empty() {
            context.id = object.metadata.uid.clone().unwrap_or_default();
        }
        let reconcile = reconcile.with(&context);
        Ok(if deleting { Box::pin(reconcile.delete()).await } else { Box::pin(reconcile.reconcile()).await }?)
    }

    async fn context_if_allowed(
        &self,
        object: &Arc<AzureCluster>,
        cluster: Arc<Cluster>,
    ) -> Result<ClusterContext, IdentityError> {
        if object.metadata.deletion_timestamp.is_none() {
            self.check_can_hold(object)?;
        }
        self.cluster_context(ClusterObjects { cluster, azure_cluster: Arc::clone(object), managed: None })
            .await
    }
}

/// The desired state of one reconcile.
enum ClusterTarget {
    Declared { memory: Memory, strangers: BTreeSet<ResourceId> },
    Ended { memory: Memory, ending: Ending },
}

impl ClusterReconcile<'_> {
    fn memory(&self) -> Memory {
        Memory::of(self.edited.object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES))
    }

    async fn reconcile(mut self) -> Result<Outcome, PatchError> {
        if let Err(failure) = self.own.check_rival() {
            return self.failed(&failure, false).await;
        }
        let context = self.own;
        let cluster = context.cluster.metadata.name.as_deref().unwrap_or_default();
        let port = context.cluster.spec.cluster_network.api_server_port.unwrap_or(6443);
        let spec = &mut self.edited.object.spec;
        complete(spec, cluster, &context.subscription, port, context.dns_suffix);
        if let Err(failure) = self.find_zones().await {
            return self.failed(&failure, false).await;
        }
        let before = self.memory();
        let (strangers, observed) = match self.contact(&before).await {
            Ok(contact) => contact,
            Err(failure) => return self.failed(&failure, false).await,
        };
        // The resources to create and the cluster's ID are recorded first: if this process ends in between, they are
        // still known to be the cluster's.
        self.manager.hold_identity(&self.edited.object, true).await?;
        self.edited.hold(FINALIZER);
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        annotations.insert(CLUSTER_ID.to_owned(), self.own.id.clone());
        self.remember(&before.with(&self.new_memory().without(&strangers)));
        self.save().await?;

        let target = ClusterTarget::Declared { memory: before, strangers: strangers.clone() };
        match self.drive(observed, target).await {
            Ok((observed, _)) => self.reached(&observed, &strangers).await,
            Err(failure) => self.failed(&failure, false).await,
        }
    }

    fn new_memory(&self) -> Memory {
        let zones = zones_of(&self.edited.object);
        remembered(self.own.scope_of(&self.edited.object.spec, &zones))
    }

    fn remember(&mut self, memory: &Memory) {
        self.edited.object.metadata.annotations.get_or_insert_default().extend(memory.annotations());
    }

    /// Reads the resources that the cluster has not recorded yet. Returns those that are foreign, and everything
    /// observed.
    async fn contact(&self, memory: &Memory) -> Result<(BTreeSet<ResourceId>, ObservedResources), Failure> {
        let mut observed = ObservedResources::default();
        // Resources of the established provider bear no ID and are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            return Ok((BTreeSet::new(), observed));
        }
        let zones = zones_of(&self.edited.object);
        let scope = self.own.scope_of(&self.edited.object.spec, &zones);
        let goals = unrecorded(goals(scope, memory), memory);
        let reach = self.reach(self.own);
        reach.read_missing(&mut observed, &goals).await?;
        let mut strangers = contact(scope, &goals, &observed).map_err(Failure::Refused)?;
        for reading in links_of_zones(&goals, &observed) {
            strangers.extend(linked_already(&goals, &reach.list(&reading).await?));
        }
        Ok((strangers, observed))
    }

    async fn drive(
        &mut self,
        observed: ObservedResources,
        target: ClusterTarget,
    ) -> Result<(ObservedResources, Plan), Failure> {
        let (operations, reach) = (self.edited.operations(), self.reach(self.own));
        let zones = zones_of(&self.edited.object);
        let deleting = matches!(target, ClusterTarget::Ended { .. });
        let mut subject = ClusterSubject { context: self.own, reconcile: self, deleting, zones, target };
        reach.run_from(observed, &mut subject, &operations).await
    }

    /// The observed state matches the desired state.
    async fn reached(
        mut self,
        observed: &ObservedResources,
        strangers: &BTreeSet<ResourceId>,
    ) -> Result<Outcome, PatchError> {
        let zones = zones_of(&self.edited.object);
        let declared = self.edited.object.spec.clone();
        let scope = self.own.scope_of(&declared, &zones);
        let outcome = match endpoint(scope) {
            Endpoint::Known(endpoint) => {
                self.edited.object.spec.control_plane_endpoint = Some(endpoint);
                self.set([holds(NETWORK_READY)]);
                self.edited.status().ready = Some(true);
                Outcome::Rest
            }
            Endpoint::Awaited(member) => {
                let words = format!("waiting for the {member} of the externally managed control plane");
                let reason = "ExternallyManagedControlPlane";
                self.set([fails(NETWORK_READY, reason, Severity::Info, words)]);
                Outcome::Idle
            }
        };
        read_back(&mut self.edited.object.spec, scope, observed);
        let memory = {
            let spec = &self.edited.object.spec;
            let scope = self.own.scope_of(spec, &zones);
            remembered_of(scope, observed).without(strangers).with(&self.memory().until_the_end())
        };
        self.remember(&memory);
        self.save().await?;
        // Wakes the machines that wait for their network without waiting for the watch.
        self.manager.wake_machines_of(&key_of(&*self.own.cluster));
        Ok(outcome)
    }

    async fn failed(mut self, failure: &Failure, deleting: bool) -> Result<Outcome, PatchError> {
        let about = self.about();
        let recorder = &self.manager.recorder;
        let (condition, outcome) = match failure {
            Failure::Later { after, words } => {
                tracing::info!(cluster = %self.key, reason = %words, "retrying later");
                return Ok(Outcome::After(*after));
            }
            Failure::Changed => return Ok(Outcome::After(Duration::ZERO)),
            Failure::Terminal(terminal) => {
                recorder.warning(about, "ReconcileError", terminal.message.clone());
                (fails(NETWORK_READY, "Failed", Severity::Error, ""), Outcome::Idle)
            }
            Failure::Refused(words) if deleting => {
                recorder.warning(about, "ClusterReconcilerDeleteFailed", words.clone());
                (fails(NETWORK_READY, "DeletionFailed", Severity::Warning, words.clone()), Outcome::Retry)
            }
            Failure::Refused(words) => {
                recorder.warning(about, "ClusterReconcilerNormalFailed", words.clone());
                (fails(NETWORK_READY, "Failed", Severity::Error, words.clone()), Outcome::Retry)
            }
        };
        self.set([condition]);
        self.save().await?;
        Ok(outcome)
    }

    /// Records the zones of the region. Zones are only ever added, because machines may be in them.
    async fn find_zones(&mut self) -> Result<(), Failure> {
        let spec = &self.edited.object.spec;
        if spec.extended_location.is_some() {
            return Ok(());
        }
        let skus = self.own.skus(self.manager).await?;
        let declared = spec.failure_domains.clone().unwrap_or_default();
        let status = self.edited.status();
        let zones = skus.zones();
        if zones.is_empty() {
            return Ok(());
        }
        let domains = status.failure_domains.get_or_insert_default();
        for zone in zones {
            let wanted = declared.get(&zone).and_then(|zone| zone.control_plane) != Some(false);
            let domain = FailureDomain { control_plane: Some(wanted), ..FailureDomain::default() };
            domains.insert(zone, domain);
        }
        Ok(())
    }

    async fn delete(mut self) -> Result<Outcome, PatchError> {
        if !self.edited.is_held(FINALIZER) {
            return Ok(Outcome::Gone);
        }
        // While the cluster has machines no resource is deleted, whatever the order of deletion: their nodes could not
        // be drained without the network.
        match self.manager.left_in(&key_of(&*self.own.cluster)) {
            // The watch of the last of them wakes this cluster.
            None => return Ok(Outcome::Idle),
            Some(left) if !left.is_empty() => {
                let words = format!("waiting for these to be deleted first: {}", left.join(", "));
                self.set([fails(NETWORK_READY, "Deleting", Severity::Info, words)]);
                self.save().await?;
                return Ok(Outcome::Idle);
            }
            Some(_) => {}
        }
        // Set before Azure is asked, which may not answer.
        if !["Deleting", DELETION_FAILED].iter().any(|reason| self.edited.has_reason(NETWORK_READY, reason)) {
            self.set([fails(NETWORK_READY, "Deleting", Severity::Info, "")]);
            self.save().await?;
        }
        let mut memory = self.memory();
        // Resources of the established provider are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            memory = memory.with(&self.new_memory());
        }
        let cluster_is_deleted = self.own.cluster.metadata.deletion_timestamp.is_some();
        let zones = zones_of(&self.edited.object);
        let declared = self.edited.object.spec.clone();
        let scope = self.own.scope_of(&declared, &zones);
        let kind = AzureClusterSpec::NAME;
        let ending = self.manager.ending(self.own, kind, scope, cluster_is_deleted, self.not_before).await;
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return self.failed(&failure, true).await,
        };
        let left = ending.left();
        if let Some(words) = &left {
            let waiting = fails(NETWORK_READY, "Deleting", Severity::Info, words.clone());
            self.set([waiting]);
        }
        match self.drive(ObservedResources::default(), ClusterTarget::Ended { memory, ending }).await {
            Ok((_, plan)) => {
                let left: Vec<String> = left.into_iter().chain(plan.in_use()).collect();
                if !left.is_empty() {
                    let words = left.join(". ");
                    self.manager.recorder.warning(self.about(), "ResourcesLeft", words);
                }
                self.let_go().await
            }
            Err(failure) => self.failed(&failure, true).await,
        }
    }
}

struct ClusterSubject<'s, 'a> {
    reconcile: &'s mut ClusterReconcile<'a>,
    context: &'a ClusterContext,
    deleting: bool,
    zones: Vec<String>,
    target: ClusterTarget,
}

impl Subject for ClusterSubject<'_, '_> {
    fn goals(&mut self, _: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let spec = &self.reconcile.edited.object.spec;
        let scope = self.context.scope_of(spec, &self.zones);
        Ok(match &self.target {
            ClusterTarget::Declared { memory, strangers } => {
                let mut goals = goals(scope, memory);
                // Another link of the DNS zone serves the same purpose, so there is nothing to create.
                goals.retain(|goal| *goal.service != DNS_LINKS || !strangers.contains(&goal.id));
                for goal in goals.iter_mut().filter(|goal| strangers.contains(&goal.id)) {
                    goal.ownership = OwnershipRule::Foreign;
                }
                goals
            }
            ClusterTarget::Ended { memory, ending } => {
                ends_beside(scope, memory, ending.end, &ending.inventory)
            }
        })
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let object = &mut self.reconcile.edited.object;
        let group = self.context.scope_of(&object.spec, &self.zones).group();
        // From here on another subscription is refused: the cluster would be created a second time, and the first one
        // abandoned.
        if !self.deleting && plan.state_of(&group).is_some_and(State::is_there) {
            let annotations = object.metadata.annotations.get_or_insert_default();
            annotations.insert(elsewhere::SUBSCRIPTION.to_owned(), self.context.subscription.clone());
        }
        self.reconcile.report(condition::project(&CLUSTER, plan), operations).await
    }

    fn has_changed(&self) -> bool {
        self.reconcile.has_changed(self.context, self.deleting)
    }

    fn changes(&self) -> Changes {
        self.reconcile.changes(self.context)
    }
}
