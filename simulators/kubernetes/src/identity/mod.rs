//! The sender of a request: the administrator, who has one of the server's tokens; a service account with a token that
//! the server signed; or the user of a client certificate. There is no authorization: roles are stored and not
//! evaluated.

mod request;
mod review;
mod token;

use std::collections::BTreeMap;

use certificate_authority::ClientCertificate;
use http::Request;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

pub(crate) use review::answer;
pub(crate) use token::{SigningKey, openid_configuration};

use crate::kubernetes::Kubernetes;

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The administrator: every sender with one of the server's tokens, and every sender without credentials if there
    /// are no tokens.
    pub(crate) fn administrator() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            uid: String::new(),
            groups: ["system:masters", "system:authenticated"].map(str::to_owned).into(),
            extra: BTreeMap::new(),
        }
    }

    fn service_account(namespace: &str, name: &str, uid: &str, extra: BTreeMap<String, Vec<String>>) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            extra,
        }
    }

    fn of_certificate(client: &ClientCertificate) -> Self {
        let mut groups = client.groups.clone();
        groups.push("system:authenticated".to_owned());
        Self { name: client.user.clone(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// The user as reviews and webhooks show it.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({ "username": self.name, "groups": self.groups });
        if !self.uid.is_empty() {
            value["uid"] = Value::from(self.uid.as_str());
        }
        if !self.extra.is_empty() {
            value["extra"] = json!(self.extra);
        }
        value
    }
}

impl Kubernetes {
    /// The sender of a request; `None` if the request is not authenticated.
    pub(crate) fn caller<B>(&self, request: &Request<B>) -> Option<User> {
        if let Some(client) = request.extensions().get::<ClientCertificate>() {
            return Some(User::of_certificate(client));
        }
        let open = self.shared.options.tokens.is_empty();
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let known = bearer.and_then(|(_, token)| self.bearer(token.trim(), &[]).ok());
        known.map(|(user, _)| user).or_else(|| open.then(User::administrator))
    }

    /// Authenticates a token. Returns its user and its audiences among the requested ones; if none are requested, it
    /// must be valid for this server.
    fn bearer(&self, token: &str, audiences: &[String]) -> Result<(User, Vec<String>), String> {
        if self.shared.options.tokens.iter().any(|known| known.reveal() == token) {
            return Ok((User::administrator(), audiences.to_vec()));
        }
        token::verify(self, token, audiences)
    }
}
