//! Rules for `metadata`, `apiVersion` and `kind` of every object, and times that the server sets.

use serde_json::{Value, json};

use crate::object::{list_at, metadata, set_metadata, string_at, value_at};
use crate::registry::Kind;
use crate::status::ApiError;

/// Checks `apiVersion` and `kind` against the path; sets them if missing.
pub(crate) fn settle_type(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    let api_version = kind.api_version();
    let Some(members) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the body of the request must be a JSON object"));
    };
    for (member, expected) in [("apiVersion", &api_version), ("kind", &kind.kind)] {
        let given = members.get(member).and_then(Value::as_str).unwrap_or_default();
        if given.is_empty() {
            members.insert(member.to_owned(), Value::from(expected.as_str()));
        } else if given != expected {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {member} {given:?} does not match the \
                 expected {member} ({expected})",
                kind.kind
            )));
        }
    }
    if !members.entry("metadata").or_insert_with(|| json!({})).is_object() {
        return Err(ApiError::bad_request("metadata must be a JSON object"));
    }
    Ok(())
}

/// Checks `metadata.namespace` against the path; sets it if missing.
pub(crate) fn settle_namespace(kind: &Kind, object: &mut Value, namespace: &str) -> Result<(), ApiError> {
    let given = metadata(object, "namespace");
    if kind.namespaced {
        if given.is_empty() {
            set_metadata(object, "namespace", Value::from(namespace));
        } else if given != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    } else {
        set_metadata(object, "namespace", Value::Null);
    }
    Ok(())
}

/// Validates the structure of the metadata that admission relies on, and owner references.
pub(crate) fn validate(kind: &Kind, object: &Value) -> Result<(), ApiError> {
    for member in ["labels", "annotations"] {
        let Some(map) = value_at(object, &["metadata", member]) else { continue };
        let sound = map.is_null() || map.as_object().is_some_and(|map| map.values().all(Value::is_string));
        if !sound {
            return Err(ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: metadata.{member} must map text to text",
                kind.kind, kind.version, kind.kind
            )));
        }
    }
    for owner in list_at(object, &["metadata", "ownerReferences"]) {
        for member in ["apiVersion", "kind", "name", "uid"] {
            if string_at(owner, &[member]).unwrap_or_default().is_empty() {
                let field = format!("metadata.ownerReferences.{member}");
                let message = format!("Invalid value: \"\": {member} must not be empty");
                return Err(ApiError::invalid(kind, metadata(object, "name"), &field, &message));
            }
        }
    }
    Ok(())
}

/// Removes empty members of metadata, as the API server's own encoding does.
pub(crate) fn drop_empty(object: &mut Value) {
    let Some(members) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for member in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"] {
        let empty = match members.get(member) {
            Some(Value::Null) => true,
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => false,
        };
        if empty {
            members.remove(member);
        }
    }
}
