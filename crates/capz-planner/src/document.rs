//! Documents composed of members that may be absent.

use serde_json::Value;

/// The document without members that are null, at every depth: Azure interprets null as a value.
pub(crate) fn without_nulls(mut document: Value) -> Value {
    strip(&mut document);
    document
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
