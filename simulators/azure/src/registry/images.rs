//! What is in a registry, for those who may pull it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::token_service::{AccessClaims, PULL};
use super::{Registries, host};

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Manifests and blobs by repository; the digest is the name of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Images {
    repositories: BTreeMap<String, Repository>,
}

#[derive(Debug, Clone, Default)]
struct Repository {
    tags: BTreeMap<String, String>,
    manifests: BTreeMap<String, Manifest>,
    blobs: BTreeMap<String, Bytes>,
}

#[derive(Debug, Clone)]
struct Manifest {
    media_type: String,
    content: Bytes,
}

fn digest(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl Images {
    pub(super) fn push(&mut self, repository: &str, tag: &str, manifest: &Value, blobs: &[&[u8]]) {
        let repository = self.repositories.entry(repository.to_owned()).or_default();
        for blob in blobs {
            repository.blobs.insert(digest(blob), Bytes::copy_from_slice(blob));
        }
        let content = Bytes::from(manifest.to_string());
        let media_type =
            manifest.get("mediaType").and_then(Value::as_str).unwrap_or(MANIFEST_TYPE).to_owned();
        let name = digest(&content);
        repository.tags.insert(tag.to_owned(), name.clone());
        repository.manifests.insert(name, Manifest { media_type, content });
    }
}

/// `GET /v2/`: whether the caller is signed in.
pub(super) async fn base(State(registries): State<Registries>, headers: HeaderMap) -> Response {
    match registries.access(&headers) {
        Some(_) => (StatusCode::OK, Json(json!({}))).into_response(),
        None => challenge(&headers, None),
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
        return challenge(&headers, Some(repository));
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
    /// What the caller's access token is good for in this registry.
    fn access(&self, headers: &HeaderMap) -> Option<AccessClaims> {
        let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("Bearer") {
            return None;
        }
        self.access_claims(token, &host(headers))
    }
}

/// Sends a caller without a token, or with one that is not enough, to the token service.
fn challenge(headers: &HeaderMap, repository: Option<&str>) -> Response {
    let host = host(headers);
    let mut text = format!(r#"Bearer realm="https://{host}/oauth2/token",service="{host}""#);
    if let Some(repository) = repository {
        text.push_str(&format!(r#",scope="repository:{repository}:{PULL}""#));
    }
    let mut response =
        unauthorized("authentication required, visit https://aka.ms/acr/authorization for more information.");
    if let Ok(text) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(WWW_AUTHENTICATE, text);
    }
    response
}

/// The refusal of somebody who may not.
pub(super) fn unauthorized(message: &str) -> Response {
    errors(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
}

fn unknown(code: &str) -> Response {
    errors(StatusCode::NOT_FOUND, code, "not found in this registry")
}

/// An error as registries write it.
pub(super) fn errors(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "errors": [{ "code": code, "message": message }] }))).into_response()
}
