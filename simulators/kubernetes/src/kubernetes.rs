//! The handle: one Kubernetes API in this process.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use certificate_authority::{CertificateAuthority, TlsError};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::fault::{Fault, Faults};
use crate::hook::AllHooks;
use crate::identity::SigningKey;
use crate::journal::JournalBook;
use crate::object::{Object, metadata, string_at};
use crate::own_service;
use crate::patch::PatchType;
use crate::port_forward::Ports;
use crate::registry::Kind;
use crate::selector::Selection;
use crate::status::ApiError;
use crate::verbs::{
    Collection, DeleteOptions, FieldValidation, ListOptions, Part, Stage, State, Write,
    namespace as namespaces,
};
use crate::webhook::Hosts;

/// A bearer token. Only [`Token::reveal`] shows its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// An unguessable token, from the system's random source.
    #[must_use]
    pub fn generate() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// The text, for a kubeconfig or an `Authorization` header.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Options of a simulated Kubernetes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of everything random: UIDs, name suffixes, allocations, watch durations.
    pub seed: u64,
    /// The wall clock at the start; it then follows tokio's time.
    pub start: Timestamp,
    /// How many changes of each kind are kept for watches and old list pages.
    pub event_window: usize,
    /// Whether Services can have IPv6 addresses beside IPv4 ones.
    pub dual_stack: bool,
    /// When dependents and the contents of deleted namespaces are collected.
    pub collection: Collection,
    /// The certificate (PEM) by which pods verify the server. With it each namespace has a ServiceAccount `default` and
    /// a ConfigMap `kube-root-ca.crt`, which kube-controller-manager creates in a cluster.
    pub root_certificate: Option<String>,
    /// The capacity of the journal in requests.
    pub journal: usize,
    /// How long an Event stays after its last write; an hour in clusters. `None` for ever.
    pub event_ttl: Option<Duration>,
    /// The administrator's tokens. Without tokens the server is open to every client.
    pub tokens: Vec<Token>,
    /// Names and addresses in its certificate, beside those that [`Kubernetes::serve_https`] adds.
    pub server_names: Vec<String>,
    /// Folder that keeps the certificate authority, and the key that signs tokens of service accounts, over restarts.
    /// Without it each server generates new ones.
    pub authority_dir: Option<PathBuf>,
}

impl Default for Options {
    /// Seed 1, start 2026-01-01T00:00:00Z, 10,000 changes a kind, both families, dependents collected at once, events
    /// without expiry, namespaces without contents, 10,000 requests in the journal, no tokens, no further names, a new
    /// authority.
    fn default() -> Self {
        // Seconds from 1970 to 2026-01-01T00:00:00Z.
        const START: i64 = 1_767_225_600;
        Self {
            seed: 1,
            start: Timestamp::from_second(START).unwrap_or_default(),
            event_window: 10_000,
            dual_stack: true,
            collection: Collection::Prompt,
            root_certificate: None,
            journal: 10_000,
            event_ttl: None,
            tokens: Vec::new(),
            server_names: Vec::new(),
            authority_dir: None,
        }
    }
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    pub(crate) faults: Mutex<Faults>,
    pub(crate) journal: Mutex<JournalBook>,
    counts: Mutex<BTreeMap<(String, String), u64>>,
    authority: Mutex<Option<Arc<CertificateAuthority>>>,
    signing_key: Mutex<Option<Arc<SigningKey>>>,
    /// Watches end when this changes.
    pub(crate) watch_generation: watch::Sender<u64>,
    /// The hooks of admission.
    pub(crate) hooks: AllHooks,
    /// Notified when the next chore has changed.
    pub(crate) chores_changed: Notify,
    /// Hosts of webhooks that are overridden.
    pub(crate) webhook_hosts: Hosts,
    /// The servers of pods' ports.
    pub(crate) ports: Mutex<Ports>,
    created: Instant,
}

