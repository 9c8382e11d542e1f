//! Members of objects, with words for what is wrong with them.

use serde_json::{Map, Value};

use crate::error::Refusal;

/// The words for a value that may be secret: its type alone.
pub(crate) fn word_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A member that must be a text.
pub(crate) fn text_of(value: &Value, path: &str) -> Result<String, Refusal> {
    value.as_str().map(str::to_owned).ok_or_else(|| Refusal::value(path, word_of(value), "write a text"))
}

/// A member that must be an object.
pub(crate) fn object_of<'v>(value: &'v Value, path: &str) -> Result<&'v Map<String, Value>, Refusal> {
    value.as_object().ok_or_else(|| Refusal::value(path, word_of(value), "write an object"))
}

/// A member that is absent, or a text that is not empty.
pub(crate) fn optional_text(
    of: &Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<String>, Refusal> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => Ok(Some(text_of(value, &format!("{path}.{name}"))?).filter(|text| !text.is_empty())),
    }
}

/// `{name, key}`, exactly.
pub(crate) fn name_and_key(value: &Value, path: &str, holder: &str) -> Result<(String, String), Refusal> {
    let remedy = format!("write {{name, key}} of a {holder} of the same namespace");
    let members = value.as_object().ok_or_else(|| Refusal::value(path, word_of(value), remedy.clone()))?;
    let name = optional_text(members, "name", path)?;
    let key = optional_text(members, "key", path)?;
    let others = members.keys().any(|name| name != "name" && name != "key");
    match (name, key, others) {
        (Some(name), Some(key), false) => Ok((name, key)),
        (None, _, false) => Err(Refusal::missing(&format!("{path}.name"), remedy)),
        (_, None, false) => Err(Refusal::missing(&format!("{path}.key"), remedy)),
        _ => Err(Refusal::value(path, "an object with other members", remedy)),
    }
}
