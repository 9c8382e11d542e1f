//! Azure with the rights of identities: one client for each credential, all with one budget. Source:
//! spec/capz/identities-and-tenancy.md.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arm::{Budgets, CallObserver, Client, Clock, Cloud, Credential, Transport};
use capz_api::azure_cluster_identity::AzureClusterIdentitySpec;
use cloud_config::{CloudConfig, CloudEndpoints, Secret};
use parking_lot::Mutex;

use crate::Settings;

/// What a Secret with credentials holds.
#[derive(Default, Clone)]
pub struct Material {
    /// `clientSecret`.
    pub client_secret: Option<Secret>,
    /// `certificate`.
    pub certificate: Option<Secret>,
    /// `password` of the certificate.
    pub password: Option<Secret>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The cloud has no such name.
    #[error(
        "azureEnvironment {0:?} is no cloud: it is one of AzurePublicCloud, AzureChinaCloud, AzureUSGovernmentCloud and AzureGermanCloud"
    )]
    UnknownCloud(String),
    /// The identity cannot be used.
    #[error("the AzureClusterIdentity cannot be used: {0}")]
    Identity(String),
    /// A client cannot be made of it.
    #[error(transparent)]
    Client(#[from] arm::Error),
}

/// How credentials become tokens. Worlds replace it.
pub type CredentialSource = dyn Fn(&CloudConfig, &Cloud) -> Result<Credential, arm::Error> + Send + Sync;

/// Azure, for all identities.
pub struct Azure {
    transport: Transport,
    credentials: Box<CredentialSource>,
    budgets: Budgets,
    clock: Clock,
    observer: Option<Arc<dyn CallObserver>>,
    settings: Settings,
    clients: Mutex<HashMap<u64, Access>>,
}

/// A client, and whose it is.
#[derive(Clone)]
pub struct Access {
    /// The client.
    pub client: Client,
    /// Tells it from clients with other rights.
    pub tenant: Arc<str>,
}

impl Azure {
    /// Azure by way of this transport.
    pub fn new(transport: Transport, clock: Clock, settings: Settings) -> Self {
        let (sign, dated) = (transport.clone(), clock.clone());
        Self {
            credentials: Box::new(move |config, cloud| {
                Credential::from_config(config, cloud, &sign, dated.clone())
            }),
            transport,
            budgets: Budgets::default(),
            clock,
            observer: None,
            settings,
            clients: Mutex::default(),
        }
    }

    /// The same, with another source of tokens.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Box<CredentialSource>) -> Self {
        self.credentials = credentials;
        self
    }

    /// The same, and this one is told of every call.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// A client with the rights of an identity. Another secret is another client: a rotated one counts at once.
    ///
    /// # Errors
    /// The cloud is unknown, the identity cannot be used, or a file of it cannot be read.
    pub fn access(
        &self,
        environment: &str,
        identity: &AzureClusterIdentitySpec,
        material: &Material,
    ) -> Result<Access, AccessError> {
        let name = if environment.is_empty() { "AzurePublicCloud" } else { environment };
        let (endpoints, known) = CloudEndpoints::named(name);
        if !known {
            return Err(AccessError::UnknownCloud(name.to_owned()));
        }
        let config = self.config(name, identity, material)?;
        let print = print_of(name, identity, &config);
        if let Some(access) = self.clients.lock().get(&print) {
            return Ok(access.clone());
        }
        let cloud = self.cloud(&endpoints)?;
        let credential = (self.credentials)(&config, &cloud)?;
        let mut builder = Client::builder(cloud, self.transport.clone(), credential)
            .user_agent(concat!("cluster-api-provider-azure/", env!("CARGO_PKG_VERSION")))
            .budgets(self.budgets.clone())
            .clock(self.clock.clone());
        if let Some(observer) = &self.observer {
            builder = builder.observer(Arc::clone(observer));
        }
        let access = Access { client: builder.build(), tenant: format!("{print:x}").into() };
        self.clients.lock().insert(print, access.clone());
        Ok(access)
    }

    fn cloud(&self, endpoints: &CloudEndpoints) -> Result<Cloud, arm::Error> {
        let mut cloud = Cloud::built_in(endpoints)?;
        let own = &self.settings.endpoints;
        let url = |setting: &str, text: &str| {
            text.parse().map_err(|error| arm::Error::Configuration {
                reason: format!("{setting}={text} is no URL: {error}"),
            })
        };
        if let Some(text) = &own.resource_manager {
            cloud.resource_manager = url("AZURE_RESOURCE_MANAGER_ENDPOINT", text)?;
        }
        if let Some(text) = &own.authority_host {
            cloud.authority = url("AZURE_AUTHORITY_HOST", text)?;
        }
        if let Some(audience) = &own.audience {
            cloud.audience.clone_from(audience);
        }
        Ok(cloud)
    }

    /// The identity in the words of the credentials that the house knows already.
    fn config(
        &self,
        cloud: &str,
        identity: &AzureClusterIdentitySpec,
        material: &Material,
    ) -> Result<CloudConfig, AccessError> {
        let trimmed = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
        let mut config = CloudConfig::default();
        config.cloud = cloud.to_owned();
        config.tenant_id = trimmed(&identity.tenant_id);
        config.aad_client_id = trimmed(&identity.client_id);
        match identity.kind.as_deref().unwrap_or_default() {
            "ServicePrincipal" | "ManualServicePrincipal" => {
                let secret = material.client_secret.as_ref().ok_or_else(|| {
                    AccessError::Identity(
                        "spec.clientSecret must name a Secret with the key clientSecret".into(),
                    )
                })?;
                config.aad_client_secret = Secret::new(secret.reveal().trim_end());
            }
            "ServicePrincipalCertificate" => {
                let path = trimmed(&identity.cert_path);
                if path.is_empty() {
                    return Err(AccessError::Identity(
                        "spec.certPath must name the file with the certificate".into(),
                    ));
                }
                config.aad_client_cert_path = path;
            }
            "UserAssignedMSI" => {
                config.use_managed_identity_extension = true;
                config.user_assigned_identity_id = trimmed(&identity.client_id);
            }
            "WorkloadIdentity" => {
                config.use_federated_workload_identity_extension = true;
                config.aad_federated_token_file = self.settings.federated_token_file.display().to_string();
            }
            other => {
                return Err(AccessError::Identity(format!("spec.type {other:?} is not supported")));
            }
        }
        Ok(config)
    }
}

/// What tells one credential from another. Secrets go into it, and cannot be read out of it.
fn print_of(cloud: &str, identity: &AzureClusterIdentitySpec, config: &CloudConfig) -> u64 {
    let mut hasher = DefaultHasher::new();
    (cloud, &identity.kind, &config.tenant_id, &config.aad_client_id).hash(&mut hasher);
    (config.aad_client_secret.reveal(), &config.aad_client_cert_path, &identity.resource_id)
        .hash(&mut hasher);
    hasher.finish()
}
