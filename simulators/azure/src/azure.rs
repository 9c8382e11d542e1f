//! The handle on one simulated Azure.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use azure_types::ResourceId;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::host_routes::HostRoutes;
use crate::published::DeviatingResources;
use crate::recording::Recording;
use azure_engine::document::reading::Documents;
use azure_engine::fault::Fault;
use azure_engine::journal::Journal;
use azure_engine::operation::execution::Execution;
use azure_engine::operation::{OperationEnd, OperationState};
use azure_engine::provider::{AzureState, DataPlane};
use azure_engine::refusal::{Code, Result};
use azure_engine::request::Conditions;
use azure_engine::settings::actors::{Actor, Actors};
use azure_engine::settings::budget::BudgetState;
use azure_engine::settings::budget::Budgets;
use azure_engine::settings::consistency::Consistency;
use azure_engine::settings::latency::LatencyProfile;
use azure_engine::settings::options::MetadataAddresses;
use azure_engine::settings::options::Options;
use azure_engine::state::overrides::{check_budgets, check_limits};
use azure_engine::state::snapshot::BadSnapshot;
use azure_entra::{Clock, TokenVerifier};
use azure_providers::authorization;
use azure_providers::resources::{ResourceManager, delete_group, put_group};
use azure_providers::storage::FileAccount;

const RESOURCE_NOT_FOUND: Code = Code::azures(404, "ResourceNotFound");

/// One simulated Azure. Clones are cheap and stand for the same Azure.
///
/// Requests go through [`Azure::router`]; builders, tests and the demo may also reach in directly.
/// All time is tokio's: under a paused clock operations take no real time.
#[derive(Clone)]
pub struct Azure {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) state: Mutex<AzureState>,
    pub(crate) options: Arc<Options>,
    revision: watch::Sender<u64>,
    verifier: RwLock<Option<Arc<dyn TokenVerifier>>>,
    external_url: RwLock<Option<String>>,
    /// Data planes of providers, under hosts of their own.
    pub(crate) data_planes: Vec<&'static DataPlane>,
    /// Routes of further services, under hosts of their own.
    pub(crate) host_routes: RwLock<Vec<HostRoutes>>,
    /// Whether a task watches the actors.
    watched: AtomicBool,
    /// The machine behind each source address of the metadata service.
    pub(crate) metadata: RwLock<MetadataAddresses>,
    /// The time since when tokens are revoked, in seconds, by client or object id; the empty name stands for all.
    pub(crate) revoked: RwLock<BTreeMap<String, i64>>,
    /// Resources that other clients than our programs wrote against the contract.
    pub(crate) deviating: Mutex<DeviatingResources>,
    /// The file of exchanges, if they are recorded.
    pub(crate) recording: RwLock<Option<Arc<Recording>>>,
}

