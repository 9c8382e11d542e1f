//! The controller of AzureClusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
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
use crate::cluster::edited::{EditedCluster, KIND, reference};
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::{ClusterObjects, zones_of};
use crate::context::ending::Ending;
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::context::namesakes::{self, FINALIZER};
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::AzureCluster;
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Changes, Key, key_of};

/// The annotation of an AzureCluster that has no resources left in Azure; its value is the object's UID.
const ENDED: &str = "sigs.k8s.io/cluster-api-provider-azure-deleted";
const NETWORK_READY: &str = "NetworkInfrastructureReady";

impl Manager {
    /// Reconciles an AzureCluster with Azure.
    pub(crate) async fn reconcile_cluster(self: Arc<Self>, key: &Key, not_before: Instant) -> Outcome {
        let object = match self.own(&self.stores.azure_clusters, key) {
            Ok(object) => object,
            Err(end) => return end,
        };
        let annotations = object.metadata.annotations.as_ref();
        if core::is_managed_elsewhere(&object.metadata) {
            return Outcome::Idle;
        }
        let owners = object.metadata.owner_references.as_deref();
        let Some(owner) = core::owner(owners, "Cluster") else {
            self.recorder.normal(reference(&object), "OwnerRefNotSet", "waiting for its owner Cluster");
            return Outcome::Idle;
        };
        let cluster = self.dependency((KIND, &object.metadata), "Cluster", &self.stores.clusters, owner);
        let Some(cluster) = cluster else { return Outcome::Idle };
        let mut edited = match Edited::of(&self.client, KIND, &object) {
            Ok(edited) => edited,
            Err(error) => return self.lost(key, &error),
        };
        let is_paused = core::is_paused(&cluster, annotations);
        if let Err(error) = self.take_over(&mut edited, is_paused, not_before).await {
            return self.not_taken_over(edited, &error).await;
        }
        if is_paused {
            edited.pause();
            return match edited.save().await {
                Ok(written) => {
                    if written {
                        let about = reference(&edited.object);
                        self.recorder.normal(
                            about,
                            "ClusterPaused",
                            "it, or its Cluster, is paused: it is left alone",
                        );
                        edited.keep_in(&self.stores.azure_clusters);
                    }
                    Outcome::Idle
                }
                Err(error) => self.lost(key, &error),
            };
        }
        let deleting = object.metadata.deletion_timestamp.is_some();
        let ended = annotations.and_then(|annotations| annotations.get(ENDED));
        if deleting && ended.is_some() && ended == object.metadata.uid.as_ref() {
            return match self.let_cluster_go(edited).await {
                Ok(outcome) => outcome,
                Err(error) => self.lost(key, &error),
            };
        }
        let mut context = match self.context_if_allowed(&object, cluster).await {
            Ok(context) => context,
            Err(error) => return self.without_access(edited, &error).await,
        };
        if context.id.is_empty() {
            context.id = object.metadata.uid.clone().unwrap_or_default();
        }
        let work = ClusterReconcile { manager: &self, key, context: &context, edited, not_before };
        match if deleting { work.delete().await } else { work.reconcile().await } {
            Ok(outcome) => outcome,
            Err(error) => self.lost(key, &error),
        }
    }

    async fn context_if_allowed(
        &self,
        object: &Arc<AzureCluster>,
        cluster: Arc<Cluster>,
    ) -> Result<ClusterContext, IdentityError> {
        if object.metadata.deletion_timestamp.is_none() {
            self.check_can_hold(object)?;
        }
        self.cluster_context(ClusterObjects { cluster, azure_cluster: Arc::clone(object) }).await
    }

    /// Reports why a cluster cannot access Azure.
    async fn without_access(&self, mut edited: EditedCluster, error: &IdentityError) -> Outcome {
        let about = reference(&edited.object);
        self.recorder.warning(about, "CreateClusterScopeFailed", error.to_string());
        // Failures that need a change by the user are also set as the condition; an older condition would be out of
        // date.
        let reason = match error {
            IdentityError::NotAllowed { .. } => Some("NamespaceNotAllowedByIdentity"),
            error if error.may_pass() => None,
            _ => Some("CreateClusterScopeFailed"),
        };
        if let Some(reason) = reason {
            let condition = fails(NETWORK_READY, reason, Severity::Error, error.to_string());
            set(&mut edited, self.now(), [condition]);
        }
        let key = key_of(&edited.object);
        match edited.save_in(&self.stores.azure_clusters).await {
            Ok(()) => Outcome::Retry,
            Err(error) => self.lost(&key, &error),
        }
    }

