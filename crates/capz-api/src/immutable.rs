//! Immutable members: a table for each kind, and one comparison.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::field_error::Field;

/// From when on a member is immutable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixed {
    /// Always: an absent value stays absent, too.
    Always,
    /// Once it is set.
    OnceSet,
    /// It may be removed, but not changed.
    OnlyCleared,
    /// It may be set and removed, but not replaced by another value.
    NotReplaced,
    /// It may be set and replaced, but not removed again.
    Kept,
    /// Once it is set, where `false` is a choice and not an absent value.
    OnceChosen,
}

/// A member, and from when on it is immutable.
pub type Rule = (&'static str, Fixed);

/// Compares members of two versions of `field`. Rules name members by their path with dots; an empty value (no text, no
/// entries, `false`, `null`) counts as absent, as for clients written in Go. Members of a refused member are not refused
/// again.
pub(crate) fn check(rules: &[Rule], old: &Value, new: &Value, field: &Field<'_>) {
    let mut refused: Vec<&str> = Vec::new();
    for (path, fixed) in rules {
        let is_below = |above: &&str| path.strip_prefix(*above).is_some_and(|rest| rest.starts_with('.'));
        if refused.iter().any(is_below) {
            continue;
        }
        let read = if *fixed == Fixed::OnceChosen { chosen } else { at };
        let (old, new) = (read(old, path), read(new, path));
        if old == new {
            continue;
        }
        let detail = match (old, new, fixed) {
            (None, _, Fixed::OnceSet | Fixed::NotReplaced | Fixed::Kept | Fixed::OnceChosen)
            | (Some(_), None, Fixed::OnlyCleared | Fixed::NotReplaced)
            | (Some(_), Some(_), Fixed::Kept) => continue,
            (Some(_), None, _) => "field is immutable, unable to set an empty value if it was already set",
            (None, _, _) => "field is immutable, unable to assign a value if it was already empty",
            (Some(_), Some(_), _) => "field is immutable",
        };
        field.child(path).invalid(new, detail);
        refused.push(path);
    }
}

/// The differences of a newer object from an older one, so that a refusal shows what to revert. Removed members are
/// `null`; lists are shown whole.
pub fn changed(old: &impl Serialize, new: &impl Serialize) -> Value {
    fn between(old: &Value, new: &Value) -> Option<Value> {
        if old == new {
            return None;
        }
        let (Value::Object(before), Value::Object(now)) = (old, new) else { return Some(new.clone()) };
        let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
        let differing = names.filter_map(|name| {
            let of = |members: &'_ Map<String, Value>| members.get(name).cloned().unwrap_or_default();
            between(&of(before), &of(now)).map(|value| (name.clone(), value))
        });
        Some(Value::Object(differing.collect()))
    }
    between(&json!(old), &json!(new)).unwrap_or_default()
}

/// The member at a path with dots, unless it is empty.
pub fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    chosen(object, path).filter(|value| !is_empty(value))
}

/// The member at a path with dots, unless it is `null`.
fn chosen<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let value = path.split('.').try_fold(object, |value, member| value.get(member))?;
    (!value.is_null()).then_some(value)
}

/// Whether Go's clients omit the value.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Fixed, changed, check};
    use crate::field_error::FieldErrors;

    #[test]
    fn only_what_differs_is_shown() {
        for (old, new, expected) in [
            (
                json!({ "a": 1, "b": { "c": 2, "d": 3 } }),
                json!({ "a": 1, "b": { "c": 4, "d": 3 } }),
                json!({ "b": { "c": 4 } }),
            ),
            (json!({ "a": 1 }), json!({ "b": 2 }), json!({ "a": null, "b": 2 })),
            (json!({ "a": [1, 2] }), json!({ "a": [1, 3] }), json!({ "a": [1, 3] })),
            (json!({ "a": 1 }), json!({ "a": 1 }), json!(null)),
        ] {
            assert_eq!(changed(&old, &new), expected);
        }
    }

    #[test]
    fn a_refused_member_is_refused_once() {
        let rules = [("x", Fixed::Kept), ("x.y", Fixed::Kept), ("xy", Fixed::Kept)];
        let old = json!({ "x": { "y": 1 }, "xy": 1 });
        let errors = FieldErrors::of(|object| check(&rules, &old, &json!({}), object));
        let paths: Vec<String> = errors.0.iter().map(|error| error.path.to_string()).collect();
        assert_eq!(paths, ["x", "xy"]);
    }

    #[test]
    fn a_member_stays_as_its_rule_says() {
        let (none, a, b) = (json!({}), json!({ "spec": { "x": "a" } }), json!({ "spec": { "x": "b" } }));
        let empty = json!({ "spec": { "x": "" } });
        let (no, yes) = (json!({ "spec": { "x": false } }), json!({ "spec": { "x": true } }));
        for (fixed, old, new, expected) in [
            (Fixed::Always, &a, &a, None),
            (Fixed::Always, &none, &empty, None),
            (Fixed::Always, &a, &b, Some("spec.x: Invalid value: \"b\": field is immutable")),
            (Fixed::Always, &a, &none, Some("unable to set an empty value")),
            (Fixed::Always, &none, &a, Some("unable to assign a value")),
            (Fixed::OnceSet, &none, &a, None),
            (Fixed::OnceSet, &a, &b, Some("field is immutable")),
            (Fixed::OnceSet, &a, &none, Some("unable to set an empty value")),
            (Fixed::NotReplaced, &none, &a, None),
            (Fixed::NotReplaced, &a, &none, None),
            (Fixed::NotReplaced, &a, &b, Some("field is immutable")),
            (Fixed::Kept, &none, &a, None),
            (Fixed::Kept, &a, &b, None),
            (Fixed::Kept, &a, &none, Some("unable to set an empty value")),
            (Fixed::Kept, &yes, &no, Some("unable to set an empty value")),
            (Fixed::OnceChosen, &none, &no, None),
            (Fixed::OnceChosen, &no, &no, None),
            (Fixed::OnceChosen, &no, &yes, Some("spec.x: Invalid value: true: field is immutable")),
            (Fixed::OnceChosen, &no, &none, Some("unable to set an empty value")),
            (Fixed::OnlyCleared, &a, &none, None),
            (Fixed::OnlyCleared, &none, &a, Some("unable to assign a value")),
        ] {
            let errors = FieldErrors::of(|object| check(&[("spec.x", fixed)], old, new, object));
            match expected {
                None => assert!(errors.is_empty(), "{fixed:?} {old} {new}: {}", errors.message()),
                Some(words) => {
                    assert!(errors.message().contains(words), "{fixed:?} {old} {new}: {}", errors.message())
                }
            }
        }
    }
}
