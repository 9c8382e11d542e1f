//! Tokens: the credential that the configuration selects, and the answers of its authority.
//!
//! Precedence: `docs/resources/azure-json.md`.

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
use clock::Clock;
use cloud_config::CloudConfig;
use http::HeaderValue;
use parking_lot::Mutex;

use crate::arc::ArcIdentity;
use crate::certificate::Certificate;
use crate::credential_spec::{CredentialMethod, CredentialSpec, setting};
use crate::error::one_line;
use crate::identity::{AuthorityFailure, IdentityClient, LastAnswer, Refusal};
use crate::token::{CachedToken, Tokens};
use crate::{Cloud, Error, Transport};

/// How long a call waits for a token that it needs. It is enough for four attempts at a slow authority; one that asks
/// for a longer pause is not waited for.
const TOKEN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);
/// How long one call waits for the renewal of a token that is still valid; other calls do not wait.
const RENEWAL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The prefix of a token in its header.
const BEARER: &str = "Bearer ";

/// The identity for Azure. Clones share the token.
#[derive(Clone)]
pub struct Credential {
    source: Arc<dyn TokenCredential>,
    /// For messages: `client secret of client …`.
    description: Arc<str>,
    last_answer: Arc<Mutex<LastAnswer>>,
    tokens: Arc<Tokens>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.description)
    }
}

/// A projected service account token, read again for each exchange.
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
        match token.trim() {
            "" => Err(azure_core::Error::with_message(
                ErrorKind::Credential,
                format!(
                    "aadFederatedTokenFile={}: is empty: the token is not projected yet; check the pod's volume",
                    self.0.display()
                ),
            )),
            token => Ok(token.to_owned()),
        }
    }
}

/// A given service account token.
#[derive(Debug)]
struct SuppliedToken(cloud_config::Secret);

#[async_trait]
impl ClientAssertion for SuppliedToken {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        Ok(self.0.reveal().to_owned())
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

impl Credential {
    /// The credential that a configuration selects. No token is requested yet; files are read.
    ///
    /// Errors: no credential is configured, a key that it needs is missing, a file is unreadable.
    pub fn from_config(
        config: &CloudConfig,
        cloud: &Cloud,
        transport: &Transport,
        clock: Clock,
    ) -> Result<Self, Error> {
        let spec = CredentialSpec::from_config(config)?;
        let is_certificate = matches!(spec.method, CredentialMethod::Certificate { .. });
        Self::new(&spec, cloud, transport, clock).map_err(|error| match error {
            Error::Configuration { reason } if is_certificate => {
                setting(format!("aadClientCertPath={}: {reason}", config.aad_client_cert_path))
            }
            error => error,
        })
    }

    /// A credential. No token is requested yet.
    ///
    /// Errors: something is missing, a certificate cannot be read with its password, or the tenant or client is
    /// invalid.
    pub fn new(
        spec: &CredentialSpec,
        cloud: &Cloud,
        transport: &Transport,
        clock: Clock,
    ) -> Result<Self, Error> {
        spec.check()?;
        let last_answer = Arc::new(Mutex::new(LastAnswer::default()));
        let options = || client_options(cloud, transport, &last_answer);
        let rejected = |what: &str, error: azure_core::Error| {
            setting(format!("{what}: {}", one_line(&error.to_string())))
        };
        let CredentialSpec { tenant, client, method } = spec;
        let (source, description): (Arc<dyn TokenCredential>, String) = match method {
            CredentialMethod::WorkloadIdentity { token_file } => {
                let description = format!("workload identity of client {client}");
                let file = FederatedToken(token_file.clone());
                return Self::asserted(tenant, client, file, description, cloud, transport);
            }
            CredentialMethod::Certificate { content, password } => {
                let audience =
                    format!("{}/{tenant}/oauth2/v2.0/token", cloud.authority.as_str().trim_end_matches('/'));
                let certificate = Certificate::read(content, password.reveal(), client, &audience, clock);
                let description = format!("client certificate of client {client}");
                let certificate = certificate.map_err(setting)?;
                return Self::asserted(tenant, client, certificate, description, cloud, transport);
            }
            CredentialMethod::Arc { endpoint } => {
                let identity = ArcIdentity::new(endpoint, transport.clone(), Arc::clone(&last_answer))?;
                (Arc::new(identity), "managed identity of Azure Arc".to_owned())
            }
            CredentialMethod::ManagedIdentity { id } => {
                let (user_assigned_id, description) = match id.as_str() {
                    "" => (None, "system-assigned managed identity".to_owned()),
                    id => {
                        let is_resource = id.to_ascii_uppercase().contains("/SUBSCRIPTIONS/");
                        let kind =
                            if is_resource { UserAssignedId::ResourceId } else { UserAssignedId::ClientId };
                        (Some(kind(id.to_owned())), format!("managed identity {id}"))
                    }
                };
                let made = ManagedIdentityCredential::new(Some(ManagedIdentityCredentialOptions {
                    user_assigned_id,
                    client_options: options(),
                }));
                (made.map_err(|error| rejected(&description, error))?, description)
            }
            CredentialMethod::ClientSecret(secret) => {
                let secret = Secret::new(secret.reveal().to_owned());
                let options = ClientSecretCredentialOptions { client_options: options() };
                let made = ClientSecretCredential::new(tenant, client.clone(), secret, Some(options));
                let description = format!("client secret of client {client}");
                (made.map_err(|error| rejected(&description, error))?, description)
            }
        };
        Ok(Self::of_library(source, &description, last_answer))
    }

