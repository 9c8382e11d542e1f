//! Managed identity of machines outside of Azure that are connected by Azure Arc.
//!
//! The agent on the machine answers a first request with the name of a file, which only administrators and the group
//! `himds` can read; the second request bears the content of the file. Source: Azure's documentation of the agent's
//! endpoint.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::time::OffsetDateTime;
use bytes::Bytes;
use clock::Clock;
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::{Request, StatusCode, Uri};
use parking_lot::Mutex;

use crate::identity::{AuthorityFailure, LastAnswer, read_refusal, readable_token};
use crate::{Error, Transport};

/// The folder of the agent's challenges. A file in another folder is refused: otherwise another program at the agent's
/// address could obtain any file of the machine.
const TOKENS: &str = "/var/opt/azcmagent/tokens";
/// Larger than any challenge.
const MAX_CHALLENGE: u64 = 4096;
const API_VERSION: &str = "2020-06-01";

/// The identity that the agent of Azure Arc provides for its machine.
pub(crate) struct ArcIdentity {
    transport: Transport,
    endpoint: Uri,
    folder: PathBuf,
    last: Arc<Mutex<LastAnswer>>,
}

impl fmt::Debug for ArcIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArcIdentity")
    }
}

fn failed(reason: String) -> azure_core::Error {
    azure_core::Error::with_message(ErrorKind::Credential, reason)
}

