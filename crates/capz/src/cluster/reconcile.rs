//! The controller of AzureClusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use capz_api::azure_cluster::{AzureClusterSpec, AzureClusterStatus};
use capz_api::{FailureDomain, Future};
use capz_planner::cluster::{
    CLUSTER_ID, Endpoint, Memory, complete, contact, endpoint, ends_beside, goals, linked_already,
    links_of_zones, read_back, remembered, remembered_of, unrecorded,
};
use capz_planner::condition::{self, Severity, fails, holds};
use capz_planner::elsewhere;
use capz_planner::service::{CLUSTER, DNS_LINKS};
use capz_planner::{Goal, ObservedResources, OwnershipRule, Plan, State};
use controllers::Reference;
use tokio::time::Instant;

use crate::azure::failure::{DELETION_FAILED, Failure};
use crate::azure::reach::Subject;
use crate::context::dependency::About;
use crate::context::ending::Ending;
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::context::namesakes::{self, FINALIZER};
use crate::context::surroundings::Surroundings;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{API_VERSION, AzureCluster};
use crate::kubernetes::operator::{self, OperatorError};
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::{Key, key_of};

const KIND: &str = "AzureCluster";
/// The annotation of an AzureCluster that has no resources left in Azure; its value is the object's UID.
const ENDED: &str = "sigs.k8s.io/cluster-api-provider-azure-deleted";
const NETWORK_READY: &str = "NetworkInfrastructureReady";

type EditedCluster = Edited<AzureClusterSpec, AzureClusterStatus>;

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
        let about = About { kind: KIND, key, metadata: &object.metadata };
        let Some(cluster) = about.needs(&self, "Cluster", &self.stores.clusters, owner) else {
            return Outcome::Idle;
        };
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
        let surroundings = match self.surroundings_if_allowed(&object, cluster).await {
            Ok(surroundings) => surroundings,
            Err(error) => return self.without_access(edited, &error).await,
        };
        let mut surroundings = surroundings;
        if surroundings.id.is_empty() {
            surroundings.id = object.metadata.uid.clone().unwrap_or_default();
        }
        let work = ClusterWork { manager: &self, key, surroundings: &surroundings, edited, not_before };
        match if deleting { work.delete().await } else { work.reconcile().await } {
            Ok(outcome) => outcome,
            Err(error) => self.lost(key, &error),
        }
    }

    /// Prevents Azure Service Operator from writing to and deleting from Azure for this cluster.
    async fn take_over(
        &self,
        edited: &mut EditedCluster,
        is_paused: bool,
        not_before: Instant,
    ) -> Result<(), TakeoverError> {
        let owner = edited.object.metadata.uid.clone().unwrap_or_default();
        // A paused cluster may be moved next, so its objects are read afresh; otherwise a recent list will do.
        let not_before = if is_paused { not_before } else { operator::lately() };
        let objects = self.operator.make_harmless(&owner, not_before).await?;
        if is_paused || objects.is_empty() {
            return Ok(());
        }
        let annotations = edited.object.metadata.annotations.get_or_insert_default();
        if let Some((key, text)) = operator::kept_besides(annotations, &objects) {
            let words = format!(
                "Azure Service Operator is configured not to delete these, so they are used as they are (annotation {key}): {text}"
            );
            annotations.insert(key, text);
            self.save(edited).await?;
            self.recorder.normal(reference(&edited.object), "ResourcesKept", words);
        }
        let going = objects.iter().filter(|object| !object.is_deleted()).count();
        if going > 0 {
            let words = format!(
                "deletes {going} objects of Azure Service Operator; their resources in Azure stay, and this program manages them"
            );
            self.recorder.normal(reference(&edited.object), "TakenOver", words);
        }
        Ok(self.operator.remove(&owner).await?)
    }

    /// Reports why a cluster is not taken over yet. Until then it cannot be moved.
    async fn not_taken_over(&self, mut edited: EditedCluster, error: &TakeoverError) -> Outcome {
        let key = key_of(&edited.object);
        let error = match error {
            TakeoverError::Operator(error) => error,
            TakeoverError::Write(error) => return self.lost(&key, error),
        };
        if error.is_waiting() {
            tracing::info!(cluster = %key, words = %error, "retrying later");
            return Outcome::After(operator::GOING);
        }
        self.recorder.warning(reference(&edited.object), "OperatorObjectsLeft", error.to_string());
        edited.block_move();
        match self.save(&mut edited).await {
            Ok(()) => Outcome::Retry,
            Err(error) => self.lost(&key, &error),
        }
    }

    async fn surroundings_if_allowed(
        &self,
        object: &AzureCluster,
        cluster: Arc<Cluster>,
    ) -> Result<Surroundings, IdentityError> {
        if object.metadata.deletion_timestamp.is_none() {
            self.check_can_hold(object)?;
        }
        self.surroundings(object, cluster).await
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
        match self.save(&mut edited).await {
            Ok(()) => Outcome::Retry,
            Err(error) => self.lost(&key, &error),
        }
    }

    /// Removes the finalizer of a cluster that has no resources left in Azure. An annotation records that first: once
    /// the identity is released it may be deleted, and Azure could not be read again.
    async fn let_cluster_go(&self, mut edited: EditedCluster) -> Result<Outcome, PatchError> {
        let uid = edited.object.metadata.uid.clone().unwrap_or_default();
        edited.object.metadata.annotations.get_or_insert_default().insert(ENDED.to_owned(), uid);
        self.save(&mut edited).await?;
        self.hold_identity(&edited.object, false).await?;
        edited.let_go(FINALIZER);
        self.save(&mut edited).await?;
        Ok(Outcome::Gone)
    }

    /// Saves the changes to a cluster, and stores the API server's answer.
    async fn save(&self, edited: &mut EditedCluster) -> Result<(), PatchError> {
        if edited.save().await? {
            edited.keep_in(&self.stores.azure_clusters);
        }
        Ok(())
    }
}

