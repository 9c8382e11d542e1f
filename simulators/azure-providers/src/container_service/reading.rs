//! Readers of members of stored objects, with defaults.

use azure_engine::document::Object;
use serde_json::Value;

/// Removes empty texts: the Azure CLI sends them for members that it does not choose.
pub(super) fn drop_empty(object: &mut Object) {
    object.retain(|_, value| value.as_str() != Some(""));
}

/// A text; an empty one where it is missing.
pub(super) fn word<'a>(object: &'a Object, member: &str) -> &'a str {
    object.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A number; 0 where it is missing.
pub(super) fn number(object: &Object, member: &str) -> i64 {
    object.get(member).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether something is switched on.
pub(super) fn flag(object: &Object, member: &str) -> bool {
    object.get(member) == Some(&Value::Bool(true))
}
