//! Pushing an image: its blobs, each by an upload, and then the manifest that names them.

use std::collections::HashMap;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use super::answers::{errors, unknown};
use super::image_store::{MANIFEST_TYPE, Manifest, digest};
use super::images::challenge;
use super::registries::{PULL, PUSH, Registries, host};

/// The query of an upload's end.
type Parameters = Query<HashMap<String, String>>;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// `POST /v2/{repository}/blobs/uploads/`: where a blob goes. One that is offered from another repository is uploaded, too, as
/// the specification allows.
pub(super) async fn begin(
    State(registries): State<Registries>,
    Path(below): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(repository) = below.trim_end_matches('/').strip_suffix("/blobs/uploads") else {
        return unknown("UNSUPPORTED");
    };
    let server = match registries.pusher(&headers, repository) {
        Ok(server) => server,
        Err(refusal) => return *refusal,
    };
    let id = registries.shared.uploads.lock().begin(&server, repository);
    taken(repository, &id, 0)
}

/// `PATCH /v2/{repository}/blobs/uploads/{id}`: a part of a blob, after the parts that have come.
pub(super) async fn append(
    State(registries): State<Registries>,
    Path(below): Path<String>,
    headers: HeaderMap,
    part: Bytes,
) -> Response {
    let Some((repository, id)) = below.split_once("/blobs/uploads/") else { return unknown("UNSUPPORTED") };
    let server = match registries.pusher(&headers, repository) {
        Ok(server) => server,
        Err(refusal) => return *refusal,
    };
    match registries.shared.uploads.lock().append(&server, repository, id, &part) {
        Some(length) => taken(repository, id, length),
        None => unknown("BLOB_UPLOAD_UNKNOWN"),
    }
}

/// `PUT /v2/{repository}/blobs/uploads/{id}?digest=`: the last part of a blob, or all of it, and
/// `PUT /v2/{repository}/manifests/{tag or digest}`.
pub(super) async fn finish(
    State(registries): State<Registries>,
    Path(below): Path<String>,
    Query(parameters): Parameters,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (repository, upload, reference) =
        match (below.split_once("/blobs/uploads/"), below.rsplit_once("/manifests/")) {
            (Some((repository, upload)), _) => (repository, Some(upload), ""),
            (None, Some((repository, reference))) => (repository, None, reference),
            (None, None) => return unknown("UNSUPPORTED"),
        };
    let server = match registries.pusher(&headers, repository) {
        Ok(server) => server,
        Err(refusal) => return *refusal,
    };
    match upload {
        Some(upload) => {
            let claimed = parameters.get("digest").map(String::as_str).unwrap_or_default();
            registries.finish_blob(&server, repository, upload, claimed, &body)
        }
        None => {
            let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            registries.take_manifest(&server, repository, reference, media_type, body)
        }
    }
}

impl Registries {
    /// The login server, if the caller may push to a repository of it; else the answer.
    fn pusher(&self, headers: &HeaderMap, repository: &str) -> Result<String, Box<Response>> {
        let may_push = self.access(headers).is_some_and(|claims| claims.allows(repository, PUSH));
        match self.of(headers) {
            _ if !may_push => Err(Box::new(challenge(headers, Some(repository), &[PULL, PUSH]))),
            Some(_) => Ok(host(headers)),
            None => Err(Box::new(unknown("NAME_UNKNOWN"))),
        }
    }

    fn finish_blob(
        &self,
        server: &str,
        repository: &str,
        upload: &str,
        claimed: &str,
        rest: &[u8],
    ) -> Response {
        let content = {
            let mut uploads = self.shared.uploads.lock();
            if uploads.append(server, repository, upload, rest).is_none() {
                return unknown("BLOB_UPLOAD_UNKNOWN");
            }
            uploads.end(upload)
        };
        let name = digest(&content);
        if name != claimed {
            let text = format!("what came is {name}, and not {claimed:?}");
            return errors(StatusCode::BAD_REQUEST, "DIGEST_INVALID", &text);
        }
        self.change_images(server, |images| {
            let repository = images.repositories.entry(repository.to_owned()).or_default();
            repository.blobs.insert(name.clone(), Bytes::from(content));
        });
        created(format!("/v2/{repository}/blobs/{name}"), &name)
    }

    fn take_manifest(
        &self,
        server: &str,
        repository: &str,
        reference: &str,
        media_type: Option<&str>,
        content: Bytes,
    ) -> Response {
        let invalid = |code, text: &str| errors(StatusCode::BAD_REQUEST, code, text);
        let Ok(document) = serde_json::from_slice::<Value>(&content) else {
            return invalid("MANIFEST_INVALID", "a manifest is JSON");
        };
        let name = digest(&content);
        let is_digest = reference.contains(':');
        if is_digest && reference != name {
            return invalid("DIGEST_INVALID", "the manifest has another digest than its name");
        }
        let media_type = media_type.or_else(|| document["mediaType"].as_str()).unwrap_or(MANIFEST_TYPE);
        let manifest = Manifest { media_type: media_type.to_owned(), content };
        let missing = self.change_images(server, |images| {
            let held = images.repositories.entry(repository.to_owned()).or_default();
            let layers = document["layers"].as_array().into_iter().flatten();
            let mut named = layers.chain(document.get("config")).filter_map(|one| one["digest"].as_str());
            if let Some(missing) = named.find(|blob| !held.blobs.contains_key(*blob)) {
                return Some(missing.to_owned());
            }
            held.manifests.insert(name.clone(), manifest);
            if !is_digest {
                held.tags.insert(reference.to_owned(), name.clone());
            }
            None
        });
        match missing {
            Some(blob) => invalid("MANIFEST_BLOB_UNKNOWN", &format!("{blob} was not pushed")),
            None => created(format!("/v2/{repository}/manifests/{name}"), &name),
        }
    }
}

/// An upload goes on; so many bytes have come.
fn taken(repository: &str, id: &str, length: usize) -> Response {
    let range = format!("0-{}", length.saturating_sub(1));
    let location = format!("/v2/{repository}/blobs/uploads/{id}");
    answer(StatusCode::ACCEPTED, [(LOCATION, location), (RANGE, range)])
}

fn created(location: String, name: &str) -> Response {
    answer(StatusCode::CREATED, [(LOCATION, location), (DIGEST, name.to_owned())])
}

fn answer(status: StatusCode, headers: [(HeaderName, String); 2]) -> Response {
    let mut response = status.into_response();
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
