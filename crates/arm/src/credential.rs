//! Tokens: which credential the configuration asks for, and what an authority says of it.
//!
//! Precedence: `spec/config-and-cli.md`, section 1.6.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::cloud::CustomConfiguration;
use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::http::{
    ClientMethodOptions, ClientOptions, ExponentialRetryOptions, RetryOptions, Transport as CoreTransport,
};
use azure_core::time::{Duration, OffsetDateTime};
use azure_identity::{
    ClientAssertion, ClientAssertionCredential, ClientAssertionCredentialOptions, ClientSecretCredential,
    ClientSecretCredentialOptions, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId,
};
use cloud_config::CloudConfig;
use http::HeaderValue;
use parking_lot::Mutex;

use crate::certificate::Certificate;
use crate::error::one_line;
use crate::identity::{IdentityClient, Refusal};
use crate::{Clock, Cloud, Error, Transport};

/// Who we are to Azure. Clones share the token.
#[derive(Clone)]
pub struct Credential {
    source: Arc<dyn TokenCredential>,
    /// For messages: `client secret of client …`.
    description: Arc<str>,
    refusal: Arc<Mutex<Option<Refusal>>>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.description)
    }
}

/// A projected service account token, read anew each time one is exchanged.
#[derive(Debug)]
struct FederatedToken(PathBuf);

#[async_trait]
impl ClientAssertion for FederatedToken {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        let token = tokio::fs::read_to_string(&self.0).await.map_err(|error| {
            azure_core::Error::with_message(
                ErrorKind::Credential,
                format!("aadFederatedTokenFile={}: cannot be read: {error}", self.0.display()),
            )
        })?;
        Ok(token.trim().to_owned())
    }
}

/// One token that never changes.
struct Fixed(Secret);

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fixed")
    }
}

#[async_trait]
impl TokenCredential for Fixed {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        Ok(AccessToken::new(self.0.clone(), OffsetDateTime::UNIX_EPOCH + Duration::weeks(52 * 200)))
    }
}

fn setting(reason: String) -> Error {
    Error::Configuration { reason }
}

impl Credential {
    /// The credential that a configuration asks for. No token is requested yet; files are read.
    ///
    /// Errors: no credential is configured, a key that belongs to it is missing, a file is unreadable.
    pub fn from_config(
        config: &CloudConfig,
        cloud: &Cloud,
        transport: &Transport,
        clock: Clock,
    ) -> Result<Self, Error> {
        let refusal = Arc::new(Mutex::new(None));
        let options = || client_options(cloud, transport, &refusal);
        let client = &config.aad_client_id;
        let rejected = |what: &str, error: azure_core::Error| {
            setting(format!("{what}: {}", one_line(&error.to_string())))
        };
        let assertion_options = || Some(ClientAssertionCredentialOptions { client_options: options() });
        let tenant = config.tenant_id.clone();

        let (source, description): (Arc<dyn TokenCredential>, String) =
            if config.use_federated_workload_identity_extension {
                require(config, &["tenantId", "aadClientId", "aadFederatedTokenFile"], "workload identity")?;
                let file = FederatedToken(config.aad_federated_token_file.clone().into());
                let made = ClientAssertionCredential::new(tenant, client.clone(), file, assertion_options());
                let description = format!("workload identity of client {client}");
                (made.map_err(|error| rejected(&description, error))?, description)
            } else if config.use_managed_identity_extension {
                let id = config.user_assigned_identity_id.trim();
                let (id, description) = match id {
                    "" => (None, "system-assigned managed identity".to_owned()),
                    id if id.to_ascii_uppercase().contains("/SUBSCRIPTIONS/") => {
                        (Some(UserAssignedId::ResourceId(id.to_owned())), format!("managed identity {id}"))
                    }
                    id => (Some(UserAssignedId::ClientId(id.to_owned())), format!("managed identity {id}")),
                };
                let made = ManagedIdentityCredential::new(Some(ManagedIdentityCredentialOptions {
                    user_assigned_id: id,
                    client_options: options(),
                }));
                (made.map_err(|error| rejected(&description, error))?, description)
            } else if !config.aad_client_secret.is_empty() {
                require(config, &["tenantId", "aadClientId"], "a client secret")?;
                let secret = Secret::new(config.aad_client_secret.reveal().to_owned());
                let options = ClientSecretCredentialOptions { client_options: options() };
                let made = ClientSecretCredential::new(&tenant, client.clone(), secret, Some(options));
                let description = format!("client secret of client {client}");
                (made.map_err(|error| rejected(&description, error))?, description)
            } else if !config.aad_client_cert_path.is_empty() {
                require(config, &["tenantId", "aadClientId"], "a client certificate")?;
                let path = &config.aad_client_cert_path;
                let content = std::fs::read(path)
                    .map_err(|error| setting(format!("aadClientCertPath={path}: cannot be read: {error}")))?;
                let audience =
                    format!("{}/{tenant}/oauth2/v2.0/token", cloud.authority.as_str().trim_end_matches('/'));
                let password = config.aad_client_cert_password.reveal();
                let certificate = Certificate::read(&content, password, client, &audience, clock)
                    .map_err(|reason| setting(format!("aadClientCertPath={path}: {reason}")))?;
                let made =
                    ClientAssertionCredential::new(tenant, client.clone(), certificate, assertion_options());
                let description = format!("client certificate of client {client}");
                (made.map_err(|error| rejected(&description, error))?, description)
            } else {
                return Err(setting(
                    "no credential is configured: set useManagedIdentityExtension, aadClientSecret, \
                     aadClientCertPath or useFederatedWorkloadIdentityExtension in the cloud config"
                        .into(),
                ));
            };
        Ok(Self { source, description: description.into(), refusal })
    }

