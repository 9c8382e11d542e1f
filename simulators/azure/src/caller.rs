//! The caller of a request to Resource Manager: tokens, tenants and revocations.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::azure::Azure;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Extra, Refusal, Result};
use azure_engine::request::body::Body;
use azure_engine::request::target::Target;
use azure_engine::verbs::dispatch::Located;
use azure_entra::{AuthFailure, Principal};
use azure_providers::authorization::{self, Requester};

/// How many tokens of other tenants one request may carry, as Resource Manager documents.
const MAX_AUXILIARY_TOKENS: usize = 3;

/// The tokens of a request.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) bearer: Option<String>,
    /// Tokens of further tenants, from `x-ms-authorization-auxiliary`.
    auxiliary: Vec<String>,
}

impl Credentials {
    /// Reads the values of `Authorization` and `x-ms-authorization-auxiliary`.
    pub(crate) fn new(authorization: Option<&str>, auxiliary: Option<&str>) -> Self {
        let auxiliary = auxiliary.unwrap_or_default().split([',', ';']).filter_map(bearer_of);
        Self { bearer: authorization.and_then(bearer_of), auxiliary: auxiliary.collect() }
    }
}

fn bearer_of(value: &str) -> Option<String> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("Bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// The caller of a request.
pub(crate) struct Caller {
    /// The object id, or a fixed name where tokens are not verified.
    pub(crate) name: String,
    /// Set where tokens are verified.
    principal: Option<Principal>,
    /// Application and object id: the token's claims, verified or not.
    claimed: Option<(String, String)>,
    /// The tenants that tokens were shown for.
    tenants: Vec<String>,
}

impl Caller {
    fn unknown(claimed: Option<(String, String)>) -> Self {
        let name = claimed.as_ref().map_or(ANYBODY, |(_, object)| object.as_str()).to_owned();
        Self { name, principal: None, claimed, tenants: Vec::new() }
    }

    /// The caller's object id, where tokens are verified.
    pub(crate) fn object_id(&self) -> Option<&str> {
        self.principal.as_ref().map(|principal| principal.object_id.as_str())
    }

    /// Verifies the tokens of a request. `tenant` is the one that a challenge names; where rights are enforced, a
    /// request without a token is refused.
    pub(crate) fn of(
        azure: &Azure,
        credentials: &Credentials,
        tenant: &str,
        (now, enforced): (Timestamp, bool),
    ) -> Result<Self> {
        let options = azure.options();
        let refuse = |failure: &AuthFailure| refusal(failure, &options.authority, tenant);
        let (principal, verifier) = match (&credentials.bearer, azure.verifier()) {
            (Some(bearer), Some(verifier)) => {
                (verifier.verify(bearer, now).map_err(|failure| refuse(&failure))?, verifier)
            }
            (Some(bearer), None) => return Ok(Self::unknown(claimed(bearer))),
            (None, verifier) if options.require_auth || enforced || verifier.is_some() => {
                return Err(refuse(&AuthFailure::Missing));
            }
            (None, _) => return Ok(Self::unknown(None)),
        };
        if let Some(since) = azure.revoked_since(&principal) {
            return Err(insufficient_claims(&options.authority, tenant, since));
        }
        let mut tenants = vec![principal.tenant_id.clone()];
        if credentials.auxiliary.len() > MAX_AUXILIARY_TOKENS {
            return Err(invalid_auxiliary(&format!("at most {MAX_AUXILIARY_TOKENS} are allowed")));
        }
        for token in &credentials.auxiliary {
            match verifier.verify(token, now) {
                Ok(auxiliary) => tenants.push(auxiliary.tenant_id),
                Err(failure) => return Err(invalid_auxiliary(&failure.to_string())),
            }
        }
        let claimed = Some((principal.client_id.clone(), principal.object_id.clone()));
        Ok(Self { name: principal.object_id.clone(), principal: Some(principal), claimed, tenants })
    }

    /// The caller's application, where tokens are verified.
    pub(crate) fn application(&self) -> Option<String> {
        self.principal.as_ref().map(|principal| principal.client_id.clone())
    }

    /// Whether a request is of the tenant of its subscription, shows tokens for the tenants of all
    /// subscriptions that its body refers to, and has the rights that it needs.
    pub(crate) fn check(
        &self,
        state: &AzureState,
        located: &Located,
        method: &str,
        path: &str,
        body: &Body,
    ) -> Result<()> {
        self.check_tenants(state, located, method, body)?;
        let (client_id, object_id) = match &self.claimed {
            Some((client, object)) => (client.as_str(), object.as_str()),
            None => (ANYBODY, ANYBODY),
        };
        authorization::check(state, Requester { client_id, object_id }, located, (method, path, body))
    }

    fn check_tenants(&self, state: &AzureState, located: &Located, method: &str, body: &Body) -> Result<()> {
        let (Some(principal), Target::Within(subscription, _)) = (&self.principal, &located.target) else {
            return Ok(());
        };
        let expected = state.tenant_of(subscription);
        if !state.options.any_tenant && !principal.tenant_id.eq_ignore_ascii_case(expected) {
            let failure = AuthFailure::WrongTenant {
                tenant: principal.tenant_id.clone(),
                expected: expected.to_owned(),
            };
            return Err(refusal(&failure, &state.options.authority, expected));
        }
        if state.options.subscription_tenants.is_empty() || !matches!(method, "PUT" | "PATCH" | "POST") {
            return Ok(());
        }
        // A body that is not JSON is refused later.
        let Some(body) = body.readable() else { return Ok(()) };
        let mut linked = BTreeSet::new();
        subscriptions_in(body, &mut linked);
        let missing = linked.into_iter().find(|linked| {
            state.subscription(linked).is_some_and(|linked| {
                let tenant = state.tenant_of(linked);
                !self.tenants.iter().any(|shown| shown.eq_ignore_ascii_case(tenant))
            })
        });
        let Some(missing) = missing else { return Ok(()) };
        let verb = if method == "POST" { "action" } else { "write" };
        Err(Code::azures(403, "LinkedAuthorizationFailed").says(format_args!(
                "The client '{}' with object id '{}' has permission to perform action '{}/{verb}' on scope '{}'; \
                 however, the current tenant '{}' is not authorized to access linked subscription '{missing}'.",
                principal.client_id,
                principal.object_id,
                located.resource_type,
                located.resource().unwrap_or_else(|| format!("/subscriptions/{subscription}")),
                principal.tenant_id,
            ),
        ))
    }
}

/// The subscriptions of all resource ids in a document, in lower case.
fn subscriptions_in(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let mut parts = text.split('/');
            if let (Some(""), Some(word), Some(subscription)) = (parts.next(), parts.next(), parts.next())
                && word.eq_ignore_ascii_case("subscriptions")
            {
                found.insert(subscription.to_ascii_lowercase());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| subscriptions_in(item, found)),
        Value::Object(members) => members.values().for_each(|member| subscriptions_in(member, found)),
        _ => {}
    }
}

