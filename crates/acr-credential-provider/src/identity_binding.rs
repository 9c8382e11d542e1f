//! Identity bindings: the cluster's API server exchanges a service account's token for one of Entra.
//!
//! The endpoint has a TLS name of its own (`--ib-sni-name`) at the API server's address, and a certificate of the
//! cluster's authority. No proxy is used.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arm::{Transport, TransportOptions};
use bytes::Bytes;
use cloud_config::Secret;
use http::header::CONTENT_TYPE;
use serde::Deserialize;

use crate::excerpt::excerpt;
use crate::protocol::Request;

/// The certificate of the cluster's authority on a node.
pub const CLUSTER_AUTHORITY: &str = "/etc/kubernetes/certs/ca.crt";
/// The annotation of a service account that names its client.
pub const CLIENT_ANNOTATION: &str = "kubernetes.azure.com/acr-client-id";
/// The annotation of a service account that names its tenant.
pub const TENANT_ANNOTATION: &str = "kubernetes.azure.com/acr-tenant-id";

/// The timeout for resolving the API server's name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The flags `--ib-…`, empty if they are not given.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BindingFlags {
    /// `--ib-sni-name`
    pub sni_name: String,
    /// `--ib-default-client-id`
    pub default_client_id: String,
    /// `--ib-default-tenant-id`: checked and otherwise unused, since the endpoint knows the tenant.
    pub default_tenant_id: String,
    /// `--ib-apiserver-ip`
    pub api_server: String,
}

/// Why the cluster's identity binding gives no token.
#[derive(Debug, thiserror::Error)]
pub enum BindingError {
    /// A URL instead of a name.
    #[error(
        "--ib-sni-name must not contain protocol prefix (https:// or http://), got: {0}: give the name alone"
    )]
    Protocol(String),
    /// A missing flag that another one needs.
    #[error("--{missing} must be set when --{given} is provided")]
    Missing {
        /// The missing flag.
        missing: &'static str,
        /// The flag that needs it.
        given: &'static str,
    },
    /// The API server's name cannot be resolved.
    #[error("--ib-apiserver-ip must be a valid IP address or resolvable FQDN, got: {0}")]
    ApiServer(String),
    /// The kubelet sent no token.
    #[error(
        "service account token not found in request: set tokenAttributes with serviceAccountTokenAudience for this \
         provider in the kubelet's CredentialProviderConfig"
    )]
    NoToken,
    /// The client is unknown.
    #[error(
        "client ID not found in service account annotations (checked {CLIENT_ANNOTATION}) and no default client ID \
         configured: annotate the service account, or set --ib-default-client-id"
    )]
    NoClient,
    /// The authority's file cannot be used.
    #[error("CA file {}: {reason}: it must hold the certificate of the cluster's authority", .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// No answer.
    #[error("failed to execute token request to https://{endpoint}: {reason}")]
    Transport {
        /// The TLS name.
        endpoint: String,
        /// The cause.
        reason: String,
    },
    /// A refusal.
    #[error("token request failed with status {status}: {text}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The text of the answer.
        text: String,
    },
    /// A success without a token.
    #[error("token request to https://{0} was answered without access_token")]
    WithoutToken(String),
}

/// A usable identity binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    sni_name: String,
    default_client_id: String,
    address: IpAddr,
}

impl BindingFlags {
    /// The binding by the flags, with the API server's address resolved; `None` without an identity binding.
    ///
    /// # Errors
    /// The flags contradict each other, or the API server's name cannot be resolved.
    pub async fn resolve(&self) -> Result<Option<Binding>, BindingError> {
        if self.sni_name.starts_with("https://") || self.sni_name.starts_with("http://") {
            return Err(BindingError::Protocol(self.sni_name.clone()));
        }
        let is_without_name = self.sni_name.is_empty();
        for (given, value) in [
            ("ib-default-client-id", &self.default_client_id),
            ("ib-default-tenant-id", &self.default_tenant_id),
            ("ib-apiserver-ip", &self.api_server),
        ] {
            if is_without_name && !value.is_empty() {
                return Err(BindingError::Missing { missing: "ib-sni-name", given });
            }
        }
        if is_without_name {
            return Ok(None);
        }
        if self.api_server.is_empty() {
            return Err(BindingError::Missing { missing: "ib-apiserver-ip", given: "ib-sni-name" });
        }
        let address = match self.api_server.parse() {
            Ok(address) => address,
            Err(_) => look_up(&self.api_server).await?,
        };
        let (sni_name, default_client_id) = (self.sni_name.clone(), self.default_client_id.clone());
        Ok(Some(Binding { sni_name, default_client_id, address }))
    }
}

async fn look_up(name: &str) -> Result<IpAddr, BindingError> {
    let addresses = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 443))).await;
    let first = addresses.ok().and_then(Result::ok).and_then(|mut addresses| addresses.next());
    first.map(|address| address.ip()).ok_or_else(|| BindingError::ApiServer(name.to_owned()))
}

impl Binding {
    /// The client of a request's service account.
    ///
    /// # Errors
    /// The request has no token, or the client is unknown.
    pub fn client(&self, request: &Request) -> Result<String, BindingError> {
        if request.service_account_token.is_empty() {
            return Err(BindingError::NoToken);
        }
        let client = request.annotations.get(CLIENT_ANNOTATION).unwrap_or(&self.default_client_id);
        if client.is_empty() { Err(BindingError::NoClient) } else { Ok(client.clone()) }
    }

