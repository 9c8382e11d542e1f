//! Managed identity: tokens for programs on a machine, in the form of the metadata service and in that of App Service,
//! whose URL clients take from `IDENTITY_ENDPOINT`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use azure_entra::{ClientSecret, Entra, IssuedToken};
use azure_providers::identity::ManagedIdentity;

/// Where [`app_service_router`] serves tokens: `IDENTITY_ENDPOINT` is the listener's URL and this path.
pub const APP_SERVICE_PATH: &str = "/msi/token";
/// Where the instance metadata service serves tokens.
pub const IMDS_TOKEN_PATH: &str = "/metadata/identity/oauth2/token";

/// The identities available to callers on this machine, and the directory that issues their tokens.
#[derive(Debug, Clone)]
pub struct MachineIdentities {
    /// Issues the tokens, in its home tenant.
    pub entra: Entra,
    /// The machine's identities. A request without a choice gets the machine's own, or the only one there is.
    pub identities: Vec<ManagedIdentity>,
}

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NoMetadataHeader,
    Forwarded,
    NoVersion,
    NoResource,
    UnknownIdentity,
    AmbiguousIdentity,
    SeveralSelectors,
    WrongIdentityHeader,
    NoToken,
}

impl Refusal {
    fn answer(&self) -> Response {
        let invalid = |text: &str| json!({ "error": "invalid_request", "error_description": text });
        let (status, body) = match self {
            Self::NoMetadataHeader => {
                (StatusCode::BAD_REQUEST, invalid("Required metadata header not specified"))
            }
            Self::Forwarded => {
                (StatusCode::BAD_REQUEST, invalid("Requests that carry X-Forwarded-For are not accepted"))
            }
            Self::NoVersion => (
                StatusCode::BAD_REQUEST,
                json!({
                    "error": "Bad request. api-version was not specified in the request.",
                    "newest-versions": ["2019-08-01", "2018-02-01"],
                }),
            ),
            Self::NoResource => {
                (StatusCode::BAD_REQUEST, invalid("Required audience parameter not specified"))
            }
            Self::UnknownIdentity => (StatusCode::BAD_REQUEST, invalid("Identity not found")),
            Self::AmbiguousIdentity => (
                StatusCode::BAD_REQUEST,
                invalid(
                    "Multiple user assigned identities exist, please specify the clientId / resourceId of the \
                     identity in the token request",
                ),
            ),
            Self::SeveralSelectors => (
                StatusCode::BAD_REQUEST,
                invalid("At most one of client_id, object_id and msi_res_id may be given"),
            ),
            Self::WrongIdentityHeader => (
                StatusCode::UNAUTHORIZED,
                json!({
                    "statusCode": 401,
                    "message": "The X-IDENTITY-HEADER does not have the expected value.",
                }),
            ),
            Self::NoToken => (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({ "error": "unknown", "error_description": "Failed to retrieve token from the directory" }),
            ),
        };
        (status, Json(body)).into_response()
    }
}

/// The endpoint of the instance metadata service, at [`IMDS_TOKEN_PATH`].
pub fn router(machine: MachineIdentities) -> Router {
    Router::new().route(IMDS_TOKEN_PATH, get(imds_token)).with_state(Arc::new(machine))
}

/// The App Service form, at [`APP_SERVICE_PATH`]. `header` is the value that callers must send as `X-IDENTITY-HEADER`:
/// that of their `IDENTITY_HEADER`.
pub fn app_service_router(machine: MachineIdentities, header: &str) -> Router {
    let state = Arc::new((machine, ClientSecret::new(header)));
    Router::new().route(APP_SERVICE_PATH, get(app_service_token)).with_state(state)
}

async fn imds_token(
    State(machine): State<Arc<MachineIdentities>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    answer(&machine, None, parameters(query), &headers)
}