fn refusal(failure: &AuthFailure, authority: &str, tenant: &str) -> Refusal {
    let authority = format!("{}/{tenant}", authority.trim_end_matches('/'));
    let mut refusal = Refusal::new(401, failure.code(), failure.to_string());
    refusal.extra = Some(Box::new(Extra { inner: None, challenge: Some(failure.challenge(&authority)) }));
    refusal
}

/// The challenge of continuous access evaluation: a token from before `since` (seconds) no longer counts.
fn insufficient_claims(authority: &str, tenant: &str, since: i64) -> Refusal {
    let claims = json!({ "access_token": { "nbf": { "essential": true, "value": since.to_string() } } });
    let claims = STANDARD.encode(claims.to_string());
    let authority = authority.trim_end_matches('/');
    let mut refusal = Code::azures(401, "InvalidAuthenticationToken").says(
        "Continuous access evaluation resulted in challenge with result: InteractionRequired and code: \
         TokenIssuedBeforeRevocationTimestamp.",
    );
    let challenge = format!(
        "Bearer authorization_uri=\"{authority}/{tenant}\", error=\"insufficient_claims\", claims=\"{claims}\""
    );
    refusal.extra = Some(Box::new(Extra { inner: None, challenge: Some(challenge) }));
    refusal
}

fn invalid_auxiliary(why: &str) -> Refusal {
    Code::ours(401, "InvalidAuxiliaryTokens").says(format_args!("The auxiliary tokens are invalid: {why}"))
}

/// The name of a caller without a token.
const ANYBODY: &str = "anybody";

/// Application and object id that a token claims, where tokens are not verified: two programs have two budgets all the
/// same.
fn claimed(bearer: &str) -> Option<(String, String)> {
    let claims = bearer.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok())?;
    let claims = serde_json::from_slice::<Value>(&claims).ok()?;
    let claim = |name: &str| claims.get(name).and_then(Value::as_str).map(str::to_owned);
    let (client, object) = (claim("appid"), claim("oid"));
    let name = object.clone().or_else(|| client.clone())?;
    Some((client.unwrap_or_else(|| name.clone()), name))
}

impl Azure {
    /// Revokes the present tokens of an application (by client or object id; without one, of all). As in Azure this
    /// applies to tokens of clients that can answer a challenge (`xms_cc` with `CP1`); others stay valid until they
    /// expire.
    pub fn revoke_tokens(&self, client: Option<&str>) {
        // Tokens have times in whole seconds; those of the present second are revoked, too.
        let since = self.now().as_second().saturating_add(1);
        self.inner.revoked.write().insert(client.unwrap_or_default().to_ascii_lowercase(), since);
    }

    /// The second before which this principal's token does not count, if it is from before that.
    fn revoked_since(&self, principal: &Principal) -> Option<i64> {
        if !principal.can_answer_challenges {
            return None;
        }
        let revoked = self.inner.revoked.read();
        let names = [String::new(), principal.client_id.to_lowercase(), principal.object_id.to_lowercase()];
        let since = names.iter().filter_map(|name| revoked.get(name)).max().copied()?;
        (principal.not_before.as_second() < since).then_some(since)
    }
}

/// The control API of tokens.
pub(crate) fn router() -> Router<Azure> {
    Router::new().route("/_cerulean/tokens/revoke", post(revoke))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Revocation {
    /// The client or object id; all where it is missing.
    #[serde(default)]
    client_id: Option<String>,
}

async fn revoke(State(azure): State<Azure>, Json(revocation): Json<Revocation>) -> Response {
    azure.revoke_tokens(revocation.client_id.as_deref());
    StatusCode::NO_CONTENT.into_response()
}
