//! Converts objects of Cluster API between its versions `v1beta1` and `v1beta2`.
//!
//! The differences are a table of rules for each kind ([`rules`]); everything else is unchanged. Only references of
//! `v1beta1` contain the version of their target: it is looked up in a table of API groups.

mod rules;
mod service;

use serde_json::{Map, Value, json};

use crate::objects::{list, text};
use rules::{Rule, rules_of};
pub use service::conversion_router;

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

/// The version of a group in references of `v1beta1`.
fn version_of(group: &str) -> &'static str {
    match group {
        crate::names::CORE | crate::names::BOOTSTRAP | crate::names::CONTROL_PLANE => "v1beta2",
        _ => "v1beta1",
    }
}

/// Converts a reference.
fn reference(up: bool, reference: &Value, namespace: &Value) -> Value {
    if up {
        let group = text(&reference["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
        return json!({"apiGroup": group, "kind": reference["kind"], "name": reference["name"]});
    }
    let group = text(&reference["apiGroup"]);
    let mut old = json!({"apiVersion": format!("{group}/{}", version_of(group)), "kind": reference["kind"],
        "name": reference["name"]});
    if !namespace.is_null() {
        old["namespace"] = namespace.clone();
    }
    old
}

/// The seconds of a Go duration such as `1h2m3s`. Fractions are dropped.
fn duration_seconds(duration: &str) -> Option<u64> {
    let (mut all, mut number) = (0_f64, String::new());
    let mut letters = duration.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_ascii_digit() || letter == '.' {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            'h' => 3600.0,
            'm' if letters.peek() == Some(&'s') => {
                letters.next();
                0.001
            }
            'm' => 60.0,
            's' => 1.0,
            _ => return None,
        };
        all += number.parse::<f64>().ok()? * unit;
        number.clear();
    }
    if number.is_empty() {
        // Never negative: the parser accepts no sign.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        return Some(all as u64);
    }
    (number == "0").then_some(0)
}

/// A duration in Go's format.
fn go_duration(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// Converts failure domains: a map by name in `v1beta1`, a list in `v1beta2`.
fn failure_domains(up: bool, domains: &Value) -> Value {
    if up {
        let named = domains.as_object().into_iter().flatten();
        named
            .map(|(name, domain)| {
                let mut one = domain.as_object().cloned().unwrap_or_default();
                one.insert("name".to_owned(), name.as_str().into());
                one.entry("controlPlane").or_insert(Value::Bool(false));
                Value::Object(one)
            })
            .collect()
    } else {
        let all = list(domains).iter().map(|domain| {
            let mut one = domain.as_object().cloned().unwrap_or_default();
            one.remove("name");
            (text(&domain["name"]).to_owned(), Value::Object(one))
        });
        Value::Object(all.collect())
    }
}

/// Converts arguments: a map by name in `v1beta1`, a list in `v1beta2`.
fn arguments(up: bool, arguments: &Value) -> Value {
    if up {
        let named = arguments.as_object().into_iter().flatten();
        named.map(|(name, value)| json!({"name": name, "value": value})).collect()
    } else {
        let all = list(arguments).iter().map(|one| (text(&one["name"]).to_owned(), one["value"].clone()));
        Value::Object(all.collect())
    }
}

#[cfg(test)]
mod tests;