/// Answers a request for a token, in this tenant or the home tenant.
pub(super) fn answer(
    machine: &MachineIdentities,
    tenant: Option<&str>,
    query: HashMap<String, String>,
    headers: &HeaderMap,
) -> Response {
    let asked = || {
        let header = headers.get("metadata").and_then(|value| value.to_str().ok());
        if !header.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(Refusal::NoMetadataHeader);
        }
        if headers.contains_key("x-forwarded-for") {
            return Err(Refusal::Forwarded);
        }
        machine.token(tenant, query)
    };
    match asked() {
        Ok((identity, resource, issued)) => {
            let lifetime = (issued.expires_at.as_second() - issued.not_before.as_second()).to_string();
            // Every number is text here, unlike Entra's own endpoint; clients parse it strictly.
            Json(json!({
                "access_token": issued.token.secret(),
                "client_id": identity.client_id,
                "expires_in": lifetime,
                "expires_on": issued.expires_at.as_second().to_string(),
                "ext_expires_in": lifetime,
                "not_before": issued.not_before.as_second().to_string(),
                "resource": resource,
                "token_type": "Bearer",
            }))
            .into_response()
        }
        Err(refusal) => refusal.answer(),
    }
}

async fn app_service_token(
    State(state): State<Arc<(MachineIdentities, ClientSecret)>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let (machine, expected) = &*state;
    let asked = || {
        let header =
            headers.get("x-identity-header").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if ClientSecret::new(header) != *expected {
            return Err(Refusal::WrongIdentityHeader);
        }
        machine.token(None, parameters(query))
    };
    match asked() {
        Ok((identity, resource, issued)) => Json(json!({
            "access_token": issued.token.secret(),
            "client_id": identity.client_id,
            "expires_on": issued.expires_at.as_second().to_string(),
            "resource": resource,
            "token_type": "Bearer",
        }))
        .into_response(),
        Err(refusal) => refusal.answer(),
    }
}

fn parameters(query: Option<String>) -> HashMap<String, String> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

impl MachineIdentities {
    fn token(
        &self,
        tenant: Option<&str>,
        query: HashMap<String, String>,
    ) -> Result<(&ManagedIdentity, String, IssuedToken), Refusal> {
        let field = |name: &str| query.get(name).map(String::as_str).filter(|value| !value.is_empty());
        field("api-version").ok_or(Refusal::NoVersion)?;
        let resource = field("resource").ok_or(Refusal::NoResource)?;
        let identity = self.chosen(
            field("client_id"),
            field("object_id").or(field("principal_id")),
            field("msi_res_id").or(field("mi_res_id")),
        )?;
        let tenant = tenant.unwrap_or(self.entra.home_tenant());
        let issued = self
            .entra
            .issue(&identity.client_id, &identity.object_id, tenant, resource)
            .map_err(|_| Refusal::NoToken)?;
        Ok((identity, resource.to_owned(), issued))
    }

    fn chosen(
        &self,
        client_id: Option<&str>,
        object_id: Option<&str>,
        resource_id: Option<&str>,
    ) -> Result<&ManagedIdentity, Refusal> {
        let mut all = self.identities.iter();
        let same = |asked: &str, known: &str| asked.eq_ignore_ascii_case(known);
        let found = match (client_id, object_id, resource_id) {
            (None, None, None) => {
                let own = self.identities.iter().find(|identity| identity.resource_id.is_none());
                match (own, self.identities.as_slice()) {
                    (Some(own), _) => Some(own),
                    (None, [only]) => Some(only),
                    (None, []) => None,
                    (None, _) => return Err(Refusal::AmbiguousIdentity),
                }
            }
            (Some(asked), None, None) => all.find(|identity| same(asked, &identity.client_id)),
            (None, Some(asked), None) => all.find(|identity| same(asked, &identity.object_id)),
            (None, None, Some(asked)) => {
                all.find(|identity| identity.resource_id.as_ref().is_some_and(|id| same(asked, id.as_str())))
            }
            _ => return Err(Refusal::SeveralSelectors),
        };
        found.ok_or(Refusal::UnknownIdentity)
    }
}