impl ArcIdentity {
    /// The identity behind the agent's endpoint.
    ///
    /// Errors: an endpoint that is not a URL, or plain HTTP to another host.
    pub(crate) fn new(
        endpoint: &str,
        transport: Transport,
        last: Arc<Mutex<LastAnswer>>,
    ) -> Result<Self, Error> {
        let bad = |why: &str| Error::Configuration {
            reason: format!(
                "IDENTITY_ENDPOINT={endpoint}: {why}: set it as the agent of Azure Arc does, such as http://localhost:40342/metadata/identity/oauth2/token"
            ),
        };
        let uri: Uri = endpoint.parse().map_err(|_| bad("is not a URL"))?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_local = host == "localhost" || host.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback());
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_local => {}
            Some("http") => return Err(bad("is plain HTTP to another machine")),
            _ => return Err(bad("is not a URL")),
        }
        Ok(Self { transport, endpoint: uri, folder: TOKENS.into(), last })
    }

    async fn ask(
        &self,
        resource: &str,
        challenge: Option<HeaderValue>,
    ) -> azure_core::Result<http::Response<Bytes>> {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("api-version", API_VERSION)
            .append_pair("resource", resource)
            .finish();
        let uri = format!("{}?{query}", self.endpoint);
        let mut request = Request::get(uri).header("Metadata", "true");
        if let Some(challenge) = challenge {
            request = request.header(AUTHORIZATION, challenge);
        }
        let request = request.body(Bytes::new()).map_err(|error| failed(error.to_string()))?;
        self.transport.send(request).await.map_err(|error| {
            let reason = format!(
                "no answer from the agent of Azure Arc at {}: {error}; see that azcmagent runs, and that this program runs in the host's network",
                self.endpoint
            );
            self.last.lock().failure = Some(AuthorityFailure::Unreachable(reason.clone()));
            failed(reason)
        })
    }

    /// Reads the file that the agent names.
    async fn challenge(&self, answer: &http::Response<Bytes>) -> azure_core::Result<HeaderValue> {
        let header = answer.headers().get(WWW_AUTHENTICATE).and_then(|header| header.to_str().ok());
        let file = header.and_then(|header| header.trim().strip_prefix("Basic realm=")).unwrap_or_default();
        let path = Path::new(file.trim_matches('"'));
        let is_key = path.extension().is_some_and(|extension| extension == "key");
        if !is_key || path.parent() != Some(&self.folder) {
            return Err(failed(format!(
                "the agent of Azure Arc names {file:?}, which is not a challenge in {}",
                self.folder.display()
            )));
        }
        let unread = |error: std::io::Error| {
            failed(format!(
                "cannot read the challenge {} of Azure Arc: {error}; mount {} and run as a member of the group himds",
                path.display(),
                self.folder.display()
            ))
        };
        let size = tokio::fs::metadata(path).await.map_err(unread)?.len();
        if size > MAX_CHALLENGE {
            return Err(failed(format!(
                "the challenge {} has {size} bytes, and no challenge has",
                path.display()
            )));
        }
        let content = tokio::fs::read(path).await.map_err(unread)?;
        let text = String::from_utf8_lossy(&content);
        let mut value = HeaderValue::from_str(&format!("Basic {}", text.trim()))
            .map_err(|_| failed(format!("the challenge {} is not a valid header value", path.display())))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

#[async_trait]
impl TokenCredential for ArcIdentity {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let scope = scopes.first().copied().unwrap_or_default();
        let resource = scope.strip_suffix("/.default").unwrap_or(scope);
        let mut answer = self.ask(resource, None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            let challenge = self.challenge(&answer).await?;
            answer = self.ask(resource, Some(challenge)).await?;
        }
        let status = answer.status().as_u16();
        let host = self.endpoint.host().unwrap_or_default();
        if !answer.status().is_success() {
            let refusal = read_refusal(status, host, answer.body());
            let reason = refusal.description.clone();
            self.last.lock().failure = Some(AuthorityFailure::Refused(refusal));
            return Err(failed(reason));
        }
        let none = || failed("the agent of Azure Arc answered without a token".to_owned());
        let (token, expires) =
            readable_token(answer.body(), Clock::system().since_1970()).ok_or_else(none)?;
        self.last.lock().expires = Some(expires);
        let token: serde_json::Value = serde_json::from_slice(&token).map_err(|_| none())?;
        let token = token["access_token"].as_str().ok_or_else(none)?.to_owned();
        let expires = i64::try_from(expires.as_secs()).unwrap_or(i64::MAX);
        let expires = OffsetDateTime::from_unix_timestamp(expires).map_err(|_| none())?;
        Ok(AccessToken::new(Secret::new(token), expires))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F5: the agent's challenge is answered with the content of its file; a file elsewhere, or one that is too large,
    /// is not sent.
    #[tokio::test]
    async fn the_agents_challenge_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("a.key");
        std::fs::write(&key, "secret-of-the-file\n").unwrap();
        std::fs::write(folder.path().join("big.key"), vec![b'a'; 5000]).unwrap();
        std::fs::write(folder.path().join("a.txt"), "no key").unwrap();
        let answered: Arc<Mutex<Vec<String>>> = Arc::default();
        let named = Arc::new(Mutex::new(key.display().to_string()));
        let (seen, names) = (Arc::clone(&answered), Arc::clone(&named));
        let agent = axum::Router::new().fallback(move |request: axum::extract::Request| {
            let (seen, names) = (Arc::clone(&seen), Arc::clone(&names));
            async move {
                assert_eq!(request.headers()["metadata"], "true");
                let query = request.uri().query().unwrap_or_default().to_owned();
                assert_eq!(query, "api-version=2020-06-01&resource=https%3A%2F%2Fmanagement.azure.com");
                match request.headers().get(AUTHORIZATION) {
                    Some(proof) => {
                        seen.lock().push(proof.to_str().unwrap().to_owned());
                        (
                            StatusCode::OK,
                            [(WWW_AUTHENTICATE, String::new())],
                            r#"{"access_token":"t","expires_in":"3600"}"#,
                        )
                    }
                    None => {
                        let realm = format!("Basic realm={}", names.lock());
                        (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, realm)], "")
                    }
                }
            }
        });
        let endpoint = "http://localhost:40342/metadata/identity/oauth2/token";
        let transport = Transport::in_process(agent);
        let mut identity = ArcIdentity::new(endpoint, transport, Arc::default()).unwrap();
        identity.folder = folder.path().to_owned();
        let scopes = ["https://management.azure.com/.default"];
        let token = identity.get_token(&scopes, None).await.unwrap();
        assert_eq!(token.token.secret(), "t");
        let left = identity.last.lock().expires.unwrap() - Clock::system().since_1970();
        assert!(left.as_secs() > 3500, "{left:?}");
        assert_eq!(*answered.lock(), ["Basic secret-of-the-file"]);
        let outside = folder.path().join("../a.key").display().to_string();
        for (name, words) in [
            ("/etc/shadow", "is not a challenge in"),
            (outside.as_str(), "is not a challenge in"),
            (folder.path().join("a.txt").to_str().unwrap(), "is not a challenge in"),
            (folder.path().join("big.key").to_str().unwrap(), "5000 bytes"),
            (folder.path().join("none.key").to_str().unwrap(), "the group himds"),
        ] {
            *named.lock() = name.to_owned();
            let error = identity.get_token(&scopes, None).await.unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("secret-of"), "{error}");
        }
        assert_eq!(answered.lock().len(), 1);
        for bad in ["", "localhost", "http://10.0.0.9/token", "ftp://localhost"] {
            assert!(
                ArcIdentity::new(bad, Transport::in_process(axum::Router::new()), Arc::default()).is_err(),
                "{bad}"
            );
        }
    }
}