    /// Exchanges a service account's token for one of Entra for this scope.
    ///
    /// # Errors
    /// The authority's file cannot be used, or the endpoint issues no token.
    pub async fn token(
        &self,
        client: &str,
        service_account_token: &Secret,
        scope: &str,
        authority: &Path,
    ) -> Result<Secret, BindingError> {
        let transport = self.transport(authority)?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_assertion_type", ASSERTION_TYPE)
            .append_pair("scope", scope)
            .append_pair("client_assertion", service_account_token.reveal())
            .append_pair("client_id", client)
            .finish();
        let failed = |reason: String| BindingError::Transport { endpoint: self.sni_name.clone(), reason };
        let request = http::Request::post(format!("https://{}", self.sni_name))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|error| failed(error.to_string()))?;
        let answer = transport.send(request).await.map_err(|error| failed(error.to_string()))?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(BindingError::Refused { status, text: excerpt(answer.body()) });
        }
        let token = serde_json::from_slice(answer.body()).map(|TokenResponse { access_token }| access_token);
        let token = token.ok().filter(|token| !token.is_empty());
        token.map(Secret::new).ok_or_else(|| BindingError::WithoutToken(self.sni_name.clone()))
    }

    fn transport(&self, authority: &Path) -> Result<Transport, BindingError> {
        let bad = |reason: String| BindingError::Authority { path: authority.to_owned(), reason };
        let pem =
            std::fs::read_to_string(authority).map_err(|error| bad(format!("cannot be read: {error}")))?;
        if !pem.contains("-----BEGIN CERTIFICATE-----") {
            return Err(bad("holds no certificate".to_owned()));
        }
        let host = self.sni_name.split(':').next().unwrap_or_default().to_owned();
        Transport::connect(TransportOptions {
            extra_roots: vec![pem],
            system_roots: false,
            http2: false,
            addresses: vec![(host, self.address)],
            ..TransportOptions::default()
        })
        .map_err(|error| bad(error.to_string()))
    }
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags([sni_name, default_client_id, default_tenant_id, api_server]: [&str; 4]) -> BindingFlags {
        let [sni_name, default_client_id, default_tenant_id, api_server] =
            [sni_name, default_client_id, default_tenant_id, api_server].map(str::to_owned);
        BindingFlags { sni_name, default_client_id, default_tenant_id, api_server }
    }

    /// NODE-135
    #[tokio::test]
    async fn flags_that_contradict_each_other_name_what_is_missing() {
        for (given, words) in [
            (["https://x", "", "", "10.0.0.1"], "must not contain protocol prefix"),
            (["http://x", "", "", "10.0.0.1"], "must not contain protocol prefix"),
            (["name", "", "", ""], "--ib-apiserver-ip must be set when --ib-sni-name is provided"),
            (["", "client", "", ""], "--ib-sni-name must be set when --ib-default-client-id is provided"),
            (["", "", "tenant", ""], "--ib-sni-name must be set when --ib-default-tenant-id is provided"),
            (["", "", "", "10.0.0.1"], "--ib-sni-name must be set when --ib-apiserver-ip is provided"),
            (
                ["name", "", "", "invalid-hostname.invalid"],
                "--ib-apiserver-ip must be a valid IP address or resolvable FQDN, got: invalid-hostname.invalid",
            ),
        ] {
            let error = flags(given).resolve().await.unwrap_err().to_string();
            assert!(error.contains(words), "{given:?}: {error}");
        }
        assert_eq!(flags([""; 4]).resolve().await.unwrap(), None);
        for (given, address) in [("10.0.0.1", "10.0.0.1"), ("fd00::7", "fd00::7"), ("localhost", "127.0.0.1")]
        {
            let binding = flags(["name", "client", "", given]).resolve().await.unwrap().unwrap();
            let address: IpAddr = address.parse().unwrap();
            assert!(binding.address == address || binding.address.is_loopback(), "{given}");
        }
    }

    /// NODE-204
    #[tokio::test]
    async fn the_annotation_names_the_client_else_the_flag_does() {
        let mut request = Request {
            image: "a".into(),
            service_account_token: Secret::new("token"),
            annotations: Default::default(),
        };
        let with_default = flags(["name", "default", "", "10.0.0.1"]).resolve().await.unwrap().unwrap();
        let without = flags(["name", "", "", "10.0.0.1"]).resolve().await.unwrap().unwrap();
        assert_eq!(with_default.client(&request).unwrap(), "default");
        assert!(without.client(&request).unwrap_err().to_string().contains("set --ib-default-client-id"));
        request.annotations.insert(CLIENT_ANNOTATION.into(), "own".into());
        assert_eq!(with_default.client(&request).unwrap(), "own");
        // An empty annotation counts, too.
        request.annotations.insert(CLIENT_ANNOTATION.into(), String::new());
        assert!(matches!(with_default.client(&request), Err(BindingError::NoClient)));
        request.service_account_token = Secret::default();
        assert!(matches!(with_default.client(&request), Err(BindingError::NoToken)));
    }
}