    /// The workload identity of a service account with a given token, such as the one that a kubelet sends for a pod.
    /// Nothing is requested yet.
    ///
    /// Errors: an invalid tenant or client.
    pub fn service_account(
        tenant: &str,
        client: &str,
        token: cloud_config::Secret,
        cloud: &Cloud,
        transport: &Transport,
    ) -> Result<Self, Error> {
        let description = format!("service account token for client {client}");
        Self::asserted(tenant, client, SuppliedToken(token), description, cloud, transport)
    }

    /// A client that authenticates with assertions.
    fn asserted(
        tenant: &str,
        client: &str,
        assertion: impl ClientAssertion + 'static,
        description: String,
        cloud: &Cloud,
        transport: &Transport,
    ) -> Result<Self, Error> {
        let last_answer = Arc::new(Mutex::new(LastAnswer::default()));
        let options = ClientAssertionCredentialOptions {
            client_options: client_options(cloud, transport, &last_answer),
        };
        let made =
            ClientAssertionCredential::new(tenant.to_owned(), client.to_owned(), assertion, Some(options));
        let source =
            made.map_err(|error| setting(format!("{description}: {}", one_line(&error.to_string()))))?;
        Ok(Self::of_library(source, &description, last_answer))
    }

    /// A credential of the library, which dates tokens by the machine's clock, whatever clock signs assertions.
    fn of_library(
        source: Arc<dyn TokenCredential>,
        description: &str,
        last_answer: Arc<Mutex<LastAnswer>>,
    ) -> Self {
        Self { last_answer, ..Self::from_source(source, description, Clock::system()) }
    }

    /// A token for this scope, for services other than Resource Manager.
    ///
    /// Errors: the authority refuses, or does not answer within this time; the error then includes its last message.
    pub async fn token(
        &self,
        scope: &str,
        timeout: std::time::Duration,
    ) -> Result<cloud_config::Secret, Error> {
        let answer = tokio::time::timeout(timeout, self.authorization(scope)).await;
        let header = answer.unwrap_or_else(|_| Err(self.overdue(timeout)))?;
        let text = header.to_str().unwrap_or_default();
        Ok(cloud_config::Secret::new(text.strip_prefix(BEARER).unwrap_or(text)))
    }

    /// How long the last token for this scope is still valid; `None` before the first.
    pub fn left(&self, scope: &str) -> Option<std::time::Duration> {
        self.tokens.left(scope)
    }

    /// A token that never changes, for simulated worlds.
    pub fn fixed(token: &str) -> Self {
        Self::from_source(Arc::new(Fixed(Secret::new(token.to_owned()))), "fixed token", Clock::system())
    }

    /// Any other source of tokens; `description` names it in messages, `clock` is the one by which it dates tokens.
    pub fn from_source(source: Arc<dyn TokenCredential>, description: &str, clock: Clock) -> Self {
        let tokens = Arc::new(Tokens::new(clock));
        Self { source, description: description.into(), last_answer: Arc::default(), tokens }
    }

