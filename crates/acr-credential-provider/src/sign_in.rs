//! The sign-in to a registry: its challenge, and the exchange of Entra's token for its own.
//!
//! <https://azure.github.io/acr/AAD-OAuth.html>

use arm::Transport;
use bytes::Bytes;
use cloud_config::Secret;
use http::header::{CONTENT_TYPE, USER_AGENT};
use serde::Deserialize;
use url::Url;

use crate::challenge::Challenge;
use crate::error::{Error, excerpt};
use crate::image::{Mirrors, Origin};
use crate::protocol::Credentials;

const AGENT: &str = "kubernetes-credentialprovider-acr";
/// The user of whoever signs in with a registry's token.
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";
/// More is no answer to an exchange.
const MAX_ANSWER_BYTES: usize = 10 << 20;

/// A registry that somebody wants to sign in to.
pub struct SignIn<'a> {
    /// How it is reached.
    pub transport: &'a Transport,
    /// Its host, with a port if the image names one.
    pub server: &'a str,
    /// The domain of registries in this cloud.
    pub domain: &'a str,
    /// The tenant of azure.json.
    pub tenant: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    refresh_token: String,
}

impl SignIn<'_> {
    /// Asks the registry where tokens are to be had.
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
        let answer = self.transport.send(request).await.map_err(|error| failed(error.to_string()))?;
        Challenge::read(answer.status().as_u16(), answer.headers())
            .map_err(|source| Error::Challenge { server: self.server.to_owned(), source })
    }

    /// Exchanges Entra's token for one of the registry. `identity` names whose it is.
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
        let answer = self.transport.send(request).await.map_err(|error| failed(error.to_string()))?;
        let (status, body) = (answer.status().as_u16(), answer.body());
        if status != 200 {
            return Err(Error::Exchange { status, text: excerpt(body), identity: identity.to_owned(), url });
        }
        if body.len() >= MAX_ANSWER_BYTES {
            return Err(Error::ReadLimit { url });
        }
        let token = serde_json::from_slice(body).map(|Answer { refresh_token }| refresh_token);
        match token.ok().filter(|token| !token.is_empty()) {
            Some(token) => Ok(Credentials { username: TOKEN_USER.to_owned(), password: Secret::new(token) }),
            None => Err(Error::WithoutToken { url }),
        }
    }

    /// Where to exchange, if that is a registry of Azure: whoever gets Entra's token can pull what its owner can.
    fn endpoint(&self, challenge: &Challenge) -> Result<String, Error> {
        let elsewhere = || Error::Realm { server: self.server.to_owned(), realm: challenge.realm.clone() };
        let realm = Url::parse(&challenge.realm).map_err(|_| elsewhere())?;
        let host = realm.host_str().ok_or_else(elsewhere)?;
        let server = match realm.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let is_registry = server == self.server
            || Origin::of(host, &Mirrors::default(), self.domain).login_server.is_some();
        if realm.scheme() != "https" || !is_registry {
            return Err(elsewhere());
        }
        Ok(format!("https://{server}/oauth2/exchange"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