/// A Kubernetes API in this process. Clones are handles to the same one.
#[derive(Clone)]
pub struct Kubernetes {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubernetes").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// The field manager of the direct accessors, in `metadata.managedFields`.
const DIRECT: &str = "kubernetes-simulator";

impl Kubernetes {
    /// A server with the initial objects of every cluster, and nothing else: namespaces, and the Service
    /// `default/kubernetes`, which has endpoints once the server listens ([`Kubernetes::serve_https`]).
    #[must_use]
    pub fn new(options: Options) -> Self {
        let state = State::new(&options);
        let this = Self {
            shared: Arc::new(Shared {
                options,
                state: Mutex::new(state),
                faults: Mutex::default(),
                journal: Mutex::default(),
                counts: Mutex::default(),
                authority: Mutex::new(None),
                signing_key: Mutex::new(None),
                watch_generation: watch::Sender::new(0),
                hooks: AllHooks::default(),
                chores_changed: Notify::new(),
                webhook_hosts: Hosts::default(),
                ports: Mutex::default(),
                created: Instant::now(),
            }),
        };
        for name in namespaces::INITIAL {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            if let Err(error) = this.create(namespace) {
                tracing::error!(%error, name, "a namespace of every cluster could not be created");
            }
        }
        if let Err(error) = this.create(own_service::service()) {
            tracing::error!(%error, "the server's own Service could not be created");
        }
        this
    }

    /// The server's wall clock: the configured start, advanced by tokio's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        since(self.shared.options.start, self.shared.created)
    }