impl std::fmt::Debug for Azure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Azure").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Azure {
    /// An Azure without any resource.
    pub fn new(options: Options) -> Self {
        let options = Arc::new(options);
        let mut state = AzureState::new(options.clone(), &ResourceManager, azure_providers::all());
        own(&mut state);
        let inner = Inner {
            data_planes: state.data_planes().collect(),
            host_routes: RwLock::default(),
            state: Mutex::new(state),
            external_url: RwLock::new(options.external_url.clone()),
            metadata: RwLock::new(options.metadata_addresses.clone()),
            options,
            revision: watch::Sender::new(0),
            verifier: RwLock::new(None),
            watched: AtomicBool::new(false),
            revoked: RwLock::default(),
            recording: RwLock::default(),
            deviating: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Checks options that types cannot check.
    ///
    /// # Errors
    ///
    /// The name in [`Options::limits`] that no limit has, or in [`Budgets::policies`] that no policy has.
    pub fn check(options: &Options) -> Result<(), String> {
        let providers = azure_providers::all();
        check_limits(&providers, &options.limits)?;
        options.budgets.as_ref().map_or(Ok(()), |budgets| check_budgets(&providers, budgets))
    }

    /// How it was set up.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Adds a subscription, which the owners of the others own, too. An existing one stays as it is.
    pub fn add_subscription(&self, subscription: &str) {
        let mut state = self.inner.state.lock();
        state.add_subscription(subscription);
        own(&mut state);
    }

    /// Writes every exchange with Resource Manager to a file from now on, as JSON lines: `method`, `url`, `if_match`
    /// and `body` if present, `status`, `headers`, and `response` if present. Tokens are left out, and secrets are
    /// masked.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn record(&self, path: &std::path::Path) -> std::io::Result<()> {
        *self.inner.recording.write() = Some(Arc::new(Recording::begin(path)?));
        Ok(())
    }

    /// Sets the verifier of bearer tokens. Also makes `Authorization` headers necessary.
    pub fn set_verifier(&self, verifier: Arc<dyn TokenVerifier>) {
        let directory = verifier.clone();
        self.inner.state.lock().principals = Some(Arc::new(move |object| directory.knows(object)));
        *self.inner.verifier.write() = Some(verifier);
    }

    pub(crate) fn verifier(&self) -> Option<Arc<dyn TokenVerifier>> {
        self.inner.verifier.read().clone()
    }

    /// Attaches a value of the embedding program for providers, such as the Kubernetes behind managed clusters
    /// ([`KubernetesOfClusters`](crate::managed_clusters::KubernetesOfClusters)). It replaces one of the same type.
    pub fn attach<T: std::any::Any + Send>(&self, value: T) {
        self.inner.state.lock().attachments.set(value);
    }

    /// Sets the base URL of links in answers, once the port is known. See [`Options::external_url`].
    pub fn set_external_url(&self, url: Option<String>) {
        *self.inner.external_url.write() = url;
    }

    pub(crate) fn external_url(&self) -> Option<String> {
        self.inner.external_url.read().clone()
    }

    /// Replaces the latencies of operations that start from now on.
    pub fn set_latency(&self, latency: LatencyProfile) {
        self.inner.state.lock().latency = latency;
    }

    /// The simulated wall-clock time.
    pub fn now(&self) -> Timestamp {
        self.inner.state.lock().now()
    }

    /// The simulated wall clock, for components that issue or check tokens beside this Azure.
    pub fn clock(&self) -> Clock {
        let azure = self.clone();
        Arc::new(move || azure.now())
    }

    /// Creates or replaces a resource (or child resource) as part of a setup: the same rules as a PUT over HTTP, but
    /// done at once, without tokens, budgets, faults and journal. A missing resource group is created in the Azure's
    /// region; a missing `location` is the group's.
    ///
    /// # Errors
    ///
    /// What Azure would refuse.
    pub fn put(&self, id: &ResourceId, document: Value) -> Result<Value> {
        self.change(|state| put_at_once(state, id, document))
    }

    /// Deletes a resource or group at once, with Azure's delete guards.
    ///
    /// # Errors
    ///
    /// What Azure would refuse.
    pub fn delete(&self, id: &ResourceId) -> Result<()> {
        self.change(|state| {
            if let (None, Some(group)) = (id.namespace(), id.group_name()) {
                return delete_group(state, id.subscription_id(), group, &at_once()).map(drop);
            }
            let resolved = state.resolve_id(id)?;
            state.delete(&resolved, &Conditions::default(), &at_once()).map(drop)
        })
    }

    /// Changes a resource as a foreign operator would, without a request in the journal: reads it, lets `edit` change
    /// it and writes it, at once and with nothing in between. `edit` must not call this Azure.
    ///
    /// # Errors
    ///
    /// What Azure would refuse; also when the resource is absent.
    pub fn edit(&self, id: &ResourceId, edit: impl FnOnce(&mut Value)) -> Result<Value> {
        self.change(|state| {
            let absent = || RESOURCE_NOT_FOUND.says(format_args!("The Resource '{id}' was not found."));
            let mut document = state.document(id).ok_or_else(absent)?;
            edit(&mut document);
            put_at_once(state, id, document)
        })
    }

    /// The requests so far.
    pub fn journal(&self) -> Journal {
        self.inner.state.lock().journal.after(0)
    }

    /// The requests after the one with this number.
    pub fn journal_after(&self, sequence: u64) -> Journal {
        self.inner.state.lock().journal.after(sequence)
    }

    /// The last requests, at most that many.
    pub fn journal_tail(&self, count: usize) -> Journal {
        self.inner.state.lock().journal.last(count)
    }

    /// Clears the journal, counts included; numbering continues.
    pub fn clear_journal(&self) {
        self.change(|state| {
            state.journal.clear();
            state.revision += 1;
        });
    }

    /// Puts a fault in force.
    pub fn inject(&self, fault: Fault) {
        self.inner.state.lock().faults.declare(fault);
    }

    /// The faults in force.
    pub fn faults(&self) -> Vec<Fault> {
        self.inner.state.lock().faults.list()
    }

    /// Adds an actor; it replaces one of the same name.
    pub fn set_actor(&self, actor: Actor) {
        self.change(|state| {
            state.actors.declare(actor);
            state.revision += 1;
            // Starts its clock.
            state.settle();
        });
    }

    /// Replaces all actors.
    pub fn set_actors(&self, actors: Vec<Actor>) {
        self.change(|state| {
            state.actors = Actors::of(&actors);
            state.settle();
        });
    }

    /// The actors at work.
    pub fn actors(&self) -> Vec<Actor> {
        self.inner.state.lock().actors.list()
    }

    /// Removes an actor. Returns whether there was one of that name.
    pub fn remove_actor(&self, name: &str) -> bool {
        self.change(|state| state.actors.remove(name))
    }

    /// Takes all faults out of force.
    pub fn clear_faults(&self) {
        self.inner.state.lock().faults.clear();
    }

    /// The long-running operations, in the order in which they were started; those that are over are
    /// remembered for a while.
    pub fn operations(&self) -> Vec<OperationState> {
        let mut state = self.inner.state.lock();
        state.settle();
        let now = Instant::now();
        state.operations.all().into_iter().map(|operation| operation.state(now)).collect()
    }

    /// Ends a running operation now; `false` if no operation of that key runs. For operations that a fault has stalled,
    /// and for cancelling others.
    pub fn end_operation(&self, key: &str, end: &OperationEnd) -> bool {
        self.change(|state| state.end(key, end.status()))
    }

    /// How far reads lag behind writes.
    pub fn consistency(&self) -> Consistency {
        self.inner.state.lock().consistency
    }

    /// Chooses how far reads lag behind writes from now on.
    pub fn set_consistency(&self, consistency: Consistency) {
        self.inner.state.lock().set_consistency(consistency);
    }

    /// Whether requests need rights.
    pub fn enforces_authorization(&self) -> bool {
        self.inner.state.lock().enforce_authorization
    }

    /// Sets whether requests need rights from now on: roles assigned to the caller at the scope of the request or above
    /// it. Requests without a token are refused then.
    pub fn enforce_authorization(&self, enforce: bool) {
        self.inner.state.lock().enforce_authorization = enforce;
    }

    /// Assigns a role, by its GUID, to a principal, by object id, at a scope.
    ///
    /// # Errors
    ///
    /// What Azure would refuse; also where there is no such role.
    pub fn assign_role(&self, scope: &ResourceId, role: &str, object_id: &str) -> Result<()> {
        self.change(|state| authorization::assign(state, scope, role, object_id))
    }

    /// The latencies in force.
    pub fn latency(&self) -> LatencyProfile {
        self.inner.state.lock().latency.clone()
    }

    /// Every limit by name, overrides included.
    pub fn limits(&self) -> BTreeMap<String, u64> {
        self.inner.state.lock().limits.all()
    }

    /// Replaces the overrides of limits. What is there already stays, even beyond a limit.
    ///
    /// # Errors
    ///
    /// The name that no limit has.
    pub fn set_limits(&self, overrides: BTreeMap<String, u64>) -> Result<(), String> {
        self.inner.state.lock().limits.set(overrides)
    }

    /// Every request budget that was drawn on, as it is now, in a stable order.
    pub fn budgets(&self) -> Vec<BudgetState> {
        self.inner.state.lock().buckets.states(Instant::now())
    }

    /// Replaces the figures of all budgets, and fills them; `None` turns throttling off.
    pub fn set_budgets(&self, budgets: Option<Budgets>) {
        let mut state = self.inner.state.lock();
        state.budgets = budgets;
        state.buckets.clear();
    }

    /// The whole state: resources, operations, faults, budgets, latencies, journal, clock and seed. The options and the
    /// directory are not in it.
    ///
    /// # Errors
    ///
    /// None that we know of: everything that a state holds can be written as JSON.
    pub fn save(&self) -> Result<Value, serde_json::Error> {
        self.inner.state.lock().save()
    }

    /// Replaces the state with a saved one: the same reads get the same answers with the same etags, running operations
    /// continue, and no id is given twice.
    ///
    /// # Errors
    ///
    /// When it is no saved state, or does not belong here; nothing is changed then.
    pub fn restore(&self, saved: Value) -> Result<(), BadSnapshot> {
        let ends = self.change(|state| state.restore(saved))?;
        // Without a runtime there are no waiters: operations end at the next read.
        if tokio::runtime::Handle::try_current().is_ok() {
            ends.into_iter().for_each(|due| self.wake_at(due));
        }
        Ok(())
    }

    /// A revision number that rises with every change of a document and with every request. Pages and stand-in kubelets
    /// await a change, then read what they need.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.revision.subscribe()
    }

    /// The storage accounts with their shares and keys, as machines that mount shares need them.
    pub fn file_accounts(&self) -> Vec<FileAccount> {
        azure_providers::storage::file_accounts(&self.inner.state.lock())
    }

    /// How many long-running operations have not ended.
    pub fn running_operations(&self) -> usize {
        let mut state = self.inner.state.lock();
        state.settle();
        state.operations.running_count()
    }

    /// Sets the capacity of a scale set, as an autoscaler does; machines come and go at once.
    ///
    /// # Errors
    ///
    /// What Azure would refuse; also when the scale set is absent.
    pub fn scale(&self, scale_set: &ResourceId, capacity: u64) -> Result<()> {
        self.change(|state| {
            let resolved = state.resolve_id(scale_set)?;
            let patch = json!({ "sku": { "capacity": capacity } });
            state.patch(&resolved, patch, &Conditions::default(), &at_once()).map(drop)
        })
    }

    /// Removes one instance of a scale set at once; the capacity goes down with it.
    ///
    /// # Errors
    ///
    /// What Azure would refuse; also when the instance is absent.
    pub fn remove_instance(&self, scale_set: &ResourceId, instance: &str) -> Result<()> {
        let id = scale_set.child("virtualMachines", instance);
        RESOURCE_NOT_FOUND
            .says_when(self.document(&id).is_none(), format_args!("The Resource '{id}' was not found."))?;
        self.delete(&id)
    }

    /// Runs a change and notifies subscribers.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut AzureState) -> T) -> T {
        let (value, revision) = {
            let mut state = self.inner.state.lock();
            state.settle();
            let value = change(&mut state);
            (value, state.revision)
        };
        self.inner.tell(revision);
        value
    }

    /// Settles the state whenever actors act, as long as there are any, so that subscribers are notified. Needed for
    /// subscribers alone: a request finds every action done at its time. Must be called within a tokio runtime; once is
    /// enough.
    pub fn watch_actors(&self) {
        let inner: Weak<Inner> = Arc::downgrade(&self.inner);
        if self.inner.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut changed = self.subscribe();
        tokio::spawn(async move {
            loop {
                let due = {
                    let Some(inner) = inner.upgrade() else { return };
                    let mut state = inner.state.lock();
                    state.settle();
                    inner.tell(state.revision);
                    state.actors.due(Instant::now())
                };
                let Some(due) = due else { break };
                changed.mark_unchanged();
                // An actor that is added meanwhile may be due sooner.
                tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    still = changed.changed() => if still.is_err() { return },
                }
            }
            if let Some(inner) = inner.upgrade() {
                inner.watched.store(false, Ordering::Relaxed);
            }
        });
    }

    /// Settles the state when an operation ends, so that subscribers are notified.
    pub(crate) fn wake_at(&self, due: Instant) {
        let inner: Weak<Inner> = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            tokio::time::sleep_until(due).await;
            if let Some(inner) = inner.upgrade() {
                let revision = {
                    let mut state = inner.state.lock();
                    state.settle();
                    state.revision
                };
                inner.tell(revision);
            }
        });
    }
}

