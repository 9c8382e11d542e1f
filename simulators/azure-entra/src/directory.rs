//! The directory: tenants, applications, keys, and the tokens that it issues.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use uuid::Uuid;

use super::application::Application;
use super::audience::{MANAGEMENT_AUDIENCES, WELL_KNOWN_RESOURCES};
use super::claims::{AccessClaims, SeenTokens};
use super::jwt::{KeyError, PublicKey, SigningKey};
use super::requested_claims::RequestedClaims;
use super::service_principal::{PrincipalKind, ServicePrincipal};

/// The wall clock, given by the embedding program: tokens carry dates.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The lifetime of a service principal's token in Entra: a day less a second.
const TOKEN_LIFETIME: SignedDuration = SignedDuration::from_secs(86_399);

/// Where a directory finds applications that it does not hold itself, such as the managed identities of
/// a simulated Azure.
pub trait ApplicationSource: Send + Sync {
    /// The application of a client id, which is compared without case.
    fn application(&self, client_id: &str) -> Option<Application>;

    /// The service principals that they have in a tenant.
    fn service_principals(&self, tenant: &str) -> Vec<ServicePrincipal>;
}

/// How a simulated Entra is set up.
pub struct EntraOptions {
    /// The tenants' ids, the home tenant first. Tokens of any of them pass `TokenVerifier`.
    pub tenants: Vec<String>,
    /// Audiences that Resource Manager accepts, beside those of Azure's clouds: usually its own URL.
    pub management_audiences: Vec<String>,
    /// How long access tokens are valid.
    pub token_lifetime: SignedDuration,
    /// The applications that may sign in.
    pub applications: Vec<Application>,
    /// The wall clock.
    pub clock: Clock,
    /// Seed of the trace ids that answers carry.
    pub seed: u64,
    /// The key that signs tokens; a new one without. With the same key, tokens of before a restart stay good.
    pub signing_key: Option<SigningKey>,
}

impl EntraOptions {
    /// One tenant without applications, with Azure's token lifetime.
    pub fn new(tenant: impl Into<String>, clock: Clock) -> Self {
        Self {
            tenants: vec![tenant.into()],
            management_audiences: Vec::new(),
            token_lifetime: TOKEN_LIFETIME,
            applications: Vec::new(),
            clock,
            seed: 0,
            signing_key: None,
        }
    }
}

/// A simulated Entra ID. Cheap to clone; clones are the same directory.
#[derive(Clone)]
pub struct Entra {
    pub(super) directory: Arc<Directory>,
}

pub(super) struct Directory {
    /// The home tenant, if there is any.
    pub(super) home: Option<String>,
    pub(super) tenants: RwLock<Vec<String>>,
    pub(super) management_audiences: RwLock<Vec<String>>,
    pub(super) token_lifetime: SignedDuration,
    pub(super) applications: RwLock<HashMap<String, Arc<Application>>>,
    pub(super) source: RwLock<Option<Arc<dyn ApplicationSource>>>,
    pub(super) issuers: RwLock<HashMap<String, Vec<PublicKey>>>,
    pub(super) clock: Clock,
    pub(super) key: SigningKey,
    pub(super) seed: u64,
    pub(super) answers: AtomicU64,
    pub(super) seen: SeenTokens,
}

/// A fresh access token with its validity.
#[derive(Debug, Clone)]
pub struct IssuedToken {
    /// The token itself.
    pub token: AccessToken,
    /// From when on it is valid.
    pub not_before: Timestamp,
    /// Until when it is valid.
    pub expires_at: Timestamp,
}

/// A bearer token. Cannot be printed; [`AccessToken::secret`] hands it out.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// The token's text, for the `Authorization` header.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(..)")
    }
}

