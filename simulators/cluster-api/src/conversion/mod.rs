//! Converts objects of Cluster API between its versions `v1beta1` and `v1beta2`.
//!
//! The differences are a table of rules for each kind ([`rules`]); everything else is unchanged. Only references of
//! `v1beta1` contain the version of their target: it is looked up in a table of API groups.

mod rules;
mod values;

use serde_json::{Map, Value, json};

use crate::objects::text;
use rules::{Rule, rules_of};

/// The versions, older first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1beta2"];

/// Converts an object to the requested version (`group/version`).
///
/// # Errors
/// The kind, or one of the versions, is not known.
pub fn convert(object: &Value, to: &str) -> Result<Value, String> {
    let from = text(&object["apiVersion"]);
    let mut converted = object.clone();
    if from == to {
        return Ok(converted);
    }
    let (group, wanted) = to.split_once('/').unwrap_or_default();
    let (of, had) = from.split_once('/').unwrap_or_default();
    if group != of || !VERSIONS.contains(&wanted) || !VERSIONS.contains(&had) {
        return Err(format!("{from} cannot be converted to {to}"));
    }
    let kind = text(&object["kind"]);
    let rules = rules_of(kind).ok_or_else(|| format!("{kind} is not known"))?;
    let up = wanted == "v1beta2";
    // All values are removed before any is inserted, because rules may exchange members.
    let taken: Vec<(Rule, Value)> = rules
        .into_iter()
        .map(|rule| {
            let value = take(&mut converted, rule.from(up));
            (rule, value)
        })
        .collect();
    for (rule, value) in taken {
        if let Some(value) = rule.apply(up, value, object) {
            put(&mut converted, rule.to(up), value);
        }
    }
    converted["apiVersion"] = to.into();
    Ok(converted)
}

/// Removes the value at a path, and parents that this leaves empty. `spec` and `status` stay, even if they are empty.
fn take(value: &mut Value, path: &str) -> Value {
    match path.split_once('.') {
        Some((top, rest)) => value.get_mut(top).map(|top| take_below(top, rest)).unwrap_or_default(),
        None => Value::Null,
    }
}

fn take_below(value: &mut Value, path: &str) -> Value {
    let Some(members) = value.as_object_mut() else { return Value::Null };
    let Some((first, rest)) = path.split_once('.') else { return members.remove(path).unwrap_or_default() };
    let Some(inner) = members.get_mut(first) else { return Value::Null };
    let taken = take_below(inner, rest);
    if !taken.is_null() && inner.as_object().is_some_and(Map::is_empty) {
        members.remove(first);
    }
    taken
}

/// Inserts a value at a path, and merges it with existing members.
fn put(value: &mut Value, path: &str, new: Value) {
    let place = path.split('.').fold(value, |value, member| {
        if !value.is_object() {
            *value = json!({});
        }
        &mut value[member]
    });
    match (place.as_object_mut(), new) {
        (Some(known), Value::Object(more)) => known.extend(more),
        (_, new) => *place = new,
    }
}

#[cfg(test)]
mod tests;