    /// A token that never changes, for simulated worlds.
    pub fn fixed(token: &str) -> Self {
        Self::from_source(Arc::new(Fixed(Secret::new(token.to_owned()))), "fixed token")
    }

    /// Any other source of tokens; `description` names it in messages.
    pub fn from_source(source: Arc<dyn TokenCredential>, description: &str) -> Self {
        Self { source, description: description.into(), refusal: Arc::default() }
    }

    /// The `Authorization` header of a request to this scope. The token behind it is renewed five minutes
    /// before it ends.
    pub(crate) async fn authorization(&self, scope: &str) -> Result<HeaderValue, Error> {
        let token = match self.source.get_token(&[scope], None).await {
            Ok(token) => token,
            Err(error) => return Err(self.explain(&error)),
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.token.secret())).map_err(|_| {
            self.failure(None, "the authority's token holds characters that no header may have".to_owned())
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn failure(&self, code: Option<String>, reason: String) -> Error {
        Error::Authentication { credential: self.description.to_string(), code, reason }
    }

    /// One line: the authority's own words where there are any, else the innermost cause.
    fn explain(&self, error: &azure_core::Error) -> Error {
        if let Some(Refusal { status, code, description }) = self.refusal.lock().clone() {
            let text = match &code {
                Some(code) => {
                    description.strip_prefix(&format!("{code}:")).unwrap_or(&description).trim().to_owned()
                }
                None => description,
            };
            return self.failure(code, format!("{text} (status {status})"));
        }
        let mut innermost: &(dyn std::error::Error + 'static) = error;
        while let Some(source) = std::error::Error::source(innermost) {
            innermost = source;
        }
        let text = one_line(&innermost.to_string());
        // The library ends its messages with a link to its own troubleshooting page.
        let text = text.split(" To troubleshoot, visit").next().unwrap_or_default().to_owned();
        self.failure(None, text)
    }
}

fn require(config: &CloudConfig, keys: &[&str], what: &str) -> Result<(), Error> {
    let missing: Vec<&str> = keys
        .iter()
        .filter(|key| {
            let value = match **key {
                "tenantId" => &config.tenant_id,
                "aadClientId" => &config.aad_client_id,
                _ => &config.aad_federated_token_file,
            };
            value.is_empty()
        })
        .copied()
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(setting(format!("{what} needs {} in the cloud config", missing.join(" and "))))
    }
}

fn client_options(
    cloud: &Cloud,
    transport: &Transport,
    refusal: &Arc<Mutex<Option<Refusal>>>,
) -> ClientOptions {
    let mut custom = CustomConfiguration::default();
    custom.authority_host = cloud.authority.as_str().trim_end_matches('/').to_owned();
    let client = IdentityClient::new(transport.clone(), Arc::clone(refusal));
    ClientOptions {
        transport: Some(CoreTransport::new(Arc::new(client))),
        cloud: Some(Arc::new(custom.into())),
        retry: RetryOptions::exponential(ExponentialRetryOptions {
            max_retries: 3,
            ..ExponentialRetryOptions::default()
        }),
        ..ClientOptions::default()
    }
}