impl Entra {
    /// Sets up a directory.
    ///
    /// # Errors
    ///
    /// When the system's random source gives no key.
    pub fn new(options: EntraOptions) -> Result<Self, KeyError> {
        let directory = Directory {
            home: options.tenants.first().cloned(),
            tenants: RwLock::new(options.tenants),
            management_audiences: RwLock::new(options.management_audiences),
            token_lifetime: options.token_lifetime,
            applications: RwLock::default(),
            source: RwLock::new(None),
            issuers: RwLock::default(),
            clock: options.clock,
            key: options.signing_key.map_or_else(SigningKey::generate, Ok)?,
            seed: options.seed,
            answers: AtomicU64::new(0),
            seen: SeenTokens::default(),
        };
        let entra = Self { directory: Arc::new(directory) };
        for application in options.applications {
            entra.register(application);
        }
        Ok(entra)
    }

    /// Registers an application, or replaces the one with the same client id.
    pub fn register(&self, application: Application) {
        let key = application.client_id().to_ascii_lowercase();
        self.directory.applications.write().insert(key, Arc::new(application));
    }

    /// Changes an application, which is registered if its client id is not known here. Its object id is then the client
    /// id.
    pub fn amend(&self, client_id: &str, change: impl FnOnce(Application) -> Application) {
        let key = client_id.to_ascii_lowercase();
        let mut applications = self.directory.applications.write();
        let known = applications.get(&key).map(|known| Application::clone(known));
        let application = known.unwrap_or_else(|| Application::new(client_id, key.as_str()));
        applications.insert(key, Arc::new(change(application)));
    }

    /// Adds a tenant.
    pub fn accept_tenant(&self, tenant: &str) {
        let mut tenants = self.directory.tenants.write();
        if !tenants.iter().any(|known| known.eq_ignore_ascii_case(tenant)) {
            tenants.push(tenant.to_owned());
        }
    }

    /// Adds a further source of applications: `entra.look_up_in(Arc::new(azure.clone()))` lets managed identities sign
    /// in by their federated credentials.
    pub fn look_up_in(&self, source: Arc<dyn ApplicationSource>) {
        *self.directory.source.write() = Some(source);
    }

    /// Makes the keys of another issuer known, as Azure learns them from its discovery document. Tokens
    /// of an issuer whose keys neither stand with a credential nor are known here are not checked for
    /// their signature.
    pub fn know_issuer(&self, issuer: &str, keys: Vec<PublicKey>) {
        self.directory.issuers.write().insert(issuer.to_owned(), keys);
    }

    /// Accepts one more audience for Resource Manager, such as the URL of a listener just bound.
    pub fn accept_audience(&self, audience: &str) {
        self.directory.management_audiences.write().push(audience.to_owned());
    }

    /// The home tenant's id; empty when the options named no tenant.
    pub fn home_tenant(&self) -> &str {
        self.directory.home.as_deref().unwrap_or_default()
    }

    /// Issues an access token as the token endpoint would, for an identity that needs no proof
    /// (a managed identity, or a test).
    ///
    /// # Errors
    ///
    /// When the signing key refuses, which only a failing random source can cause.
    pub fn issue(
        &self,
        client_id: &str,
        object_id: &str,
        tenant: &str,
        audience: &str,
    ) -> Result<IssuedToken, KeyError> {
        self.issue_with(client_id, object_id, tenant, audience, &RequestedClaims::default())
    }

    pub(super) fn issue_with(
        &self,
        client_id: &str,
        object_id: &str,
        tenant: &str,
        audience: &str,
        requested: &RequestedClaims,
    ) -> Result<IssuedToken, KeyError> {
        // A token that must be newer than a moment just ahead begins then.
        let now = self.now();
        let ahead = requested.not_before.and_then(|second| Timestamp::from_second(second).ok());
        let now = ahead.filter(|ahead| *ahead > now).unwrap_or(now);
        let expires = now.checked_add(self.directory.token_lifetime).unwrap_or(Timestamp::MAX);
        let claims = AccessClaims {
            aud: audience.to_owned(),
            iss: format!("https://sts.windows.net/{tenant}/"),
            iat: now.as_second(),
            nbf: now.as_second(),
            exp: expires.as_second(),
            appid: client_id.to_owned(),
            idtyp: "app".to_owned(),
            oid: object_id.to_owned(),
            sub: object_id.to_owned(),
            tid: tenant.to_owned(),
            uti: self.next_id().simple().to_string(),
            ver: "1.0".to_owned(),
            xms_cc: requested.capabilities.clone(),
        };
        let token = AccessToken(self.directory.key.sign(&claims)?);
        Ok(IssuedToken { token, not_before: now, expires_at: expires })
    }