impl Inner {
    fn tell(&self, revision: u64) {
        self.revision.send_if_modified(|seen| {
            let newer = revision > *seen;
            *seen = revision.max(*seen);
            newer
        });
    }
}

impl Documents for Azure {
    fn document(&self, id: &ResourceId) -> Option<Value> {
        let mut state = self.inner.state.lock();
        state.settle();
        state.document(id)
    }

    fn of_type(&self, resource_type: &str) -> Vec<Value> {
        self.documents_of_type(resource_type)
    }

    fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
        self.change(|state| read(state));
    }
}

impl Azure {
    /// The document of one resource, child resource or view, as a GET would show it now.
    pub fn document(&self, id: &ResourceId) -> Option<Value> {
        Documents::document(self, id)
    }

    /// Every document of a full resource type, ordered by id. See [`Documents::of_type`].
    pub fn documents_of_type(&self, resource_type: &str) -> Vec<Value> {
        let mut state = self.inner.state.lock();
        state.settle();
        state.documents_of_type(resource_type)
    }

    /// Every resource group and resource, scale set instances included, ordered by id.
    pub fn documents(&self) -> Vec<Value> {
        let mut state = self.inner.state.lock();
        state.settle();
        let records = state.store.all().filter(|record| record.id.group_name().is_some());
        records.map(|record| state.present(record, Default::default())).collect()
    }
}