    /// Removes the finalizer of a cluster that has no resources left in Azure. An annotation records that first: once
    /// the identity is released it may be deleted, and Azure could not be read again.
    async fn let_cluster_go(&self, mut edited: EditedCluster) -> Result<Outcome, PatchError> {
        let uid = edited.object.metadata.uid.clone().unwrap_or_default();
        edited.object.metadata.annotations.get_or_insert_default().insert(ENDED.to_owned(), uid);
        edited.save_in(&self.stores.azure_clusters).await?;
        self.hold_identity(&edited.object, false).await?;
        edited.let_go(FINALIZER);
        edited.save_in(&self.stores.azure_clusters).await?;
        Ok(Outcome::Gone)
    }
}

/// Sets conditions, and the one that sums them up.
fn set(edited: &mut EditedCluster, now: String, new: impl IntoIterator<Item = capz_api::Condition>) {
    let conditions = edited.object.status.get_or_insert_default().conditions.get_or_insert_default();
    condition::set_all(conditions, new, &now);
}

/// One reconcile of one AzureCluster.
struct ClusterReconcile<'a> {
    manager: &'a Manager,
    key: &'a Key,
    context: &'a ClusterContext,
    edited: EditedCluster,
    not_before: Instant,
}

/// The desired state of one reconcile.
enum ClusterTarget {
    Declared { memory: Memory, strangers: BTreeSet<ResourceId> },
    Ended { memory: Memory, ending: Ending },
}

