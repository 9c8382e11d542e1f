//! Stored objects, and reading their metadata.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::admission::custom;
use crate::conversion;
use crate::registry::Kind;

/// One version of one object, immutable and shared: lists, watches and the log hold the same one.
///
/// Dereferences to its JSON value.
#[derive(Debug)]
pub struct Object {
    value: Value,
    version: u64,
    json: OnceLock<Bytes>,
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Object {
    pub(crate) fn new(value: Value, version: u64) -> Self {
        Self { value, version, json: OnceLock::new() }
    }

    /// The object as JSON value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// `metadata.resourceVersion` as the number that the log is ordered by.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        metadata(&self.value, "name")
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        metadata(&self.value, "namespace")
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        metadata(&self.value, "uid")
    }

    /// Whether deletion was asked for and finalizers hold it back.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        is_terminating(&self.value)
    }

    /// The serialised form, made once and shared by every answer that carries this version.
    pub(crate) fn json(&self) -> Bytes {
        self.json.get_or_init(|| to_bytes(&self.value)).clone()
    }
}

/// Serialises a JSON value; values of `serde_json` cannot fail to.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// A text member of `metadata`, empty when absent.
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

/// The list at a path of members, empty when absent.
pub(crate) fn list_at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    value_at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The members of `metadata`, made when absent. `None` when the object or its metadata is no JSON object.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.as_object_mut()?.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
}

/// Sets a member of `metadata`, or removes it when the value is null.
pub(crate) fn set_metadata(object: &mut Value, member: &str, value: Value) {
    let Some(metadata) = metadata_mut(object) else { return };
    if value.is_null() {
        metadata.remove(member);
    } else {
        metadata.insert(member.to_owned(), value);
    }
}

/// A copy of a member of `metadata`, null when absent.
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

/// Sets the finalizers of an object; none removes the member.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let value = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    set_metadata(object, "finalizers", value);
}

/// Whether `metadata.deletionTimestamp` is set.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !metadata(object, "deletionTimestamp").is_empty()
}

/// Uids of all owners.
pub(crate) fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    list_at(object, &["metadata", "ownerReferences"]).iter().filter_map(|owner| string_at(owner, &["uid"]))
}

/// The object as `kind` serves it. The same object where its stored form is that already.
pub(crate) fn serve(kind: &Kind, object: &Arc<Object>) -> Arc<Object> {
    let same = string_at(object, &["apiVersion"]).is_some_and(|text| kind.has_api_version(text));
    if same && !kind.revised {
        return Arc::clone(object);
    }
    let mut value = object.value.clone();
    conversion::from_stored(kind, &mut value);
    set_api_version(&mut value, &kind.api_version());
    if kind.custom {
        custom::settle(kind.tree(), &mut value);
    }
    if same && value == object.value {
        return Arc::clone(object);
    }
    Arc::new(Object::new(value, object.version))
}

/// Turns an object as a client wrote it into the form that is stored.
pub(crate) fn to_stored(kind: &Kind, value: &mut Value) {
    if let Some(api_version) = conversion::to_stored(kind, value) {
        set_api_version(value, api_version);
    }
    if let Some((api_version, tree)) = &kind.stored_as
        && !kind.has_api_version(api_version)
    {
        set_api_version(value, api_version);
        if let Some(tree) = tree {
            custom::settle(tree, value);
        }
    }
}

/// An object of one version in the form of another one of its kind.
pub(crate) fn reshape(from: &Kind, to: &Kind, value: &Value) -> Value {
    let mut value = value.clone();
    to_stored(from, &mut value);
    conversion::from_stored(to, &mut value);
    set_api_version(&mut value, &to.api_version());
    if to.custom {
        custom::settle(to.tree(), &mut value);
    }
    value
}

fn set_api_version(value: &mut Value, api_version: &str) {
    if let Some(members) = value.as_object_mut() {
        members.insert("apiVersion".to_owned(), Value::from(api_version));
    }
}
