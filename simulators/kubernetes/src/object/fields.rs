//! Members of objects by their path, and those of their metadata.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Serializes a JSON value, which cannot fail.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// A text member of `metadata`; empty if it is missing.
pub(crate) fn metadata<'a>(object: &'a Value, member: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(member))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The value at a path of members.
pub(crate) fn value_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, member| value.get(member))
}

/// The text at a path of members.
pub(crate) fn string_at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    value_at(object, path).and_then(Value::as_str)
}

/// The list at a path of members; empty if it is missing.
pub(crate) fn list_at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    value_at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The members of `metadata`, created if missing. `None` if the object or its metadata is not a JSON object.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.as_object_mut()?.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
}

/// Sets a member of `metadata`, or removes it if the value is null.
pub(crate) fn set_metadata(object: &mut Value, member: &str, value: Value) {
    let Some(metadata) = metadata_mut(object) else { return };
    if value.is_null() {
        metadata.remove(member);
    } else {
        metadata.insert(member.to_owned(), value);
    }
}

/// A copy of a member of `metadata`; null if it is missing.
pub(crate) fn metadata_value(object: &Value, member: &str) -> Value {
    object.get("metadata").and_then(|metadata| metadata.get(member)).cloned().unwrap_or(Value::Null)
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    list_at(object, &["metadata", "finalizers"])
        .iter()
        .filter_map(|f| f.as_str().map(str::to_owned))
        .collect()
}

/// Sets the finalizers of an object; an empty list removes the member.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    set_metadata(object, "finalizers", value);
}

/// Whether `metadata.deletionTimestamp` is set.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !metadata(object, "deletionTimestamp").is_empty()
}

/// The UIDs of all owners.
pub(crate) fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    list_at(object, &["metadata", "ownerReferences"]).iter().filter_map(|owner| string_at(owner, &["uid"]))
}

/// Sets the `apiVersion` of an object.
pub(crate) fn set_api_version(value: &mut Value, api_version: &str) {
    if let Some(members) = value.as_object_mut() {
        members.insert("apiVersion".to_owned(), Value::from(api_version));
    }
}

/// Times in metadata have whole seconds.
pub(crate) fn rfc3339_seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