/// An AzureCluster for events.
fn reference(object: &AzureCluster) -> Reference {
    Reference::of(API_VERSION, KIND, &object.metadata)
}

/// Sets conditions, and the one that sums them up.
fn set(edited: &mut EditedCluster, now: String, new: impl IntoIterator<Item = capz_api::Condition>) {
    let conditions = edited.object.status.get_or_insert_default().conditions.get_or_insert_default();
    condition::set_all(conditions, new, &now);
}

/// One reconcile of one AzureCluster.
struct ClusterWork<'a> {
    manager: &'a Manager,
    key: &'a Key,
    surroundings: &'a Surroundings,
    edited: EditedCluster,
    not_before: Instant,
}

/// Why a cluster is not taken over yet.
#[derive(Debug, thiserror::Error)]
enum TakeoverError {
    /// Objects of Azure Service Operator are in the way.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The AzureCluster was not written.
    #[error(transparent)]
    Write(#[from] PatchError),
}

/// The desired state of one reconcile.
enum Wish {
    Declared { memory: Memory, strangers: BTreeSet<ResourceId> },
    Ended { memory: Memory, ending: Ending },
}

impl ClusterWork<'_> {
    fn gates(&self) -> capz_api::Gates {
        self.manager.settings.gates.of_admission()
    }

    fn memory(&self) -> Memory {
        let none = BTreeMap::new();
        Memory::of(self.edited.object.metadata.annotations.as_ref().unwrap_or(&none))
    }

    fn zones(&self) -> Vec<String> {
        let status = self.edited.object.status.as_ref();
        let domains = status.and_then(|status| status.failure_domains.as_ref());
        domains.into_iter().flat_map(|domains| domains.keys().cloned()).collect()
    }

