//! The registry's own tokens: refresh tokens for tokens of Entra, access tokens for those or for passwords.

use std::collections::{BTreeSet, HashMap};

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::registries::{ADMINISTRATOR, PULL, Registries, Registry, host};
use crate::registry::answers::{errors, unauthorized};
use azure_entra::{Jwt, REGISTRY_AUDIENCE, TokenVerifier as _};

/// The user name with which clients send a refresh token as password.
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";
const REFRESH_GRANT: &str = "refresh_token";
const ACCESS_GRANT: &str = "access_token";
/// Azure's registries give refresh tokens for three hours, and access tokens for 75 minutes.
const REFRESH_LIFETIME: SignedDuration = SignedDuration::from_hours(3);
const ACCESS_LIFETIME: SignedDuration = SignedDuration::from_mins(75);

/// Claims of a registry's tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AccessClaims {
    /// The login server.
    aud: String,
    /// The object id of its owner; empty for anonymous access.
    sub: String,
    nbf: i64,
    exp: i64,
    grant_type: String,
    /// The rights of an access token.
    #[serde(default)]
    access: Vec<Access>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Access {
    r#type: String,
    name: String,
    actions: BTreeSet<String>,
}

impl AccessClaims {
    /// Whether the token allows this in a repository.
    pub(super) fn allows(&self, repository: &str, action: &str) -> bool {
        let of_it =
            self.access.iter().filter(|access| access.r#type == "repository" && access.name == repository);
        of_it.flat_map(|access| &access.actions).any(|allowed| allowed == action)
    }
}

type Form = HashMap<String, String>;

fn form(body: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

/// `POST /oauth2/exchange`: a refresh token for a token of Entra.
pub(super) async fn exchange(
    State(registries): State<Registries>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let form: Form = form(&body).into_iter().collect();
    let field = |name: &str| form.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let Some(registry) = registries.of(&headers) else { return unknown_registry(&headers) };
    let bad = |message: &str| errors(StatusCode::BAD_REQUEST, "BAD_REQUEST", message);
    match field("grant_type") {
        Some("access_token" | "access_token_refresh_token") => {}
        _ => return bad("grant_type must be access_token or access_token_refresh_token"),
    }
    if !field("service").is_some_and(|service| service.eq_ignore_ascii_case(&registry.login_server)) {
        return bad("service must be the login server of this registry");
    }
    let Some(token) = field("access_token") else { return bad("access_token is missing") };
    let entra = &registries.shared.entra;
    let accepts = |audience: &str| {
        audience.trim_end_matches('/') == REGISTRY_AUDIENCE || entra.is_management_audience(audience)
    };
    let principal = match entra.verify_for(token, entra.now(), &accepts) {
        Ok(principal) => principal,
        Err(failure) => return unauthorized(&failure.to_string()),
    };
    if !registries.rights(&registry, &principal.object_id).contains(&PULL) {
        return unauthorized("the principal has no role on this registry");
    }
    let refresh =
        registries.sign(&registry, &principal.object_id, REFRESH_GRANT, REFRESH_LIFETIME, Vec::new());
    refresh.map_or_else(unavailable, |token| Json(json!({ "refresh_token": token })).into_response())
}

/// `POST /oauth2/token`, as containerd and Docker send it.
pub(super) async fn token_by_form(
    State(registries): State<Registries>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let pairs = form(&body);
    let scopes = pairs.iter().filter(|(name, _)| name == "scope").map(|(_, scope)| scope.clone()).collect();
    let form: Form = pairs.into_iter().collect();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let Some(registry) = registries.of(&headers) else { return unknown_registry(&headers) };
    let owner = match field("grant_type") {
        "refresh_token" => registries.owner_of(field("refresh_token"), &registry),
        "password" => registries.signed_in(field("username"), field("password"), &registry),
        _ => {
            return errors(
                StatusCode::BAD_REQUEST,
                "BAD_REQUEST",
                "grant_type must be refresh_token or password",
            );
        }
    };
    match owner {
        Some(owner) => registries.give_access(&registry, &owner, scopes),
        None => unauthorized("authentication required"),
    }
}

/// `GET /oauth2/token`, with a password as in basic authentication, or anonymous.
pub(super) async fn token_by_query(
    State(registries): State<Registries>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let pairs = form(query.unwrap_or_default().as_bytes());
    let scopes = pairs.into_iter().filter(|(name, _)| name == "scope").map(|(_, scope)| scope).collect();
    let Some(registry) = registries.of(&headers) else { return unknown_registry(&headers) };
    let owner = match headers.get(AUTHORIZATION) {
        None => registry.is_anonymous.then(String::new),
        Some(header) => {
            basic(header).and_then(|(user, password)| registries.signed_in(&user, &password, &registry))
        }
    };
    match owner {
        Some(owner) => registries.give_access(&registry, &owner, scopes),
        None => unauthorized("authentication required"),
    }
}

/// User and password of basic authentication.
fn basic(header: &http::HeaderValue) -> Option<(String, String)> {
    let encoded = header.to_str().ok()?.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn unknown_registry(headers: &HeaderMap) -> Response {
    errors(StatusCode::NOT_FOUND, "NOT_FOUND", &format!("there is no registry {}", host(headers)))
}

fn unavailable() -> Response {
    errors(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "no token can be signed")
}

impl Registries {
    fn sign(
        &self,
        registry: &Registry,
        owner: &str,
        grant: &str,
        lifetime: SignedDuration,
        access: Vec<Access>,
    ) -> Option<String> {
        let now = self.shared.entra.now().as_second();
        let claims = AccessClaims {
            aud: registry.login_server.clone(),
            sub: owner.to_owned(),
            nbf: now,
            exp: now.saturating_add(lifetime.as_secs()),
            grant_type: grant.to_owned(),
            access,
        };
        self.shared.key.sign(&claims).ok()
    }

    /// The claims of a token of this registry that is valid now and of this sort.
    fn claims(&self, token: &str, grant: &str, login_server: &str) -> Option<AccessClaims> {
        let token = Jwt::parse(token).filter(|token| token.is_signed_by(self.shared.key.public()))?;
        let claims: AccessClaims = serde_json::from_value(token.claims).ok()?;
        let in_time = self.shared.entra.now().as_second() < claims.exp;
        (in_time && claims.grant_type == grant && claims.aud == login_server).then_some(claims)
    }

    /// The claims of an access token.
    pub(super) fn access_claims(&self, token: &str, login_server: &str) -> Option<AccessClaims> {
        self.claims(token, ACCESS_GRANT, login_server)
    }

    /// The object id of a refresh token's owner.
    fn owner_of(&self, refresh_token: &str, registry: &Registry) -> Option<String> {
        self.claims(refresh_token, REFRESH_GRANT, &registry.login_server).map(|claims| claims.sub)
    }

    /// The object id that a password proves: a refresh token, or the secret of an application.
    fn signed_in(&self, user: &str, password: &str, registry: &Registry) -> Option<String> {
        if user == TOKEN_USER {
            self.owner_of(password, registry)
        } else if registry.access.as_ref().is_some_and(|access| access.is_admin(user, password)) {
            Some(ADMINISTRATOR.to_owned())
        } else {
            self.shared.entra.proven_by_secret(user, password)
        }
    }

    /// An access token with those of the scopes that its owner has; a refusal if it has none.
    fn give_access(&self, registry: &Registry, owner: &str, scopes: Vec<String>) -> Response {
        let rights = self.rights(registry, owner);
        let scopes: Vec<&str> = scopes.iter().flat_map(|scopes| scopes.split_whitespace()).collect();
        let granted = |scope: &&str| {
            let (r#type, rest) = scope.split_once(':')?;
            let (name, actions) = rest.rsplit_once(':')?;
            let is_wanted =
                |right: &&&str| actions.split(',').any(|action| action == **right || action == "*");
            let actions: BTreeSet<String> =
                rights.iter().filter(is_wanted).map(|right| (*right).to_owned()).collect();
            (r#type == "repository" && !actions.is_empty()).then(|| Access {
                r#type: r#type.to_owned(),
                name: name.to_owned(),
                actions,
            })
        };
        let access: Vec<Access> = scopes.iter().filter_map(granted).collect();
        if rights.is_empty() || (access.is_empty() && !scopes.is_empty()) {
            return unauthorized("the principal has none of the requested rights");
        }
        let token = self.sign(registry, owner, ACCESS_GRANT, ACCESS_LIFETIME, access);
        token.map_or_else(unavailable, |token| Json(json!({ "access_token": token })).into_response())
    }
}
