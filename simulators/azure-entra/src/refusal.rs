//! Refusals in the words of Entra.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, PRAGMA};
use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::directory::Entra;

/// The code of a refusal: all of them are Entra's ("Microsoft Entra authentication & authorization error codes").
struct Code {
    status: u16,
    /// OAuth's word.
    error: &'static str,
    /// The number behind `AADSTS`.
    number: u32,
}

impl Code {
    const fn azures(status: u16, error: &'static str, number: u32) -> Self {
        Self { status, error, number }
    }
}

/// Why a token is not issued. The numbers are Entra's `AADSTS` codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    UnknownTenant { tenant: String },
    UnknownApplication { client_id: String, tenant: String },
    UnknownInstance,
    MissingParameter { name: &'static str },
    MalformedClaims,
    UnsupportedGrant { grant: String },
    ScopeWithoutDefault { scope: String },
    UnknownResource { resource: String, tenant: String },
    MissingCredential,
    WrongSecret { client_id: String },
    UnsupportedAssertionType { offered: String },
    MalformedAssertion,
    UnknownAssertionKey { thumbprint: String, client_id: String },
    WrongAssertionSignature { client_id: String },
    AssertionNotInTime { now: Timestamp, expiry: Timestamp },
    WrongAssertionAudience { audience: String },
    UnknownIssuer { issuer: String },
    UnknownSubject { subject: String },
    WrongFederatedAudience { audience: String },
    Unavailable,
}

impl Refusal {
    fn code(&self) -> Code {
        match self {
            Self::UnknownTenant { .. } => Code::azures(400, "invalid_request", 90002),
            Self::UnknownApplication { .. } => Code::azures(400, "unauthorized_client", 700016),
            Self::UnknownInstance => Code::azures(400, "invalid_instance", 50049),
            Self::MissingParameter { .. } => Code::azures(400, "invalid_request", 900144),
            Self::MalformedClaims => Code::azures(400, "invalid_request", 50093),
            Self::UnsupportedGrant { .. } => Code::azures(400, "unsupported_grant_type", 70003),
            Self::ScopeWithoutDefault { .. } => Code::azures(400, "invalid_scope", 1002012),
            Self::UnknownResource { .. } => Code::azures(400, "invalid_resource", 500011),
            Self::MissingCredential => Code::azures(401, "invalid_client", 7000218),
            Self::WrongSecret { .. } => Code::azures(401, "invalid_client", 7000215),
            Self::UnsupportedAssertionType { .. } => Code::azures(400, "invalid_request", 50023),
            Self::MalformedAssertion => Code::azures(401, "invalid_client", 50027),
            Self::UnknownAssertionKey { .. } | Self::WrongAssertionSignature { .. } => {
                Code::azures(401, "invalid_client", 700027)
            }
            Self::AssertionNotInTime { .. } => Code::azures(401, "invalid_client", 700024),
            Self::WrongAssertionAudience { .. } => Code::azures(401, "invalid_client", 700023),
            Self::UnknownIssuer { .. } => Code::azures(401, "invalid_client", 700211),
            Self::UnknownSubject { .. } => Code::azures(401, "invalid_client", 700213),
            Self::WrongFederatedAudience { .. } => Code::azures(401, "invalid_client", 700212),
            Self::Unavailable => Code::azures(503, "temporarily_unavailable", 90033),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::UnknownTenant { tenant } => format!(
                "Tenant '{tenant}' not found. Check that the tenant ID and the cloud are the right ones."
            ),
            Self::UnknownApplication { client_id, tenant } => format!(
                "Application with identifier '{client_id}' was not found in the directory '{tenant}'. \
                 The request may have gone to the wrong tenant."
            ),
            Self::UnknownInstance => "Unknown or invalid instance.".to_owned(),
            Self::MissingParameter { name } => {
                format!("The request body must contain the following parameter: '{name}'.")
            }
            Self::MalformedClaims => "The claims parameter of the request is no JSON object.".to_owned(),
            Self::UnsupportedGrant { grant } => {
                format!("The app requested an unsupported grant type '{grant}'.")
            }
            Self::ScopeWithoutDefault { scope } => format!(
                "The provided value for scope {scope} is not valid. Client credential flows need a scope \
                 that ends in /.default after the resource identifier."
            ),
            Self::UnknownResource { resource, tenant } => format!(
                "The resource principal named {resource} was not found in the tenant named {tenant}."
            ),
            Self::MissingCredential => {
                "The request body must contain the following parameter: 'client_assertion' or 'client_secret'."
                    .to_owned()
            }
            Self::WrongSecret { client_id } => format!(
                "Invalid client secret provided. Ensure the secret being sent in the request is the client \
                 secret value, not the client secret ID, for a secret added to app '{client_id}'."
            ),
            Self::UnsupportedAssertionType { offered } => {
                format!("The client assertion type '{offered}' is not supported.")
            }
            Self::MalformedAssertion => "The JWT token is invalid or malformed.".to_owned(),
            Self::UnknownAssertionKey { thumbprint, client_id } => format!(
                "The certificate with identifier used to sign the client assertion is not registered on \
                 application '{client_id}'. Thumbprint of key used by client: '{thumbprint}'."
            ),
            Self::WrongAssertionSignature { client_id } => {
                format!("Client assertion failed signature validation on application '{client_id}'.")
            }
            Self::AssertionNotInTime { now, expiry } => format!(
                "Client assertion is not within its valid time range. Current time: {now}, expiry time of \
                 assertion {expiry}."
            ),
            Self::WrongAssertionAudience { audience } => format!(
                "Client assertion audience claim does not match the token endpoint: '{audience}'."
            ),
            Self::UnknownIssuer { issuer } => format!(
                "No matching federated identity record found for presented assertion issuer '{issuer}'."
            ),
            Self::UnknownSubject { subject } => format!(
                "No matching federated identity record found for presented assertion subject '{subject}'."
            ),
            Self::WrongFederatedAudience { audience } => format!(
                "No matching federated identity record found for presented assertion audience '{audience}'."
            ),
            Self::Unavailable => "A transient error has occurred. Try again.".to_owned(),
        }
    }
}

impl Entra {
    /// The answer to a refused request. Its description has line breaks, as Entra's long had and as parsers must cope
    /// with.
    pub(super) fn refuse(&self, refusal: &Refusal, request: &HeaderMap) -> Response {
        let Code { status, error, number } = refusal.code();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        let trace = self.next_id();
        let correlation = correlation(request).unwrap_or_else(|| self.next_id());
        let timestamp = self.now().strftime("%Y-%m-%d %H:%M:%SZ").to_string();
        let body = json!({
            "error": error,
            "error_description": format!(
                "AADSTS{number}: {}\r\nTrace ID: {trace}\r\nCorrelation ID: {correlation}\r\nTimestamp: {timestamp}",
                refusal.text()
            ),
            "error_codes": [number],
            "timestamp": timestamp,
            "trace_id": trace,
            "correlation_id": correlation,
            "error_uri": format!("https://login.microsoftonline.com/error?code={number}"),
        });
        let mut response = (status, Json(body)).into_response();
        not_to_be_stored(&mut response);
        response
    }
}

/// Marks an answer as not cacheable.
pub(super) fn not_to_be_stored(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
}

/// The id that the client gave the request.
pub(super) fn correlation(request: &HeaderMap) -> Option<Uuid> {
    Uuid::try_parse(request.get("client-request-id")?.to_str().ok()?).ok()
}