impl ClusterReconcile<'_> {
    async fn save(&mut self) -> Result<(), PatchError> {
        self.edited.save_in(&self.manager.stores.azure_clusters).await
    }

    fn memory(&self) -> Memory {
        let none = BTreeMap::new();
        Memory::of(self.edited.object.metadata.annotations.as_ref().unwrap_or(&none))
    }

    async fn reconcile(mut self) -> Result<Outcome, PatchError> {
        if let Err(failure) = self.context.check_rival() {
            return self.failed(&failure, false).await;
        }
        let cluster = self.context.cluster.metadata.name.clone().unwrap_or_default();
        let port = self.context.cluster.spec.cluster_network.api_server_port.unwrap_or(6443);
        complete(
            &mut self.edited.object.spec,
            &cluster,
            &self.context.subscription,
            port,
            self.context.dns_suffix,
        );
        if let Err(failure) = self.find_zones().await {
            return self.failed(&failure, false).await;
        }
        let before = self.memory();
        let (strangers, seen) = match self.contact(&before).await {
            Ok(found) => found,
            Err(failure) => return self.failed(&failure, false).await,
        };
        // The resources to create and the cluster's ID are recorded first: if this process ends in between, they are
        // still known to be the cluster's.
        self.manager.hold_identity(&self.edited.object, true).await?;
        self.edited.hold(FINALIZER);
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        annotations.insert(CLUSTER_ID.to_owned(), self.context.id.clone());
        self.remember(&before.with(&self.new_memory().without(&strangers)));
        self.save().await?;

        let target = ClusterTarget::Declared { memory: before, strangers: strangers.clone() };
        match self.reach_from(seen, target).await {
            Ok((observed, _)) => self.reached(&observed, &strangers).await,
            Err(failure) => self.failed(&failure, false).await,
        }
    }

    fn new_memory(&self) -> Memory {
        let zones = zones_of(&self.edited.object);
        remembered(self.context.scope_of(&self.edited.object.spec, &zones))
    }

    fn remember(&mut self, memory: &Memory) {
        self.edited.object.metadata.annotations.get_or_insert_default().extend(memory.annotations());
    }

    /// Reads the resources that the cluster has not recorded yet. Returns those that are foreign, and everything
    /// observed.
    async fn contact(&self, memory: &Memory) -> Result<(BTreeSet<ResourceId>, ObservedResources), Failure> {
        let mut seen = ObservedResources::default();
        // Resources of the established provider bear no ID and are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            return Ok((BTreeSet::new(), seen));
        }
        let zones = zones_of(&self.edited.object);
        let scope = self.context.scope_of(&self.edited.object.spec, &zones);
        let goals = unrecorded(goals(scope, memory), memory);
        let reach = self.context.reach(self.manager, self.not_before, (KIND, &self.key.name));
        reach.read_missing(&mut seen, &goals).await?;
        let mut strangers = contact(scope, &goals, &seen).map_err(Failure::Refused)?;
        for reading in links_of_zones(&goals, &seen) {
            strangers.extend(linked_already(&goals, &reach.list(&reading).await?));
        }
        Ok((strangers, seen))
    }

    async fn reach(&mut self, target: ClusterTarget) -> Result<(ObservedResources, Plan), Failure> {
        self.reach_from(ObservedResources::default(), target).await
    }

    async fn reach_from(
        &mut self,
        seen: ObservedResources,
        target: ClusterTarget,
    ) -> Result<(ObservedResources, Plan), Failure> {
        let operations: Vec<Future> = self
            .edited
            .object
            .status
            .as_ref()
            .and_then(|status| status.long_running_operation_states.clone())
            .unwrap_or_default();
        let reach = self.context.reach(self.manager, self.not_before, (KIND, &self.key.name));
        let zones = zones_of(&self.edited.object);
        let mut subject = ClusterSubject {
            manager: self.manager,
            context: self.context,
            key: self.key,
            deleting: matches!(target, ClusterTarget::Ended { .. }),
            edited: &mut self.edited,
            zones,
            target,
        };
        reach.run_from(seen, &mut subject, &operations).await
    }

    /// The observed state matches the desired state.
    async fn reached(
        mut self,
        observed: &ObservedResources,
        strangers: &BTreeSet<ResourceId>,
    ) -> Result<Outcome, PatchError> {
        let zones = zones_of(&self.edited.object);
        let now = self.manager.now();
        let declared = self.edited.object.spec.clone();
        let scope = self.context.scope_of(&declared, &zones);
        let outcome = match endpoint(scope) {
            Endpoint::Known(endpoint) => {
                self.edited.object.spec.control_plane_endpoint = Some(endpoint);
                set(&mut self.edited, now, [holds(NETWORK_READY)]);
                self.edited.object.status.get_or_insert_default().ready = Some(true);
                Outcome::Rest
            }
            Endpoint::Awaited(member) => {
                let words = format!("waiting for the {member} of the externally managed control plane");
                let reason = "ExternallyManagedControlPlane";
                set(&mut self.edited, now, [fails(NETWORK_READY, reason, Severity::Info, words)]);
                Outcome::Idle
            }
        };
        read_back(&mut self.edited.object.spec, scope, observed);
        let memory = {
            let spec = &self.edited.object.spec;
            let scope = self.context.scope_of(spec, &zones);
            remembered_of(scope, observed).without(strangers).with(&self.memory().until_the_end())
        };
        self.remember(&memory);
        self.save().await?;
        // Wakes the machines that wait for their network without waiting for the watch.
        self.manager.wake_machines_of(&key_of(&*self.context.cluster));
        Ok(outcome)
    }

    async fn failed(mut self, failure: &Failure, deleting: bool) -> Result<Outcome, PatchError> {
        let about = reference(&self.edited.object);
        let recorder = &self.manager.recorder;
        let (condition, outcome) = match failure {
            Failure::Later { after, words } => {
                tracing::info!(cluster = %self.key, %words, "retrying later");
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
        set(&mut self.edited, self.manager.now(), [condition]);
        self.save().await?;
        Ok(outcome)
    }

    /// Records the zones of the region. Zones are only ever added, because machines may be in them.
    async fn find_zones(&mut self) -> Result<(), Failure> {
        let spec = &self.edited.object.spec;
        if spec.extended_location.is_some() {
            return Ok(());
        }
        let skus = self.context.skus(self.manager).await?;
        let declared = spec.failure_domains.clone().unwrap_or_default();
        let status = self.edited.object.status.get_or_insert_default();
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
        match self.manager.left_in(&key_of(&*self.context.cluster)) {
            // The watch of the last of them wakes this cluster.
            None => return Ok(Outcome::Idle),
            Some(left) if !left.is_empty() => {
                let words = format!("waiting for these to be deleted first: {}", left.join(", "));
                set(
                    &mut self.edited,
                    self.manager.now(),
                    [fails(NETWORK_READY, "Deleting", Severity::Info, words)],
                );
                self.save().await?;
                return Ok(Outcome::Idle);
            }
            Some(_) => {}
        }
        // Set before Azure is asked, which may not answer.
        let conditions = self.edited.object.status.as_ref().and_then(|status| status.conditions.as_ref());
        if !["Deleting", DELETION_FAILED]
            .iter()
            .any(|reason| condition::has_reason(conditions, NETWORK_READY, reason))
        {
            set(&mut self.edited, self.manager.now(), [fails(NETWORK_READY, "Deleting", Severity::Info, "")]);
            self.save().await?;
        }
        let mut memory = self.memory();
        // Resources of the established provider are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            memory = memory.with(&self.new_memory());
        }
        let cluster_is_deleted = self.context.cluster.metadata.deletion_timestamp.is_some();
        let zones = zones_of(&self.edited.object);
        let declared = self.edited.object.spec.clone();
        let scope = self.context.scope_of(&declared, &zones);
        let ending = self.manager.ending(self.context, scope, cluster_is_deleted, self.not_before).await;
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return self.failed(&failure, true).await,
        };
        let left = ending.left();
        if let Some(words) = &left {
            let waiting = fails(NETWORK_READY, "Deleting", Severity::Info, words.clone());
            set(&mut self.edited, self.manager.now(), [waiting]);
        }
        match self.reach(ClusterTarget::Ended { memory, ending }).await {
            Ok((_, plan)) => {
                let left: Vec<String> = left.into_iter().chain(plan.in_use()).collect();
                if !left.is_empty() {
                    let words = left.join(". ");
                    self.manager.recorder.warning(reference(&self.edited.object), "ResourcesLeft", words);
                }
                self.manager.let_cluster_go(self.edited).await
            }
            Err(failure) => self.failed(&failure, true).await,
        }
    }
}