    /// The time by the directory's clock.
    pub fn now(&self) -> Timestamp {
        (self.directory.clock)()
    }

    /// The object id of an application that this secret proves; `None` if it proves none.
    pub fn proven_by_secret(&self, client_id: &str, secret: &str) -> Option<String> {
        let application = self.application(client_id).filter(|known| known.has_secret(secret))?;
        Some(application.object_id().to_owned())
    }

    /// The id of a tenant that a URL names: by its id, or `adfs` for the home tenant.
    pub(super) fn tenant(&self, named: &str) -> Option<String> {
        if named.eq_ignore_ascii_case("adfs") {
            return self.directory.home.clone();
        }
        let tenants = self.directory.tenants.read();
        tenants.iter().find(|tenant| tenant.eq_ignore_ascii_case(named)).cloned()
    }

    pub(super) fn application(&self, client_id: &str) -> Option<Arc<Application>> {
        let held = self.directory.applications.read().get(&client_id.to_ascii_lowercase()).cloned();
        held.or_else(|| {
            let source = self.directory.source.read().clone();
            source?.application(client_id).map(Arc::new)
        })
    }

    /// The service principals of a tenant: those of applications that are registered here, then those found elsewhere.
    pub(super) fn service_principals(&self, tenant: &str) -> Vec<ServicePrincipal> {
        let held = self.directory.applications.read();
        let mut held: Vec<ServicePrincipal> = held
            .values()
            .filter(|application| application.is_in(tenant))
            .map(|application| ServicePrincipal {
                client_id: application.client_id().to_owned(),
                object_id: application.object_id().to_owned(),
                name: application.name().to_owned(),
                kind: PrincipalKind::Application,
            })
            .collect();
        held.sort_by(|one, other| one.client_id.cmp(&other.client_id));
        let source = self.directory.source.read().clone();
        held.extend(source.map(|source| source.service_principals(tenant)).unwrap_or_default());
        held
    }

    /// Whether Resource Manager accepts the audience; a closing slash makes no difference.
    pub fn is_management_audience(&self, audience: &str) -> bool {
        let audience = audience.trim_end_matches('/');
        MANAGEMENT_AUDIENCES.iter().any(|known| known.eq_ignore_ascii_case(audience))
            || self
                .directory
                .management_audiences
                .read()
                .iter()
                .any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(audience))
    }

    pub(super) fn is_known_resource(&self, resource: &str) -> bool {
        let bare = resource.trim_end_matches('/');
        self.is_management_audience(bare)
            || WELL_KNOWN_RESOURCES.iter().any(|known| known.eq_ignore_ascii_case(bare))
    }

    /// The next trace id: the same sequence for the same seed.
    pub(super) fn next_id(&self) -> Uuid {
        let number = self.directory.answers.fetch_add(1, Ordering::Relaxed);
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        context.update(b"entra");
        context.update(&self.directory.seed.to_be_bytes());
        context.update(&number.to_be_bytes());
        let mut bytes = [0; 16];
        for (byte, hashed) in bytes.iter_mut().zip(context.finish().as_ref()) {
            *byte = *hashed;
        }
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

impl fmt::Debug for Entra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entra").field("tenants", &*self.directory.tenants.read()).finish_non_exhaustive()
    }
}
