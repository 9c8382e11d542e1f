//! Go's notation of JSON values, which the API server's messages contain.

use serde_json::Value;

use super::fields::string_at;

/// The name of the Go type that holds a JSON value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it: `map[a:1 b:[x y]]`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// The type of an object: `apps/v1, Kind=Deployment`; the core group is empty.
pub(crate) fn group_version_kind(object: &Value) -> String {
    let text = |member: &str| string_at(object, &[member]).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}
