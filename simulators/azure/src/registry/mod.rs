//! Container registries: the sign-in of Azure's, and enough of the registry itself to prove a pull secret by using it.
//!
//! A client that is not known is sent to the registry's own token service, which exchanges Entra's tokens for refresh
//! tokens (`/oauth2/exchange`) and those, or passwords, for access tokens (`/oauth2/token`). What an access token is
//! good for follows from the roles that the registry's owner has assigned.
//!
//! * <https://azure.github.io/acr/AAD-OAuth.html>
//! * <https://distribution.github.io/distribution/spec/auth/token/>

mod images;
mod token_service;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use http::header::HOST;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;

use crate::entra::{Entra, KeyError, SigningKey};
use images::Images;

/// One registry.
#[derive(Debug, Clone)]
pub struct Registry {
    login_server: String,
    /// Object ids of those who have the role AcrPull, in lower case.
    pullers: BTreeSet<String>,
    is_anonymous: bool,
    images: Images,
}

impl Registry {
    /// A registry without images, which nobody may pull from.
    pub fn new(login_server: &str) -> Self {
        Self {
            login_server: login_server.to_ascii_lowercase(),
            pullers: BTreeSet::new(),
            is_anonymous: false,
            images: Images::default(),
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

    /// Lets everybody pull without signing in.
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
    shared: Arc<Shared>,
}

struct Shared {
    entra: Entra,
    /// Signs refresh and access tokens.
    key: SigningKey,
    registries: Mutex<BTreeMap<String, Registry>>,
    journal: Mutex<Vec<RegistryRequest>>,
    /// The statuses of the next answers, instead of what they would be.
    faults: Mutex<VecDeque<u16>>,
}

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

impl Registries {
    /// None yet. Entra's tokens are accepted, and passwords of its applications.
    ///
    /// # Errors
    ///
    /// When the system's random source gives no key.
    pub fn new(entra: Entra) -> Result<Self, KeyError> {
        let shared = Shared {
            entra,
            key: SigningKey::generate()?,
            registries: Mutex::default(),
            journal: Mutex::default(),
            faults: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Adds a registry, or replaces the one with the same login server.
    pub fn add(&self, registry: Registry) {
        self.shared.registries.lock().insert(registry.login_server.clone(), registry);
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<RegistryRequest> {
        self.shared.journal.lock().clone()
    }

    /// Answers the next requests with these statuses, one each, and does nothing else about them.
    pub fn answer_next_with(&self, statuses: &[u16]) {
        self.shared.faults.lock().extend(statuses);
    }

    /// The HTTP surface of all registries: the `Host` of a request says which one is meant.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/v2/", get(images::base))
            .route("/v2/{*below}", get(images::pull))
            .route("/oauth2/exchange", post(token_service::exchange))
            .route("/oauth2/token", post(token_service::token_by_form).get(token_service::token_by_query))
            .layer(axum::middleware::from_fn_with_state(self.clone(), note))
            .with_state(self.clone())
    }

    /// The registry that a request is for.
    fn of(&self, headers: &HeaderMap) -> Option<Registry> {
        self.shared.registries.lock().get(&host(headers)).cloned()
    }
}

impl fmt::Debug for Registries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registries").finish_non_exhaustive()
    }
}

/// The host that a request names, in lower case and without the port of HTTPS.
fn host(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.strip_suffix(":443").unwrap_or(host).to_ascii_lowercase()
}

/// Writes each request into the journal. HTTP/2 names the host in the URI.
async fn note(
    axum::extract::State(registries): axum::extract::State<Registries>,
    mut request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let authority =
        request.uri().authority().and_then(|host| http::HeaderValue::from_str(host.as_str()).ok());
    if let Some(authority) = authority {
        request.headers_mut().entry(HOST).or_insert(authority);
    }
    let agent = request.headers().get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let mut noted = RegistryRequest {
        method: request.method().to_string(),
        host: host(request.headers()),
        path: request.uri().path().to_owned(),
        user_agent: agent.unwrap_or_default().to_owned(),
        status: 0,
    };
    let fault = registries.shared.faults.lock().pop_front();
    let response = match fault.and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => images::errors(status, "UNAVAILABLE", "the registry is told to fail"),
        None => next.run(request).await,
    };
    noted.status = response.status().as_u16();
    registries.shared.journal.lock().push(noted);
    response
}