    async fn reconcile(mut self) -> Result<Outcome, PatchError> {
        if let Err(failure) = self.surroundings.check_rival() {
            return self.failed(&failure, false).await;
        }
        let cluster = self.surroundings.cluster.metadata.name.clone().unwrap_or_default();
        let port = self.surroundings.cluster.spec.cluster_network.api_server_port.unwrap_or(6443);
        complete(
            &mut self.edited.object.spec,
            &cluster,
            &self.surroundings.subscription,
            port,
            self.surroundings.dns_suffix,
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
        annotations.insert(CLUSTER_ID.to_owned(), self.surroundings.id.clone());
        self.remember(&before.with(&self.new_memory().without(&strangers)));
        self.manager.save(&mut self.edited).await?;

        let wish = Wish::Declared { memory: before, strangers: strangers.clone() };
        match self.reach_from(seen, wish).await {
            Ok((observed, _)) => self.reached(&observed, &strangers).await,
            Err(failure) => self.failed(&failure, false).await,
        }
    }

    fn new_memory(&self) -> Memory {
        let zones = self.zones();
        remembered(self.surroundings.scope(&self.key.name, &self.edited.object.spec, &zones, self.gates()))
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
        let zones = self.zones();
        let scope = self.surroundings.scope(&self.key.name, &self.edited.object.spec, &zones, self.gates());
        let goals = unrecorded(goals(scope, memory), memory);
        let reach = self.surroundings.reach(self.manager, self.not_before, (KIND, &self.key.name));
        reach.look(&mut seen, &goals).await?;
        let mut strangers = contact(scope, &goals, &seen).map_err(Failure::Refused)?;
        for reading in links_of_zones(&goals, &seen) {
            strangers.extend(linked_already(&goals, &reach.list(&reading).await?));
        }
        Ok((strangers, seen))
    }

    async fn reach(&mut self, wish: Wish) -> Result<(ObservedResources, Plan), Failure> {
        self.reach_from(ObservedResources::default(), wish).await
    }

    async fn reach_from(
        &mut self,
        seen: ObservedResources,
        wish: Wish,
    ) -> Result<(ObservedResources, Plan), Failure> {
        let kept: Vec<Future> = self
            .edited
            .object
            .status
            .as_ref()
            .and_then(|status| status.long_running_operation_states.clone())
            .unwrap_or_default();
        let reach = self.surroundings.reach(self.manager, self.not_before, (KIND, &self.key.name));
        let zones = self.zones();
        let mut subject = ClusterSubject {
            manager: self.manager,
            surroundings: self.surroundings,
            key: self.key,
            gates: self.gates(),
            deleting: matches!(wish, Wish::Ended { .. }),
            edited: &mut self.edited,
            zones,
            wish,
        };
        reach.run_from(seen, &mut subject, &kept).await
    }

    /// The observed state matches the desired state.
    async fn reached(
        mut self,
        observed: &ObservedResources,
        strangers: &BTreeSet<ResourceId>,
    ) -> Result<Outcome, PatchError> {
        let zones = self.zones();
        let now = self.manager.now();
        let declared = self.edited.object.spec.clone();
        let scope = self.surroundings.scope(&self.key.name, &declared, &zones, self.gates());
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
            let scope = self.surroundings.scope(&self.key.name, spec, &zones, self.gates());
            remembered_of(scope, observed).without(strangers).with(&self.memory().until_the_end())
        };
        self.remember(&memory);
        self.manager.save(&mut self.edited).await?;
        // Wakes the machines that wait for their network without waiting for the watch.
        self.manager.wake_machines_of(&key_of(&*self.surroundings.cluster));
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
        self.manager.save(&mut self.edited).await?;
        Ok(outcome)
    }