/// Assigns the role Owner on all subscriptions to the owners.
fn own(state: &mut AzureState) {
    let options = state.options.clone();
    for subscription in std::iter::once(&options.subscription).chain(&options.more_subscriptions) {
        let scope = ResourceId::subscription(subscription);
        for owner in &options.owners {
            // Only an empty name is refused.
            let _ = authorization::assign(state, &scope, authorization::OWNER, owner);
        }
    }
}

/// Creates or replaces a resource as part of a setup.
fn put_at_once(state: &mut AzureState, id: &ResourceId, mut document: Value) -> Result<Value> {
    if let Some(group) = id.group_name() {
        let group_id = ResourceId::group(id.subscription_id(), group);
        if id.namespace().is_none() {
            return put_group(state, id.subscription_id(), group, document)
                .map(|a| a.body.unwrap_or_default());
        }
        if state.store.get(&group_id).is_none() {
            let location = state.options.region.clone();
            put_group(state, id.subscription_id(), group, json!({ "location": location }))?;
        }
    }
    let resolved = state.resolve_id(id)?;
    if resolved.resource_type.protocol().tracked
        && resolved.below.is_empty()
        && document.get("location").is_none()
    {
        let location = state.location(&resolved.id);
        if let Some(document) = document.as_object_mut() {
            document.insert("location".into(), location.into());
        }
    }
    state.put(&resolved, document, &Conditions::default(), &at_once())?;
    Ok(state.document(id).unwrap_or_default())
}

fn at_once() -> Execution {
    Execution { at_once: true, ..Execution::default() }
}
