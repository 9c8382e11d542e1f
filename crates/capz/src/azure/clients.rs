//! Azure clients by identity: one client for each credential, all with one budget.

use std::sync::Arc;
use std::time::Duration;

use arm::{
    Budgets, CallObserver, Client, Clock, Cloud, Credential, CredentialMethod, CredentialSpec, Transport,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use capz_api::azure_cluster_identity::AzureClusterIdentitySpec;
use cloud_config::{CloudEndpoints, Secret};
use freshness::Recent;
use parking_lot::Mutex;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::settings::Settings;

/// How long an unused client is kept: each rotated secret makes a new one. Clients in use are asked for more often, as
/// all objects are reconciled at least once in a sync period.
const CLIENT_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The data of a Secret with credentials. It must never be printed.
#[derive(Default, Clone)]
pub struct IdentitySecret {
    /// `clientSecret`.
    pub client_secret: Option<Vec<u8>>,
    /// `certificate`.
    pub certificate: Option<Vec<u8>>,
    /// `password` of the certificate.
    pub password: Option<Secret>,
}

impl IdentitySecret {
    /// The client secret as a text, without the trailing line break that files have.
    pub fn secret_text(&self) -> Option<Secret> {
        let bytes = self.client_secret.as_ref()?;
        Some(Secret::new(String::from_utf8_lossy(bytes).trim_end()))
    }

    /// The certificate and its password, from a Secret as documented, or from a Secret that holds the certificate in
    /// place of the client secret.
    pub fn certificate(&self) -> Option<(&[u8], Secret)> {
        match (&self.certificate, &self.client_secret) {
            (Some(certificate), _) => Some((certificate, self.password.clone().unwrap_or_default())),
            (None, Some(certificate)) => Some((certificate, Secret::default())),
            (None, None) => None,
        }
    }
}

/// Why a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The name of the cloud is unknown.
    #[error(
        "azureEnvironment {0:?} is unknown: set it to one of AzurePublicCloud, AzureChinaCloud, AzureUSGovernmentCloud or AzureGermanCloud"
    )]
    UnknownCloud(String),
    /// The identity cannot be used.
    #[error("the AzureClusterIdentity cannot be used: {0}")]
    Identity(String),
    /// The client cannot be created from the identity.
    #[error(transparent)]
    Client(#[from] arm::Error),
}

/// Creates the source of tokens for a credential. Worlds replace it.
pub type CredentialSource = dyn Fn(&CredentialSpec, &Cloud) -> Result<Credential, arm::Error> + Send + Sync;

/// Azure, for all identities.
pub struct Azure {
    transport: Transport,
    credentials: Box<CredentialSource>,
    budgets: Budgets,
    clock: Clock,
    observer: Option<Arc<dyn CallObserver>>,
    settings: Settings,
    clients: Mutex<Recent<Fingerprint, AzureAccess>>,
    /// Salts each fingerprint, so that fingerprints mean nothing outside of this process.
    salt: uuid::Uuid,
}

/// The fingerprint of a credential: SHA-256.
type Fingerprint = [u8; 32];

/// A client with the key that identifies its rights.
#[derive(Clone)]
pub struct AzureAccess {
    /// The client.
    pub client: Client,
    /// Distinguishes clients with different rights.
    pub tenant: Arc<str>,
    /// The source of its tokens.
    pub credential: Credential,
}

impl Azure {
    /// Uses this transport to reach Azure.
    pub fn new(transport: Transport, clock: Clock, settings: Settings) -> Self {
        let (sign, dated) = (transport.clone(), clock.clone());
        Self {
            credentials: Box::new(move |spec, cloud| Credential::new(spec, cloud, &sign, dated.clone())),
            transport,
            budgets: Budgets::default(),
            clock,
            observer: None,
            settings,
            clients: Mutex::new(Recent::kept_for(CLIENT_KEPT)),
            salt: uuid::Uuid::new_v4(),
        }
    }

