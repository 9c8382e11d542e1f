//! Pulls of images from a registry.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;

use super::answers::{unauthorized, unknown};
use super::registries::{PULL, Registries, host};
use super::token_service::AccessClaims;

/// `GET /v2/`: whether the caller is signed in.
pub(super) async fn base(State(registries): State<Registries>, headers: HeaderMap) -> Response {
    match registries.access(&headers) {
        Some(_) => (StatusCode::OK, Json(json!({}))).into_response(),
        None => challenge(&headers, None, &[]),
    }
}

/// `GET /v2/{repository}/manifests/{tag or digest}` and `GET /v2/{repository}/blobs/{digest}`.
pub(super) async fn pull(
    State(registries): State<Registries>,
    Path(below): Path<String>,
    headers: HeaderMap,
) -> Response {
    let parts: Vec<&str> = below.rsplitn(3, '/').collect();
    let [reference, collection, repository] = parts[..] else { return unknown("NAME_UNKNOWN") };
    let may_pull = registries.access(&headers).is_some_and(|claims| claims.allows(repository, PULL));
    if !may_pull {
        return challenge(&headers, Some(repository), &[PULL]);
    }
    let Some(registry) = registries.of(&headers) else { return unknown("NAME_UNKNOWN") };
    let Some(held) = registry.images.repositories.get(repository) else { return unknown("NAME_UNKNOWN") };
    let (name, media_type, content) = match collection {
        "manifests" => {
            let name = held.tags.get(reference).map_or(reference, String::as_str);
            let Some(manifest) = held.manifests.get(name) else { return unknown("MANIFEST_UNKNOWN") };
            (name, manifest.media_type.as_str(), manifest.content.clone())
        }
        "blobs" => match held.blobs.get(reference) {
            Some(blob) => (reference, "application/octet-stream", blob.clone()),
            None => return unknown("BLOB_UNKNOWN"),
        },
        _ => return unknown("UNSUPPORTED"),
    };
    let mut response = content.into_response();
    for (header, value) in
        [(CONTENT_TYPE, media_type), (http::HeaderName::from_static("docker-content-digest"), name)]
    {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(header, value);
        }
    }
    response
}

impl Registries {
    /// The claims of the caller's access token for this registry.
    pub(super) fn access(&self, headers: &HeaderMap) -> Option<AccessClaims> {
        let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("Bearer") {
            return None;
        }
        self.access_claims(token, &host(headers))
    }
}

/// Sends a caller without a token, or with one that is not enough, to the token service.
pub(super) fn challenge(headers: &HeaderMap, repository: Option<&str>, actions: &[&str]) -> Response {
    let host = host(headers);
    let mut text = format!(r#"Bearer realm="https://{host}/oauth2/token",service="{host}""#);
    if let Some(repository) = repository {
        text.push_str(&format!(r#",scope="repository:{repository}:{}""#, actions.join(",")));
    }
    let mut response =
        unauthorized("authentication required, visit https://aka.ms/acr/authorization for more information.");
    if let Ok(text) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(WWW_AUTHENTICATE, text);
    }
    response
}