    /// The `Authorization` header of a request to this scope.
    ///
    /// The token is renewed five minutes before it expires, by one call; while that fails, the old one is used until it
    /// expires. Calls without a valid token share one request and its result.
    pub(crate) async fn authorization(&self, scope: &str) -> Result<HeaderValue, Error> {
        let came = tokio::time::Instant::now();
        match self.tokens.cached(scope) {
            CachedToken::Fresh(token) => return Ok(token),
            CachedToken::Ageing(token) => {
                let Ok(_renewing) = self.tokens.renewal.try_lock() else { return Ok(token) };
                return Ok(self.renew(scope, RENEWAL_TIMEOUT).await.unwrap_or_else(|error| {
                    tracing::warn!(
                        %error,
                        request_id = error.request_id(),
                        "cannot renew the token for Azure: the old one is used while it is valid"
                    );
                    token
                }));
            }
            CachedToken::Nothing => {}
        }
        let _renewing = self.tokens.renewal.lock().await;
        if let CachedToken::Fresh(token) | CachedToken::Ageing(token) = self.tokens.cached(scope) {
            return Ok(token);
        }
        // A call that asked while this one waited has the answer for this one, too.
        match self.tokens.failed_since(scope, came) {
            Some(error) => Err(error),
            None => self.renew(scope, TOKEN_TIMEOUT).await,
        }
    }

    /// Drops a token that Azure has rejected, so that the next call requests another one. Returns `false` if that
    /// cannot help: the token is new.
    pub(crate) fn reject(&self, scope: &str, token: &HeaderValue) -> bool {
        self.tokens.reject(scope, token)
    }

    async fn renew(&self, scope: &str, timeout: std::time::Duration) -> Result<HeaderValue, Error> {
        *self.last_answer.lock() = LastAnswer::default();
        let answer = match tokio::time::timeout(timeout, self.source.get_token(&[scope], None)).await {
            Ok(Ok(token)) => self.header(&token),
            Ok(Err(error)) => Err(self.explain(&error)),
            Err(_) => Err(self.overdue(timeout)),
        };
        self.tokens.note(scope, &answer);
        answer.map(|(header, _)| header)
    }

    /// The header with a token, and its expiry, since 1970.
    fn header(&self, token: &AccessToken) -> Result<(HeaderValue, std::time::Duration), Error> {
        let mut value =
            HeaderValue::from_str(&format!("{BEARER}{}", token.token.secret())).map_err(|_| {
                self.failure(
                    "the authority's token holds characters that no header may have".to_owned(),
                    false,
                )
            })?;
        value.set_sensitive(true);
        let dated = u64::try_from(token.expires_on.unix_timestamp()).unwrap_or_default();
        let expires = self.last_answer.lock().expires.unwrap_or(std::time::Duration::from_secs(dated));
        Ok((value, expires))
    }

    fn failure(&self, reason: String, transient: bool) -> Error {
        let credential = self.description.to_string();
        Error::Authentication { credential, code: None, reason, request_id: None, transient }
    }

    fn overdue(&self, timeout: std::time::Duration) -> Error {
        match self.last_answer.lock().failure.clone() {
            Some(failure) => self.authority_failure(failure),
            None => {
                self.failure(format!("the authority did not answer within {} s", timeout.as_secs()), true)
            }
        }
    }

    fn authority_failure(&self, failure: AuthorityFailure) -> Error {
        match failure {
            AuthorityFailure::Unreachable(reason) => self.failure(reason, true),
            AuthorityFailure::Refused(Refusal { status, code, description, request_id }) => {
                let text = match &code {
                    Some(code) => {
                        description.strip_prefix(&format!("{code}:")).unwrap_or(&description).trim()
                    }
                    None => description.as_str(),
                };
                Error::Authentication {
                    credential: self.description.to_string(),
                    reason: format!("{text} (status {status})"),
                    code,
                    request_id,
                    transient: matches!(status, 408 | 410 | 429 | 500..=599),
                }
            }
        }
    }

    /// One line: the authority's own message if there is one, otherwise the innermost cause.
    fn explain(&self, error: &azure_core::Error) -> Error {
        if let Some(failure) = self.last_answer.lock().failure.clone() {
            return self.authority_failure(failure);
        }
        let mut innermost: &(dyn std::error::Error + 'static) = error;
        while let Some(source) = std::error::Error::source(innermost) {
            innermost = source;
        }
        let text = one_line(&innermost.to_string());
        // The library ends its messages with a link to its own troubleshooting page.
        let text = text.split(" To troubleshoot, visit").next().unwrap_or_default().to_owned();
        self.failure(text, false)
    }
}

fn client_options(
    cloud: &Cloud,
    transport: &Transport,
    last_answer: &Arc<Mutex<LastAnswer>>,
) -> ClientOptions {
    let mut custom = CustomConfiguration::default();
    custom.authority_host = cloud.authority.as_str().trim_end_matches('/').to_owned();
    let client = IdentityClient::new(transport.clone(), Arc::clone(last_answer));
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
