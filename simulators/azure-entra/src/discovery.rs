//! Discovery: authorities, endpoints and keys.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::Extensions;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Uri, header};
use serde_json::{Value, json};

use super::directory::Entra;
use super::refusal::Refusal;
use crate::scheme::Scheme;

/// Hosts of the clouds' authorities, each an alias of the simulated one when a proxy leads to it.
const CLOUD_AUTHORITIES: [&str; 5] = [
    "login.microsoftonline.com",
    "login.windows.net",
    "login.microsoft.com",
    "login.partner.microsoftonline.cn",
    "login.microsoftonline.us",
];
/// Words in place of a tenant that stand for any tenant.
const ANY_TENANT: [&str; 3] = ["common", "organizations", "consumers"];

/// `GET /common/discovery/instance`: whether an authority is to be trusted.
pub(super) async fn instance(
    State(entra): State<Entra>,
    RawQuery(query): RawQuery,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let endpoint = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "authorization_endpoint")
        .map(|(_, value)| value.into_owned());
    let Some(endpoint) = endpoint else {
        return entra.refuse(&Refusal::MissingParameter { name: "authorization_endpoint" }, &headers);
    };
    let Some((host, tenant)) = known_authority(&endpoint, host_of(&headers, &uri)) else {
        return entra.refuse(&Refusal::UnknownInstance, &headers);
    };
    Json(json!({
        "tenant_discovery_endpoint": format!("https://{host}/{tenant}/v2.0/.well-known/openid-configuration"),
        "api-version": "1.1",
        "metadata": [{ "preferred_network": host, "preferred_cache": host, "aliases": [host] }],
    }))
    .into_response()
}

/// Host and tenant of an authorization endpoint, if the host is the simulator's or a cloud's.
fn known_authority(endpoint: &str, asked: Option<&str>) -> Option<(String, String)> {
    let endpoint: Uri = endpoint.parse().ok()?;
    let authority = endpoint.authority()?;
    let bare = authority.host();
    // A request through a proxy names the proxy's target as host; the simulator's own listeners are recognised only by
    // being on this machine.
    let is_local = bare == "localhost"
        || bare
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    let is = |name: &str| name.eq_ignore_ascii_case(authority.as_str());
    let known = asked.is_some_and(is) || is_local || CLOUD_AUTHORITIES.iter().any(|cloud| is(cloud));
    let tenant = endpoint.path().split('/').nth(1).filter(|tenant| !tenant.is_empty())?;
    known.then(|| (authority.to_string(), tenant.to_owned()))
}

/// `GET /{tenant}/v2.0/.well-known/openid-configuration`.
pub(super) async fn openid_v2(
    State(entra): State<Entra>,
    Path(tenant): Path<String>,
    headers: HeaderMap,
    uri: Uri,
    extensions: Extensions,
) -> Response {
    openid(&entra, &tenant, &headers, &base(&headers, &uri, &extensions), "/v2.0")
}

/// `GET /{tenant}/.well-known/openid-configuration`, which is also where ADFS has it.
pub(super) async fn openid_v1(
    State(entra): State<Entra>,
    Path(tenant): Path<String>,
    headers: HeaderMap,
    uri: Uri,
    extensions: Extensions,
) -> Response {
    openid(&entra, &tenant, &headers, &base(&headers, &uri, &extensions), "")
}

fn openid(entra: &Entra, tenant: &str, headers: &HeaderMap, base: &str, version: &str) -> Response {
    // Azure leaves a placeholder in the issuer where no tenant is named.
    let issuer_tenant = if ANY_TENANT.contains(&tenant) {
        "{tenantid}".to_owned()
    } else if tenant.eq_ignore_ascii_case("adfs") {
        tenant.to_owned()
    } else if let Some(id) = entra.tenant(tenant) {
        id
    } else {
        return entra.refuse(&Refusal::UnknownTenant { tenant: tenant.to_owned() }, headers);
    };
    Json(json!({
        "token_endpoint": format!("{base}/{tenant}/oauth2{version}/token"),
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        "jwks_uri": format!("{base}/{tenant}/discovery{version}/keys"),
        "response_modes_supported": ["query", "fragment", "form_post"],
        "response_types_supported": ["code", "id_token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
        "issuer": format!("{base}/{issuer_tenant}{version}"),
        "authorization_endpoint": format!("{base}/{tenant}/oauth2{version}/authorize"),
        "claims_supported": ["sub", "iss", "aud", "exp", "iat", "tid", "oid", "appid", "ver"],
    }))
    .into_response()
}

/// `GET /{tenant}/discovery/v2.0/keys`: the keys that verify access tokens.
pub(super) async fn keys(State(entra): State<Entra>) -> Json<Value> {
    Json(json!({ "keys": [entra.directory.key.jwk()] }))
}

/// The host that a request names: by a header, or with HTTP/2 by its URI.
fn host_of<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    named.or_else(|| uri.authority().map(http::uri::Authority::as_str))
}

/// Scheme and host by which the caller reached the simulator, so that the documents lead back the same way.
fn base(headers: &HeaderMap, uri: &Uri, extensions: &Extensions) -> String {
    let host = host_of(headers, uri).unwrap_or("login.microsoftonline.com");
    let scheme = extensions.get::<Scheme>().copied().unwrap_or(Scheme::Https);
    format!("{}://{host}", scheme.as_str())
}