    /// Records the zones of the region. Zones are only ever added, because machines may be in them.
    async fn find_zones(&mut self) -> Result<(), Failure> {
        let spec = &self.edited.object.spec;
        if spec.extended_location.is_some() {
            return Ok(());
        }
        let location = spec.location.clone().unwrap_or_default();
        let skus = self
            .manager
            .skus
            .get(&self.surroundings.access, &self.surroundings.subscription, &location)
            .await;
        let skus = skus.map_err(|error| Failure::of(&error, self.manager.settings.timeouts.requeue))?;
        let wishes = spec.failure_domains.clone().unwrap_or_default();
        let status = self.edited.object.status.get_or_insert_default();
        let zones = skus.zones();
        if zones.is_empty() {
            return Ok(());
        }
        let domains = status.failure_domains.get_or_insert_default();
        for zone in zones {
            let wanted = wishes.get(&zone).and_then(|wish| wish.control_plane) != Some(false);
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
        match self.manager.left_in(&key_of(&*self.surroundings.cluster)) {
            // The watch of the last of them wakes this cluster.
            None => return Ok(Outcome::Idle),
            Some(left) if !left.is_empty() => {
                let words = format!("waiting for these to be deleted first: {}", left.join(", "));
                set(
                    &mut self.edited,
                    self.manager.now(),
                    [fails(NETWORK_READY, "Deleting", Severity::Info, words)],
                );
                self.manager.save(&mut self.edited).await?;
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
            self.manager.save(&mut self.edited).await?;
        }
        let mut memory = self.memory();
        // Resources of the established provider are not recorded.
        if namesakes::is_taken_over(&self.edited.object) {
            memory = memory.with(&self.new_memory());
        }
        let cluster_is_deleted = self.surroundings.cluster.metadata.deletion_timestamp.is_some();
        let zones = self.zones();
        let declared = self.edited.object.spec.clone();
        let scope = self.surroundings.scope(&self.key.name, &declared, &zones, self.gates());
        let ending = self.manager.ending(self.surroundings, scope, cluster_is_deleted, self.not_before).await;
        let ending = match ending {
            Ok(ending) => ending,
            Err(failure) => return self.failed(&failure, true).await,
        };
        let left = ending.left();
        if let Some(words) = &left {
            let waiting = fails(NETWORK_READY, "Deleting", Severity::Info, words.clone());
            set(&mut self.edited, self.manager.now(), [waiting]);
        }
        match self.reach(Wish::Ended { memory, ending }).await {
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
    surroundings: &'a Surroundings,
    key: &'a Key,
    gates: capz_api::Gates,
    deleting: bool,
    edited: &'a mut EditedCluster,
    zones: Vec<String>,
    wish: Wish,
}

impl Subject for ClusterSubject<'_> {
    fn goals(&mut self, _: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        let spec = &self.edited.object.spec;
        let scope = self.surroundings.scope(&self.key.name, spec, &self.zones, self.gates);
        Ok(match &self.wish {
            Wish::Declared { memory, strangers } => {
                let mut goals = goals(scope, memory);
                // Another link of the DNS zone serves the same purpose, so there is nothing to create.
                goals.retain(|goal| *goal.service != DNS_LINKS || !strangers.contains(&goal.id));
                for goal in goals.iter_mut().filter(|goal| strangers.contains(&goal.id)) {
                    goal.ownership = OwnershipRule::Foreign;
                }
                goals
            }
            Wish::Ended { memory, ending } => ends_beside(scope, memory, ending.end, &ending.inventory),
        })
    }

    async fn tell(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        let conditions = condition::project(&CLUSTER, plan);
        set(self.edited, self.manager.now(), conditions);
        let spec = &self.edited.object.spec;
        let group = self.surroundings.scope(&self.key.name, spec, &self.zones, self.gates).group();
        // From here on another subscription is refused: the cluster would be created a second time, and the first one
        // abandoned.
        if !self.deleting && plan.state_of(&group).is_some_and(State::is_there) {
            let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
            annotations.insert(elsewhere::SUBSCRIPTION.to_owned(), self.surroundings.subscription.clone());
        }
        let status = self.edited.object.status.get_or_insert_default();
        status.long_running_operation_states = (!operations.is_empty()).then_some(operations);
        let saved = self.manager.save(self.edited).await;
        saved.map_err(|error| Failure::of_write(&error, self.manager.settings.timeouts.requeue))
    }

    fn has_changed(&self) -> bool {
        let Some(newest) = self.manager.stores.azure_clusters.get(self.key) else { return true };
        self.edited.is_outdated(&newest.metadata)
            || newest.metadata.deletion_timestamp.is_some() != self.deleting
            || self.surroundings.is_paused(self.manager, newest.metadata.annotations.as_ref())
    }
}
