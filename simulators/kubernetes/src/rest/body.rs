//! Request bodies.

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::json;
use super::query::Query;
use crate::patch::PatchType;
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::{DeleteOptions, Propagation};
use crate::wire::protobuf;

/// kube-apiserver's limit for bodies: 3 MiB.
const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

pub(super) async fn read(body: Body) -> Result<Bytes, ApiError> {
    to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| ApiError::too_large(MAX_BODY_BYTES))
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Media types of objects of built-in kinds. Custom ones have no form in protobuf.
const BUILTIN: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const CUSTOM: &str = "application/json, application/yaml";

/// Media types of patches of custom ones.
const CUSTOM_PATCHES: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// A parsed body, and its duplicate members: `duplicate field "spec.size"`.
pub(super) type Read = (Value, Vec<String>);

/// Parses an object of a kind, or of one of its subresources, as JSON, YAML or protobuf.
pub(super) fn object(headers: &HeaderMap, kind: &Kind, bytes: &[u8]) -> Result<Read, ApiError> {
    match media_type(headers).as_str() {
        "" | "*/*" | "application/json" => json(bytes),
        "application/yaml" => Ok((yaml(bytes)?, Vec::new())),
        protobuf::MEDIA_TYPE if !kind.is_custom() => Ok((from_protobuf(bytes)?, Vec::new())),
        _ => Err(ApiError::unsupported_media_type(if kind.is_custom() { CUSTOM } else { BUILTIN })),
    }
}

fn json(bytes: &[u8]) -> Result<Read, ApiError> {
    let (value, duplicates) = json::read(bytes).map_err(no_json)?;
    Ok((value, duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect()))
}

fn from_protobuf(bytes: &[u8]) -> Result<Value, ApiError> {
    protobuf::decode(bytes).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Parses a patch and its kind.
pub(super) fn patch(
    headers: &HeaderMap,
    query: &Query,
    custom: bool,
    bytes: &[u8],
) -> Result<(Read, PatchType), ApiError> {
    let media_type = media_type(headers);
    if query.force.is_some() && media_type != "application/apply-patch+yaml" {
        let message = "Forbidden: may not be specified for non-apply patch";
        return Err(ApiError::invalid_option("PatchOptions", "force", message));
    }
    Ok(match media_type.as_str() {
        "application/merge-patch+json" => (json(bytes)?, PatchType::Merge),
        "application/json-patch+json" => (json(bytes)?, PatchType::Json),
        // Schemas of custom resources have no merge keys; the API server refuses this type.
        "application/strategic-merge-patch+json" if !custom => (json(bytes)?, PatchType::Strategic),
        "application/apply-patch+yaml" => {
            let Some(field_manager) = query.field_manager.clone() else {
                let message = "Required value: is required for apply patch";
                return Err(ApiError::invalid_option("PatchOptions", "fieldManager", message));
            };
            (
                (yaml(bytes)?, Vec::new()),
                PatchType::Apply { field_manager, force: query.force.unwrap_or(false) },
            )
        }
        "application/strategic-merge-patch+json" => {
            return Err(ApiError::unsupported_media_type(CUSTOM_PATCHES));
        }
        _ => return Err(ApiError::unknown_media_type()),
    })
}

/// Delete options from the body, if there is one, and from the query.
pub(super) fn delete_options(
    headers: &HeaderMap,
    query: &Query,
    bytes: &[u8],
) -> Result<(DeleteOptions, bool), ApiError> {
    let body = match media_type(headers).as_str() {
        _ if bytes.is_empty() => Value::Null,
        protobuf::MEDIA_TYPE => from_protobuf(bytes)?,
        _ => yaml(bytes)?,
    };
    options_of_deletion(query, &body)
}

/// As [`delete_options`], from a parsed body.
pub(super) fn options_of_deletion(query: &Query, body: &Value) -> Result<(DeleteOptions, bool), ApiError> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let policy = text("/propagationPolicy").or_else(|| query.propagation_policy.clone());
    let orphan = body.get("orphanDependents").and_then(Value::as_bool).or(query.orphan_dependents);
    let propagation = match (policy.as_deref(), orphan) {
        (Some("Orphan"), _) | (None, Some(true)) => Propagation::Orphan,
        (Some("Foreground"), _) => Propagation::Foreground,
        (Some("Background"), _) | (None, Some(false)) => Propagation::Background,
        (None, None) => Propagation::Default,
        (Some(other), _) => {
            let message = format!(
                "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            return Err(ApiError::invalid_option("DeleteOptions", "propagationPolicy", &message));
        }
    };
    let dry_run = body.get("dryRun").and_then(Value::as_array).is_some_and(|stages| !stages.is_empty());
    let options = DeleteOptions {
        uid: text("/preconditions/uid"),
        resource_version: text("/preconditions/resourceVersion"),
        propagation,
        grace: body.get("gracePeriodSeconds").and_then(Value::as_u64).or(query.grace_period),
    };
    Ok((options, dry_run || query.dry_run))
}

fn no_json(error: serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("the body of the request is not valid JSON: {error}"))
}

fn yaml(bytes: &[u8]) -> Result<Value, ApiError> {
    // Most clients send JSON with YAML's media type, and JSON is faster to parse.
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| ApiError::bad_request("the body of the request is not valid YAML: it is not UTF-8"))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("the body of the request is not valid YAML: {error}")))
}
