//! The sign-in to a registry: its challenge, and the exchange of Entra's token for its own.
//!
//! <https://azure.github.io/acr/AAD-OAuth.html>

use std::time::Duration;

use arm::{Transport, TransportError};
use bytes::Bytes;
use cloud_config::Secret;
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use serde::Deserialize;
use url::Url;

use crate::challenge::Challenge;
use crate::error::Error;
use crate::excerpt::excerpt;
use crate::image::{Mirrors, Origin};
use crate::protocol::Credentials;

const AGENT: &str = "kubernetes-credentialprovider-acr";
/// The user name for a registry's token.
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";
/// The limit for the answer to an exchange.
const MAX_ANSWER_BYTES: usize = 10 << 20;

/// Pauses after answers that the registry is busy. The kubelet retries a failed pull after ten seconds at the earliest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1500)];
/// The longest pause that a registry may ask for: the kubelet does not wait for much longer.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The sign-in to a registry.
pub struct SignIn<'a> {
    /// The transport to it.
    pub transport: &'a Transport,
    /// Its host, with a port if the image names one.
    pub server: &'a str,
    /// The domain of registries in this cloud.
    pub domain: &'a str,
    /// The tenant of azure.json.
    pub tenant: &'a str,
}

#[derive(Deserialize)]
struct RefreshTokenResponse {
    refresh_token: String,
}

impl SignIn<'_> {
    /// Requests the registry's challenge.
    ///
    /// # Errors
    /// It does not answer, or not with a challenge.
    pub async fn challenge(&self) -> Result<Challenge, Error> {
        let url = format!("https://{}/v2/", self.server);
        let failed = |reason: String| Error::Registry { url: url.clone(), reason };
        let request = http::Request::get(&url)
            .header(USER_AGENT, AGENT)
            .body(Bytes::new())
            .map_err(|error| failed(error.to_string()))?;
        let answer = self.send(request).await.map_err(|error| failed(error.to_string()))?;
        Challenge::read(answer.status().as_u16(), answer.headers(), answer.body())
            .map_err(|source| Error::Challenge { server: self.server.to_owned(), source })
    }

    /// Exchanges Entra's token for one of the registry. `identity` names its owner.
    ///
    /// # Errors
    /// The challenge leads elsewhere, or the registry refuses.
    pub async fn exchange(
        &self,
        challenge: &Challenge,
        token: &Secret,
        identity: &str,
    ) -> Result<Credentials, Error> {
        let url = self.endpoint(challenge)?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("service", &challenge.service)
            .append_pair("grant_type", "access_token_refresh_token")
            .append_pair("access_token", token.reveal())
            .append_pair("refresh_token", token.reveal())
            .append_pair("tenant", self.tenant)
            .finish();
        let failed = |reason: String| Error::Registry { url: url.clone(), reason };
        let request = http::Request::post(&url)
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|error| failed(error.to_string()))?;
        let answer = self.send(request).await.map_err(|error| failed(error.to_string()))?;
        let (status, body) = (answer.status().as_u16(), answer.body());
        if status != 200 {
            return Err(Error::Exchange { status, text: excerpt(body), identity: identity.to_owned(), url });
        }
        if body.len() >= MAX_ANSWER_BYTES {
            return Err(Error::ReadLimit { url });
        }
        let token = serde_json::from_slice(body).map(|RefreshTokenResponse { refresh_token }| refresh_token);
        match token.ok().filter(|token| !token.is_empty()) {
            Some(token) => Ok(Credentials { username: TOKEN_USER.to_owned(), password: Secret::new(token) }),
            None => Err(Error::WithoutToken { url }),
        }
    }

    /// Sends a request, and retries if the registry is busy. Both requests change nothing and can be repeated.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        for pause in PAUSES {
            let answer = self.transport.send(request.clone()).await?;
            if !is_busy(answer.status()) {
                return Ok(answer);
            }
            let requested =
                answer.headers().get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
            tokio::time::sleep(requested.map_or(pause, Duration::from_secs).min(MAX_PAUSE)).await;
        }
        self.transport.send(request).await
    }

    /// The URL for the exchange, if it is a registry of Azure: a host that gets Entra's token can pull everything that
    /// its owner can.
    fn endpoint(&self, challenge: &Challenge) -> Result<String, Error> {
        let refused = || Error::Realm { server: self.server.to_owned(), realm: challenge.realm.clone() };
        let realm = Url::parse(&challenge.realm).map_err(|_| refused())?;
        let host = realm.host_str().ok_or_else(refused)?;
        let server = match realm.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let is_registry = server == self.server
            || Origin::of(host, &Mirrors::default(), self.domain).login_server.is_some();
        if realm.scheme() != "https" || !is_registry {
            return Err(refused());
        }
        Ok(format!("https://{server}/oauth2/exchange"))
    }
}

fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use azure_simulator::entra::{Entra, EntraOptions};
    use azure_simulator::registry::{Registries, Registry};

    use super::*;

    /// NODE-211
    #[tokio::test(start_paused = true)]
    async fn a_busy_registry_is_asked_again() {
        let clock = clock::Clock::following_tokio(Duration::from_secs(1_800_000_000));
        let entra = Entra::new(EntraOptions::new("tenant", Arc::new(move || clock.now()))).unwrap();
        let registries = Registries::new(entra.clone()).unwrap();
        registries.add(Registry::new("foo.azurecr.io").with_puller("puller"));
        let transport = Transport::in_process(registries.router());
        let sign_in = SignIn {
            transport: &transport,
            server: "foo.azurecr.io",
            domain: "azurecr.io",
            tenant: "tenant",
        };

        registries.answer_next_with(&[503, 429]);
        let begun = tokio::time::Instant::now();
        let challenge = sign_in.challenge().await.unwrap();
        assert_eq!(begun.elapsed(), PAUSES[0] + PAUSES[1]);
        let token = entra.issue("client", "puller", "tenant", "https://containerregistry.azure.net").unwrap();
        let token = Secret::new(token.token.secret());
        registries.answer_next_with(&[500]);
        sign_in.exchange(&challenge, &token, "somebody").await.unwrap();

        registries.answer_next_with(&[503; 3]);
        let error = sign_in.challenge().await.unwrap_err().to_string();
        let words =
            "registry did not issue a valid AAD challenge, status: 503: a test makes the registry fail";
        assert!(error.ends_with(words), "{error}");
        let statuses: Vec<u16> = registries.requests().iter().map(|request| request.status).collect();
        assert_eq!(statuses, [503, 429, 401, 500, 200, 503, 503, 503]);
    }

    /// NODE-203
    #[test]
    fn a_token_goes_to_registries_of_this_cloud_alone() {
        arm::install_crypto_provider();
        let options = arm::TransportOptions::default();
        let transport = Transport::connect(options).unwrap();
        let endpoint = |realm: &str| {
            let sign_in = SignIn {
                transport: &transport,
                server: "foo.registry.example:8443",
                domain: ".azurecr.my.cloud",
                tenant: "t",
            };
            sign_in.endpoint(&Challenge { realm: realm.to_owned(), service: "s".to_owned() })
        };
        for (realm, expected) in [
            ("https://foo.azurecr.io/oauth2/token", "https://foo.azurecr.io/oauth2/exchange"),
            ("https://bar.azurecr.my.cloud", "https://bar.azurecr.my.cloud/oauth2/exchange"),
            ("https://foo.registry.example:8443/a?b=c", "https://foo.registry.example:8443/oauth2/exchange"),
        ] {
            assert_eq!(endpoint(realm).unwrap(), expected);
        }
        for realm in [
            "http://foo.azurecr.io/oauth2/token",
            "https://evil.example/oauth2/token",
            "https://foo.azurecr.io.evil.example/oauth2/token",
            "https://foo.registry.example/oauth2/token",
            "https://user@evil.example",
            "nonsense",
        ] {
            let error = endpoint(realm).unwrap_err().to_string();
            assert!(error.contains(realm) && error.contains("no token is sent there"), "{error}");
        }
    }
}
