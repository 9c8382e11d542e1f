//! The token endpoint, for the client credentials grant.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};

use super::assertion;
use super::directory::Entra;
use super::refusal::{Refusal, not_to_be_stored};
use super::requested_claims::RequestedClaims;

const GRANT: &str = "client_credentials";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const DEFAULT_SCOPE: &str = "/.default";

/// `POST /{tenant}/oauth2/v2.0/token`, and `/{tenant}/oauth2/token` with `resource` for `scope`.
pub(super) async fn token(
    State(entra): State<Entra>,
    Path(tenant): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(&entra, &tenant, &headers, &body)
}

/// `POST /` at the endpoint of an identity binding, which is for one tenant.
pub(super) async fn binding(State(entra): State<Entra>, headers: HeaderMap, body: Bytes) -> Response {
    answer(&entra, entra.home_tenant(), &headers, &body)
}

fn answer(entra: &Entra, tenant: &str, headers: &HeaderMap, body: &[u8]) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body).into_owned().collect();
    match grant(entra, tenant, &form) {
        Ok(answer) => {
            let mut response = Json(answer).into_response();
            not_to_be_stored(&mut response);
            response
        }
        Err(refusal) => entra.refuse(&refusal, headers),
    }
}

fn grant(entra: &Entra, named: &str, form: &HashMap<String, String>) -> Result<Value, Refusal> {
    let field = |name: &'static str| form.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let required = |name| field(name).ok_or(Refusal::MissingParameter { name });

    let tenant = entra.tenant(named).ok_or_else(|| Refusal::UnknownTenant { tenant: named.to_owned() })?;
    let tenant = tenant.as_str();
    let grant = required("grant_type")?;
    if grant != GRANT {
        return Err(Refusal::UnsupportedGrant { grant: grant.to_owned() });
    }
    let client_id = required("client_id")?;
    let application = entra.application(client_id).filter(|known| known.is_in(tenant)).ok_or_else(|| {
        Refusal::UnknownApplication { client_id: client_id.to_owned(), tenant: tenant.to_owned() }
    })?;
    match (field("client_secret"), field("client_assertion")) {
        (_, Some(offered)) => {
            let kind = required("client_assertion_type")?;
            if kind != ASSERTION_TYPE {
                return Err(Refusal::UnsupportedAssertionType { offered: kind.to_owned() });
            }
            assertion::check(entra, offered, &application, &[tenant, named])?;
        }
        (Some(secret), None) if application.has_secret(secret) => {}
        (Some(_), None) => return Err(Refusal::WrongSecret { client_id: client_id.to_owned() }),
        (None, None) => return Err(Refusal::MissingCredential),
    }
    let audience = match field("resource") {
        Some(resource) => resource.to_owned(),
        None => audience(required("scope")?)?,
    };
    if !entra.is_known_resource(&audience) {
        return Err(Refusal::UnknownResource { resource: audience, tenant: tenant.to_owned() });
    }
    let requested = match field("claims") {
        None => RequestedClaims::default(),
        Some(claims) => {
            RequestedClaims::parse(claims, entra.now().as_second()).ok_or(Refusal::MalformedClaims)?
        }
    };
    let issued = entra
        .issue_with(application.client_id(), application.object_id(), tenant, &audience, &requested)
        .map_err(|_| Refusal::Unavailable)?;
    let lifetime = issued.expires_at.as_second() - issued.not_before.as_second();
    let mut answer = json!({
        "token_type": "Bearer",
        "expires_in": lifetime,
        "ext_expires_in": lifetime,
        "access_token": issued.token.secret(),
    });
    if let (Some(_), Some(answer)) = (field("resource"), answer.as_object_mut()) {
        // The older endpoint writes numbers as text, and gives times besides durations.
        answer.insert("expires_in".into(), lifetime.to_string().into());
        answer.insert("ext_expires_in".into(), lifetime.to_string().into());
        answer.insert("expires_on".into(), issued.expires_at.as_second().to_string().into());
        answer.insert("not_before".into(), issued.not_before.as_second().to_string().into());
        answer.insert("resource".into(), audience.into());
    }
    Ok(answer)
}

/// The resource in a list of scopes: `https://management.core.windows.net//.default openid` is for
/// `https://management.core.windows.net/`.
fn audience(scopes: &str) -> Result<String, Refusal> {
    let mut scopes_of_resources =
        scopes.split_whitespace().filter_map(|scope| scope.strip_suffix(DEFAULT_SCOPE));
    match scopes_of_resources.next() {
        Some(resource) => Ok(resource.to_owned()),
        None => Err(Refusal::ScopeWithoutDefault { scope: scopes.to_owned() }),
    }
}
