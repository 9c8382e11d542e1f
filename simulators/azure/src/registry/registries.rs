//! Registries: the identities that pull and push, and the requests they got.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

use http::HeaderMap;
use http::header::HOST;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use super::image_store::{Images, Uploads};
use crate::azure::{Azure, Inner};
use azure_entra::{Entra, KeyError, SigningKey};
use azure_providers::container_registry::{RegistryAccess, access};

/// The action that the roles AcrPull and AcrPush allow.
pub(super) const PULL: &str = "pull";
/// The action that the role AcrPush allows.
pub(super) const PUSH: &str = "push";

/// The subject of tokens for the administrator's password; no object id looks like this.
pub(super) const ADMINISTRATOR: &str = "the administrator of the registry";

/// One registry.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(super) login_server: String,
    /// Object ids of those who have the role AcrPull, in lower case.
    pub(super) pullers: BTreeSet<String>,
    pub(super) is_anonymous: bool,
    pub(super) images: Images,
    /// The access rules of a registry that was created over Resource Manager.
    pub(super) access: Option<Arc<RegistryAccess>>,
}

impl Registry {
    /// A registry without images and without pullers.
    pub fn new(login_server: &str) -> Self {
        Self {
            login_server: login_server.to_ascii_lowercase(),
            pullers: BTreeSet::new(),
            is_anonymous: false,
            images: Images::default(),
            access: None,
        }
    }

    /// Its host.
    pub fn login_server(&self) -> &str {
        &self.login_server
    }

    /// Assigns the role AcrPull to the principal with this object id.
    #[must_use]
    pub fn with_puller(mut self, object_id: &str) -> Self {
        self.pullers.insert(object_id.to_ascii_lowercase());
        self
    }

    /// Enables anonymous pull.
    #[must_use]
    pub fn with_anonymous_pull(mut self) -> Self {
        self.is_anonymous = true;
        self
    }

    /// Pushes an image: its manifest and the blobs that it refers to.
    #[must_use]
    pub fn with_image(mut self, repository: &str, tag: &str, manifest: &Value, blobs: &[&[u8]]) -> Self {
        self.images.push(repository, tag, manifest, blobs);
        self
    }
}

/// All registries of a simulated Azure. Cheap to clone; clones are the same registries.
#[derive(Clone)]
pub struct Registries {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) entra: Entra,
    /// Signs refresh and access tokens.
    pub(super) key: SigningKey,
    pub(super) registries: Mutex<BTreeMap<String, Registry>>,
    /// Blobs that are being pushed.
    pub(super) uploads: Mutex<Uploads>,
    /// The oldest are forgotten.
    pub(super) journal: Mutex<VecDeque<RegistryRequest>>,
    /// The statuses of the next answers, instead of the real ones.
    pub(super) faults: Mutex<VecDeque<u16>>,
    /// The Azure whose registries are served, too.
    azure: RwLock<Weak<Inner>>,
}

/// How many requests are remembered: more than any test reads.
const MAX_REQUESTS: usize = 10_000;

/// One request that a registry has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryRequest {
    /// The HTTP method.
    pub method: String,
    /// The login server, as the client named it.
    pub host: String,
    /// Path without query.
    pub path: String,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The status of the answer.
    pub status: u16,
}

impl Shared {
    pub(super) fn note(&self, request: RegistryRequest) {
        let mut journal = self.journal.lock();
        if journal.len() == MAX_REQUESTS {
            journal.pop_front();
        }
        journal.push_back(request);
    }
}

impl Registries {
    /// No registries yet. Entra's tokens are accepted, and passwords of its applications.
    ///
    /// # Errors
    ///
    /// When the system's random source gives no key.
    pub fn new(entra: Entra) -> Result<Self, KeyError> {
        let shared = Shared {
            entra,
            key: SigningKey::generate()?,
            registries: Mutex::default(),
            uploads: Mutex::default(),
            journal: Mutex::default(),
            faults: Mutex::default(),
            azure: RwLock::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Adds a registry, or replaces the one with the same login server.
    pub fn add(&self, registry: Registry) {
        self.shared.registries.lock().insert(registry.login_server.clone(), registry);
    }

    /// The last 10,000 requests.
    pub fn requests(&self) -> Vec<RegistryRequest> {
        self.shared.journal.lock().iter().cloned().collect()
    }

    /// Answers the next requests with these statuses, one each, and ignores them otherwise.
    pub fn answer_next_with(&self, statuses: &[u16]) {
        self.shared.faults.lock().extend(statuses);
    }

    /// Serves the registries of an Azure, too: a principal with the role AcrPull there pulls the images that were added here
    /// under the same login server, or pushed by a principal with the role AcrPush; the administrator's passwords do both.
    pub fn serve_those_of(&self, azure: &Azure) {
        *self.shared.azure.write() = Arc::downgrade(&azure.inner);
    }

    fn azure(&self) -> Option<Azure> {
        self.shared.azure.read().upgrade().map(|inner| Azure { inner })
    }

    /// The registry that a request is for.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<Registry> {
        let host = host(headers);
        let added = self.shared.registries.lock().get(&host).cloned();
        let access = self.azure().and_then(|azure| azure.change(|state| access(state, &host)));
        let Some(access) = access else { return added };
        let mut registry = added.unwrap_or_else(|| Registry::new(&host));
        registry.is_anonymous |= access.anonymous;
        registry.access = Some(Arc::new(access));
        Some(registry)
    }

    /// What a principal may do, by the object id or as the administrator.
    pub(super) fn rights(&self, registry: &Registry, owner: &str) -> Vec<&'static str> {
        let known = registry.is_anonymous || registry.pullers.contains(&owner.to_ascii_lowercase());
        let (pulls, pushes) = match (&registry.access, self.azure()) {
            (Some(_), Some(_)) if owner == ADMINISTRATOR => (true, true),
            (Some(access), Some(azure)) => {
                azure.change(|state| (access.may_pull(state, owner), access.may_push(state, owner)))
            }
            _ => (false, false),
        };
        let rights = [(known || pulls, PULL), (pushes, PUSH)];
        rights.into_iter().filter(|(has, _)| *has).map(|(_, action)| action).collect()
    }

    /// Changes what a registry holds.
    pub(super) fn change_images<T>(&self, login_server: &str, change: impl FnOnce(&mut Images) -> T) -> T {
        let mut registries = self.shared.registries.lock();
        let registry =
            registries.entry(login_server.to_owned()).or_insert_with(|| Registry::new(login_server));
        change(&mut registry.images)
    }
}

impl fmt::Debug for Registries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registries").finish_non_exhaustive()
    }
}

/// The host that a request names, in lower case and without the port of HTTPS.
pub(super) fn host(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.strip_suffix(":443").unwrap_or(host).to_ascii_lowercase()
}
