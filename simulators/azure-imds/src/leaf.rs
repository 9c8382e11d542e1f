//! Paths into a metadata document: whole parts as JSON, leaves and listings as text.

use serde_json::Value;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Text,
}

/// The result of looking up a path.
#[derive(Debug, PartialEq)]
pub(super) enum LookUp {
    Json(Value),
    Text(String),
    /// There is nothing at the path.
    Nothing,
    /// A single value, and the caller did not ask for text.
    NeedsText,
}

/// Looks up a path. Names compare without case.
pub(super) fn look_up(document: &Value, path: &[&str], format: Format) -> LookUp {
    let found = path.iter().try_fold(document, |value, step| match value {
        Value::Object(members) => {
            members.iter().find(|(name, _)| name.eq_ignore_ascii_case(step)).map(|(_, member)| member)
        }
        Value::Array(items) => step.parse().ok().and_then(|at: usize| items.get(at)),
        _ => None,
    });
    match (found, format) {
        (None, _) => LookUp::Nothing,
        (Some(part @ (Value::Object(_) | Value::Array(_))), Format::Json) => LookUp::Json(part.clone()),
        (Some(Value::Object(members)), Format::Text) => LookUp::Text(
            members.iter().map(|(name, member)| entry(name, member)).collect::<Vec<_>>().join("\n"),
        ),
        (Some(Value::Array(items)), Format::Text) => {
            let entries = items.iter().enumerate().map(|(at, item)| entry(&at.to_string(), item));
            LookUp::Text(entries.collect::<Vec<_>>().join("\n"))
        }
        (Some(_), Format::Json) => LookUp::NeedsText,
        (Some(Value::String(text)), Format::Text) => LookUp::Text(text.clone()),
        (Some(other), Format::Text) => LookUp::Text(other.to_string()),
    }
}

/// A line of a listing: what has something below it ends with a slash.
fn entry(name: &str, value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => format!("{name}/"),
        _ => name.to_owned(),
    }
}