struct ClusterSubject<'a> {
    manager: &'a Manager,
    context: &'a ClusterContext,
    key: &'a Key,
    deleting: bool,
    edited: &'a mut EditedCluster,
    zones: Vec<String>,
    target: ClusterTarget,
}

impl Subject for ClusterSubject<'_> {
    fn goals(&mut self, _: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let spec = &self.edited.object.spec;
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
        let conditions = condition::project(&CLUSTER, plan);
        set(self.edited, self.manager.now(), conditions);
        let spec = &self.edited.object.spec;
        let group = self.context.scope_of(spec, &self.zones).group();
        // From here on another subscription is refused: the cluster would be created a second time, and the first one
        // abandoned.
        if !self.deleting && plan.state_of(&group).is_some_and(State::is_there) {
            let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
            annotations.insert(elsewhere::SUBSCRIPTION.to_owned(), self.context.subscription.clone());
        }
        let status = self.edited.object.status.get_or_insert_default();
        status.long_running_operation_states = (!operations.is_empty()).then_some(operations);
        let saved = self.edited.save_in(&self.manager.stores.azure_clusters).await;
        saved.map_err(|error| Failure::of_write(&error, self.manager.settings.timeouts.requeue))
    }

    fn has_changed(&self) -> bool {
        let Some(newest) = self.manager.stores.azure_clusters.get(self.key) else { return true };
        self.edited.is_outdated(&newest.metadata)
            || newest.metadata.deletion_timestamp.is_some() != self.deleting
            || self.context.is_paused(self.manager, newest.metadata.annotations.as_ref())
    }

    fn changes(&self) -> Changes {
        let own = self.manager.stores.azure_clusters.changes_of(self.key);
        Changes::of([own, self.context.cluster_changes(self.manager)])
    }
}