    /// Replaces the source of tokens.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Box<CredentialSource>) -> Self {
        self.credentials = credentials;
        self
    }

    /// Reports every call to this observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The budgets of all calls.
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// A client with the rights of an identity. Each credential has its own client, so that a rotated one takes effect
    /// at once.
    ///
    /// # Errors
    /// The cloud is unknown, the identity cannot be used, or a file of it cannot be read.
    pub fn access(
        &self,
        environment: &str,
        identity: &AzureClusterIdentitySpec,
        material: &IdentitySecret,
    ) -> Result<AzureAccess, AccessError> {
        let name = if environment.is_empty() { "AzurePublicCloud" } else { environment };
        let (endpoints, known) = CloudEndpoints::named(name);
        if !known {
            return Err(AccessError::UnknownCloud(name.to_owned()));
        }
        let credential = self.credential(identity, material)?;
        let fingerprint = fingerprint(self.salt, name, identity, &credential);
        if let Some(access) = self.clients.lock().get(&fingerprint) {
            return Ok(access.clone());
        }
        let cloud = self.cloud(&endpoints, credential.authority.as_deref())?;
        let credential = (self.credentials)(&credential.spec, &cloud)?;
        let mut builder = Client::builder(cloud, self.transport.clone(), credential.clone())
            .user_agent(concat!("cluster-api-provider-azure/", env!("CARGO_PKG_VERSION")))
            .budgets(self.budgets.clone())
            .clock(self.clock.clone());
        if let Some(observer) = &self.observer {
            builder = builder.observer(Arc::clone(observer));
        }
        let access = AzureAccess { client: builder.build(), tenant: hex(&fingerprint).into(), credential };
        self.clients.lock().insert(fingerprint, access.clone());
        Ok(access)
    }

    fn cloud(&self, endpoints: &CloudEndpoints, authority: Option<&str>) -> Result<Cloud, arm::Error> {
        let mut cloud = Cloud::built_in(endpoints)?;
        let own = &self.settings.endpoints;
        let url = |setting: &str, text: &str| {
            text.parse().map_err(|error| arm::Error::Configuration {
                reason: format!("{setting}={text} is not a URL: {error}"),
            })
        };
        if let Some(text) = &own.resource_manager {
            cloud.resource_manager = url("AZURE_RESOURCE_MANAGER_ENDPOINT", text)?;
        }
        if let Some(text) = &own.authority_host {
            cloud.authority = url("AZURE_AUTHORITY_HOST", text)?;
        } else if let Some(text) = authority {
            cloud.authority = url("authentication_endpoint", text)?;
        }
        if let Some(audience) = &own.audience {
            cloud.audience.clone_from(audience);
        }
        Ok(cloud)
    }

    /// The credential of an identity. Files are read each time, as Secrets are, so that changes take effect at once.
    fn credential(
        &self,
        identity: &AzureClusterIdentitySpec,
        material: &IdentitySecret,
    ) -> Result<ClusterCredential, AccessError> {
        let trimmed = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
        let (tenant, client) = (trimmed(&identity.tenant_id), trimmed(&identity.client_id));
        let method = match kind_of(identity) {
            "ServicePrincipal" | "ManualServicePrincipal" => {
                CredentialMethod::ClientSecret(material.secret_text().ok_or_else(|| {
                    AccessError::Identity(
                        "spec.clientSecret must name a Secret with the key clientSecret".into(),
                    )
                })?)
            }
            "ServicePrincipalCertificate" => {
                let (content, password) = certificate(identity, material)?;
                CredentialMethod::Certificate { content, password }
            }
            "UserAssignedMSI" => CredentialMethod::ManagedIdentity { id: client.clone() },
            "WorkloadIdentity" => {
                CredentialMethod::WorkloadIdentity { token_file: self.settings.federated_token_file.clone() }
            }
            "UserAssignedIdentityCredential" => {
                let issued = issued_credential(&trimmed(&identity.user_assigned_identity_credentials_path))?;
                let content = STANDARD.decode(issued.client_secret.trim()).map_err(|_| {
                    AccessError::Identity(format!("{ISSUED}: its client_secret is not base64"))
                })?;
                let method = CredentialMethod::Certificate { content, password: Secret::default() };
                let spec = CredentialSpec { tenant: issued.tenant_id, client: issued.client_id, method };
                let authority = issued.authentication_endpoint.filter(|text| !text.is_empty());
                return Ok(ClusterCredential { spec, authority });
            }
            other => {
                return Err(AccessError::Identity(format!("spec.type {other:?} is not supported")));
            }
        };
        Ok(ClusterCredential { spec: CredentialSpec { tenant, client, method }, authority: None })
    }
}

