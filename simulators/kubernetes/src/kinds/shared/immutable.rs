//! Members that an update must not change.

use serde_json::{Map, Value};

use crate::kinds::shared::label_selector::selector_text;
use crate::object::invalid::{Causes, Invalid};

/// An immutable member, and the message for a change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Immutable {
    /// `Invalid value: …: field is immutable`, of a text.
    Text(&'static str),
    /// The same, of a label selector.
    Selector(&'static str),
    /// The same, of any value that is shown as JSON.
    Json(&'static str),
    /// `Forbidden: …`.
    Forbidden(&'static str, &'static str),
}

/// Validates that an update changes none of these members.
pub(crate) fn check_immutable(members: &[Immutable], old: &Value, new: &Value, causes: &mut Causes) {
    use Immutable::{Forbidden, Json, Selector, Text};
    for rule in members {
        let (Text(path) | Selector(path) | Json(path) | Forbidden(path, _)) = rule;
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = new.pointer(&pointer);
        if old.pointer(&pointer) == value {
            continue;
        }
        let value = value.unwrap_or(&Value::Null);
        causes.push(match rule {
            Text(path) => Invalid::text(*path, value.as_str().unwrap_or_default(), "field is immutable"),
            Selector(path) => Invalid::value(*path, selector_text(value), "field is immutable"),
            Json(path) => Invalid::value(*path, value, "field is immutable"),
            Forbidden(path, why) => Invalid::forbidden(*path, why),
        });
    }
}

/// A specification without some members.
pub(crate) fn spec_without(object: &Value, members: &[&str]) -> Map<String, Value> {
    let mut spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    spec.retain(|name, _| !members.contains(&name.as_str()));
    spec
}
