//! What tokens are requested with, whichever configuration says it: `azure.json`, or an AzureClusterIdentity.

use std::path::PathBuf;

use cloud_config::{CloudConfig, Secret};

use crate::Error;

/// An identity in Entra, and its proof. It cannot be printed.
#[derive(Clone)]
pub struct CredentialSpec {
    /// The tenant.
    pub tenant: String,
    /// The client ID.
    pub client: String,
    /// The proof of the identity.
    pub method: CredentialMethod,
}

/// The proof of an identity.
#[derive(Clone)]
pub enum CredentialMethod {
    /// A client secret.
    ClientSecret(Secret),
    /// A client certificate.
    Certificate {
        /// PEM or PKCS#12, with its key.
        content: Vec<u8>,
        /// The password of the content; empty if it has none.
        password: Secret,
    },
    /// A token of this process, in a file that its platform renews.
    WorkloadIdentity {
        /// The file.
        token_file: PathBuf,
    },
    /// An identity of the machine.
    ManagedIdentity {
        /// The client ID or resource ID of a user-assigned identity; empty for the system-assigned one.
        id: String,
    },
    /// The identity of a machine that Azure Arc connects.
    Arc {
        /// The endpoint of its agent.
        endpoint: String,
    },
}

pub(crate) fn setting(reason: String) -> Error {
    Error::Configuration { reason }
}

impl CredentialSpec {
    /// The credential that a configuration selects. The file of a certificate is read.
    ///
    /// # Errors
    /// No credential is configured, a key that it needs is missing, or a file is unreadable.
    pub fn from_config(config: &CloudConfig) -> Result<Self, Error> {
        let managed_identity = config.user_assigned_identity_id.trim();
        let method = if config.use_federated_workload_identity_extension {
            CredentialMethod::WorkloadIdentity { token_file: config.aad_federated_token_file.clone().into() }
        } else if config.use_managed_identity_extension && !config.arc_endpoint.is_empty() {
            if !managed_identity.is_empty() {
                return Err(setting(format!(
                    "userAssignedIdentityID={managed_identity}: a machine that Azure Arc connects has its own identity alone: remove it"
                )));
            }
            CredentialMethod::Arc { endpoint: config.arc_endpoint.clone() }
        } else if config.use_managed_identity_extension {
            CredentialMethod::ManagedIdentity { id: managed_identity.to_owned() }
        } else if !config.aad_client_secret.is_empty() {
            CredentialMethod::ClientSecret(config.aad_client_secret.clone())
        } else if !config.aad_client_cert_path.is_empty() {
            let path = &config.aad_client_cert_path;
            let names = [("tenantId", &config.tenant_id), ("aadClientId", &config.aad_client_id)];
            require("a client certificate", names.map(|(key, text)| (key, text.is_empty())))?;
            let content = std::fs::read(path)
                .map_err(|error| setting(format!("aadClientCertPath={path}: cannot be read: {error}")))?;
            CredentialMethod::Certificate { content, password: config.aad_client_cert_password.clone() }
        } else {
            return Err(setting(
                "no credential is configured: set useManagedIdentityExtension, aadClientSecret, \
                     aadClientCertPath or useFederatedWorkloadIdentityExtension in the cloud config"
                    .into(),
            ));
        };
        let (tenant, client) = (config.tenant_id.clone(), config.aad_client_id.clone());
        Ok(Self { tenant, client, method })
    }

    /// Checks that everything is there that the method needs.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let ids = [("tenantId", self.tenant.is_empty()), ("aadClientId", self.client.is_empty())];
        match &self.method {
            CredentialMethod::WorkloadIdentity { token_file } => {
                let file = ("aadFederatedTokenFile", token_file.as_os_str().is_empty());
                require("workload identity", ids.into_iter().chain([file]))
            }
            CredentialMethod::ClientSecret(_) => require("a client secret", ids),
            CredentialMethod::Certificate { .. }
            | CredentialMethod::ManagedIdentity { .. }
            | CredentialMethod::Arc { .. } => Ok(()),
        }
    }
}

/// Checks that none of these keys is missing.
fn require(what: &str, keys: impl IntoIterator<Item = (&'static str, bool)>) -> Result<(), Error> {
    let missing: Vec<&str> =
        keys.into_iter().filter(|(_, is_missing)| *is_missing).map(|(key, _)| key).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(setting(format!("{what} needs {} in the cloud config", missing.join(" and "))))
}