/// The credential of a cluster's identity. It cannot be printed.
struct ClusterCredential {
    spec: CredentialSpec,
    /// The token authority, if the credential names it.
    authority: Option<String>,
}

/// The credential type of an identity.
pub(crate) fn kind_of(identity: &AzureClusterIdentitySpec) -> &str {
    identity.kind.as_deref().unwrap_or_default()
}

/// Whether the identity uses a client secret.
pub(crate) fn has_client_secret(identity: &AzureClusterIdentitySpec) -> bool {
    matches!(kind_of(identity), "ServicePrincipal" | "ManualServicePrincipal")
}

/// The certificate of an identity with its password: from the file that it names, otherwise from its Secret.
pub(crate) fn certificate(
    identity: &AzureClusterIdentitySpec,
    material: &IdentitySecret,
) -> Result<(Vec<u8>, Secret), AccessError> {
    let path = identity.cert_path.as_deref().unwrap_or_default().trim();
    if !path.is_empty() {
        let content = std::fs::read(path).map_err(|error| {
            AccessError::Identity(format!("spec.certPath {path} cannot be read: {error}"))
        })?;
        return Ok((content, Secret::default()));
    }
    let (content, password) = material.certificate().ok_or_else(|| {
        AccessError::Identity(
            "spec.certPath must name the file with the certificate, or spec.clientSecret a Secret with the keys certificate and password"
                .into(),
        )
    })?;
    Ok((content.to_owned(), password))
}

/// The location of an [`IssuedCredential`], for messages.
const ISSUED: &str = "the file that spec.userAssignedIdentityCredentialsPath names";

/// A credential of a user-assigned identity as the data plane of managed identities issues it. Source:
/// Azure/msi-dataplane.
#[derive(Deserialize)]
struct IssuedCredential {
    client_id: String,
    tenant_id: String,
    /// A certificate with its key, in base64.
    client_secret: String,
    authentication_endpoint: Option<String>,
}

fn issued_credential(path: &str) -> Result<IssuedCredential, AccessError> {
    let content = std::fs::read(path)
        .map_err(|error| AccessError::Identity(format!("{ISSUED} cannot be read: {path:?}: {error}")))?;
    // The parser's message may quote the content.
    serde_json::from_slice(&content).map_err(|_| {
        AccessError::Identity(format!(
            "{ISSUED} is no JSON with client_id, tenant_id and client_secret: {path:?}"
        ))
    })
}

/// The fingerprint of a credential. It covers the secrets, and does not reveal them. It also separates tenants, so two
/// credentials must never share one.
fn fingerprint(
    salt: uuid::Uuid,
    cloud: &str,
    identity: &AzureClusterIdentitySpec,
    credential: &ClusterCredential,
) -> Fingerprint {
    let CredentialSpec { tenant, client, method } = &credential.spec;
    let (secret, certificate, password) = match method {
        CredentialMethod::ClientSecret(secret) => (secret.reveal(), None, ""),
        CredentialMethod::Certificate { content, password } => {
            ("", Some(content.as_slice()), password.reveal())
        }
        // The type of the identity distinguishes these.
        CredentialMethod::WorkloadIdentity { .. }
        | CredentialMethod::ManagedIdentity { .. }
        | CredentialMethod::Arc { .. } => ("", None, ""),
    };
    let parts: [Option<&[u8]>; 10] = [
        Some(salt.as_bytes()),
        Some(cloud.as_bytes()),
        identity.kind.as_deref().map(str::as_bytes),
        Some(tenant.as_bytes()),
        Some(client.as_bytes()),
        Some(secret.as_bytes()),
        certificate,
        Some(password.as_bytes()),
        credential.authority.as_deref().map(str::as_bytes),
        identity.resource_id.as_deref().map(str::as_bytes),
    ];
    let mut digest = Sha256::new();
    for part in parts {
        // The length of each part is included, so that parts cannot run into each other.
        digest.update(part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
        digest.update(part.unwrap_or_default());
    }
    digest.finalize().into()
}

fn hex(print: &Fingerprint) -> String {
    print.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