    /// The same clock as a function, for components beside the server that must agree with it on time.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let (start, created) = (self.shared.options.start, self.shared.created);
        Arc::new(move || since(start, created))
    }

    // The following functions do not wait, so they cannot call conversion webhooks: objects of kinds with a webhook are
    // returned in their stored form, and written in the storage version.

    /// Creates an object, as a client would, of its `apiVersion` and `kind`. Namespaced objects without a namespace go
    /// to `default`.
    ///
    /// # Errors
    /// A client's errors: 404 for unknown kinds and namespaces, 409, 422.
    pub fn create(&self, object: Value) -> Result<Arc<Object>, ApiError> {
        let mut state = self.shared.state.lock();
        let (kind, namespace, _) = addressed(&state, &object)?;
        let created = state.create(&kind, &namespace, object, &self.direct());
        drop(state);
        self.keep_house();
        created
    }

    /// The object, or `None`. `kind` is a kind, plural or short name: `Service`, `services`, `svc`. The namespace of
    /// cluster-scoped kinds is ignored.
    #[must_use]
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let state = self.shared.state.lock();
        let kind = state.registry.by_name_at_once(kind)?;
        state.get(&kind, namespace, name).ok()
    }

    /// All objects of a kind in all namespaces, ordered by namespace and name. Empty for unknown kinds.
    #[must_use]
    pub fn list(&self, kind: &str) -> Vec<Arc<Object>> {
        self.list_in(kind, "")
    }

    /// All objects of a kind in one namespace, ordered by name. Empty for unknown kinds.
    #[must_use]
    pub fn list_in(&self, kind: &str, namespace: &str) -> Vec<Arc<Object>> {
        let mut state = self.shared.state.lock();
        let Some(kind) = state.registry.by_name_at_once(kind) else { return Vec::new() };
        let selection = Selection { namespace: namespace.to_owned(), ..Selection::default() };
        state
            .list(&kind, &ListOptions { selection, ..ListOptions::default() })
            .map(|page| page.items)
            .unwrap_or_default()
    }

    /// Waits until `found` returns a value for all objects of a kind; it is called again after every change among them.
    /// Waits for ever if it never does: bound it with `tokio::time::timeout`.
    ///
    /// # Errors
    /// 404 for an unknown kind.
    pub async fn until<T>(
        &self,
        kind: &str,
        mut found: impl FnMut(&[Arc<Object>]) -> Option<T>,
    ) -> Result<T, ApiError> {
        let mut changed = {
            let mut state = self.shared.state.lock();
            let kind = state.registry.by_name_at_once(kind).ok_or_else(ApiError::no_such_resource)?;
            state.store.shelf(&kind.shelf).subscribe()
        };
        let mut objects: Vec<Arc<Object>> = Vec::new();
        loop {
            // Objects that have not changed since the last call need not be parsed again.
            let mut known: HashMap<u64, Arc<Object>> =
                objects.drain(..).map(|object| (object.version(), object)).collect();
            let listed = self.list(kind).into_iter();
            // A restored state may have the same version for another object.
            let again = |object: Arc<Object>| {
                let before = known.remove(&object.version()).filter(|before| before.is_kept_with(&object));
                before.unwrap_or(object)
            };
            objects.extend(listed.map(again));
            if let Some(answer) = found(&objects) {
                return Ok(answer);
            }
            if changed.changed().await.is_err() {
                // The store lives as long as this handle, so its shelves never stop notifying.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Replaces an object; for kinds with a status subresource everything but the status. If `metadata.resourceVersion`
    /// is set, it must be the newest one.
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn update(&self, object: Value) -> Result<Arc<Object>, ApiError> {
        self.write(object, Part::Main)
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn update_status(&self, object: Value) -> Result<Arc<Object>, ApiError> {
        self.write(object, Part::Status)
    }

    fn write(&self, object: Value, part: Part) -> Result<Arc<Object>, ApiError> {
        let mut state = self.shared.state.lock();
        let (kind, namespace, name) = addressed(&state, &object)?;
        let updated = state.update(&kind, &namespace, &name, part, object, &self.direct());
        drop(state);
        self.keep_house();
        updated.map(|(object, _)| object)
    }

    /// Merges members into an object (JSON merge patch), all but the status.
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn merge(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Object>, ApiError> {
        self.patch(kind, namespace, name, patch, Part::Main)
    }

    /// Merges `{"status": …}` into the status of an object (JSON merge patch).
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn merge_status(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Object>, ApiError> {
        self.patch(kind, namespace, name, patch, Part::Status)
    }

    /// Merges members into the object of a request, as another client would.
    pub(crate) async fn merge_at(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), ApiError> {
        let (merge, write) = ((patch, &PatchType::Merge), self.direct());
        self.settled(kind, |state| state.patch(kind, namespace, name, Part::Main, merge, &write).map(drop))
            .await
    }

    fn patch(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
        part: Part,
    ) -> Result<Arc<Object>, ApiError> {
        let mut state = self.shared.state.lock();
        let kind = state.registry.by_name_at_once(kind).ok_or_else(ApiError::no_such_resource)?;
        let merge = (patch, &PatchType::Merge);
        let patched = state.patch(&kind, namespace, name, part, merge, &self.direct());
        drop(state);
        self.keep_house();
        patched.map(|(object, _)| object)
    }

    /// Deletes an object. If it has finalizers it is only marked. The contents of a namespace are deleted at once,
    /// unless [`Options::collection`] says otherwise.
    ///
    /// # Errors
    /// 404 if there is no such object.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) -> Result<(), ApiError> {
        let mut state = self.shared.state.lock();
        let kind = state.registry.by_name_at_once(kind).ok_or_else(ApiError::no_such_resource)?;
        state.delete(&kind, namespace, name, &DeleteOptions::default(), &self.direct())?;
        if *kind.shelf == *namespaces::SHELF {
            state.plan_emptying(name, true, &self.direct());
        }
        drop(state);
        self.keep_house();
        Ok(())
    }

    /// Version of the newest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.shared.state.lock().store.version()
    }

    /// Forgets all past changes: every version that clients hold is too old from now on and causes a 410. Open watches
    /// go on; see [`Kubernetes::drop_watches`].
    pub fn compact(&self) {
        self.shared.state.lock().store.compact();
    }

    /// Ends every open watch, as a restarting server or a load balancer would.
    pub fn drop_watches(&self) {
        self.shared.watch_generation.send_modify(|generation| *generation += 1);
    }

    /// Declares a fault. If several match a request, the first one counts.
    pub fn inject(&self, fault: Fault) {
        self.shared.faults.lock().declare(fault);
    }

    /// The declared faults, in order.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.shared.faults.lock().list()
    }

    /// Clears all faults. Watches that lag because of one catch up.
    pub fn clear_faults(&self) {
        self.shared.faults.lock().clear();
        self.shared.state.lock().store.wake_all();
    }

    /// The number of requests with a verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`) for a resource (`services`, `services/status`) over HTTP so far.
    #[must_use]
    pub fn requests(&self, verb: &str, resource: &str) -> u64 {
        self.shared.counts.lock().get(&(verb.to_owned(), resource.to_owned())).copied().unwrap_or(0)
    }

    pub(crate) fn count(&self, verb: &str, resource: &str) {
        *self.shared.counts.lock().entry((verb.to_owned(), resource.to_owned())).or_default() += 1;
    }

    /// The certificate authority of [`Kubernetes::serve_https`], created at first use.
    ///
    /// # Errors
    /// Keys or certificates cannot be created, read or written.
    pub fn authority(&self) -> Result<Arc<CertificateAuthority>, TlsError> {
        let mut slot = self.shared.authority.lock();
        if let Some(authority) = &*slot {
            return Ok(Arc::clone(authority));
        }
        let made = match &self.shared.options.authority_dir {
            Some(dir) => CertificateAuthority::load_or_generate(dir)?,
            None => CertificateAuthority::generate()?,
        };
        let made = Arc::new(made);
        *slot = Some(Arc::clone(&made));
        Ok(made)
    }

    /// The key that signs tokens of service accounts, created at first use.
    pub(crate) fn signing_key(&self) -> Result<Arc<SigningKey>, ApiError> {
        let mut slot = self.shared.signing_key.lock();
        if let Some(key) = &*slot {
            return Ok(Arc::clone(key));
        }
        let folder = self.shared.options.authority_dir.as_deref();
        let made = Arc::new(SigningKey::load_or_generate(folder)?);
        *slot = Some(Arc::clone(&made));
        Ok(made)
    }

    /// A kubeconfig (YAML) for the server at `url`, with the authority's certificate and the first token inside, for
    /// kubectl and other clients. The result is a secret if there are tokens.
    ///
    /// # Errors
    /// The authority cannot be created.
    pub fn kubeconfig(&self, url: &str) -> Result<String, TlsError> {
        let authority = self.authority()?;
        Ok(crate::kubeconfig::render(url, authority.certificate_pem(), self.shared.options.tokens.first()))
    }

    /// The options of writes by the server itself.
    pub(crate) fn housekeeper(&self) -> Write<'static> {
        self.direct()
    }

    fn direct(&self) -> Write<'static> {
        Write {
            now: self.now(),
            dry_run: false,
            manager: DIRECT,
            stage: Stage::Whole,
            fields: FieldValidation::default(),
        }
    }
}

fn since(start: Timestamp, created: Instant) -> Timestamp {
    let elapsed = SignedDuration::try_from(created.elapsed()).unwrap_or_default();
    start.checked_add(elapsed).unwrap_or(start)
}

/// The kind, namespace and name in an object.
fn addressed(state: &State, object: &Value) -> Result<(Arc<Kind>, String, String), ApiError> {
    let api_version = string_at(object, &["apiVersion"]).unwrap_or_default();
    let kind = string_at(object, &["kind"]).unwrap_or_default();
    let kind = state.registry.by_type(api_version, kind).ok_or_else(|| {
        let message = format!("no matches for kind {kind:?} in version {api_version:?}");
        ApiError::new(404, "NotFound", message)
    })?;
    let namespace = match metadata(object, "namespace") {
        _ if !kind.namespaced => "",
        "" => "default",
        given => given,
    };
    Ok((kind, namespace.to_owned(), metadata(object, "name").to_owned()))
}
