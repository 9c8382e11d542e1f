//! Immutable members: a table for each kind, and one comparison.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::field_error::{FieldErrors, Path};

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
}

/// A member, and from when on it is immutable.
pub type Rule = (&'static str, Fixed);

/// Compares members of two objects. Rules name members by their path with dots; an empty value (no text, no entries,
/// `false`, `null`) counts as absent, as for clients written in Go.
pub fn check(rules: &[Rule], old: &Value, new: &Value, errors: &mut FieldErrors) {
    for (path, fixed) in rules {
        check_member(&Path::new(path), *fixed, at(old, path), at(new, path), errors);
    }
}

/// Compares one member.
pub fn check_member(
    path: &Path,
    fixed: Fixed,
    old: Option<&Value>,
    new: Option<&Value>,
    errors: &mut FieldErrors,
) {
    if old == new {
        return;
    }
    let shown = new.cloned().unwrap_or_default();
    match (old, new, fixed) {
        (None, None, _)
        | (None, _, Fixed::OnceSet | Fixed::NotReplaced)
        | (Some(_), None, Fixed::OnlyCleared | Fixed::NotReplaced) => {}
        (Some(_), None, _) => errors.invalid(
            path,
            shown,
            "field is immutable, unable to set an empty value if it was already set",
        ),
        (None, Some(_), _) => errors.invalid(
            path,
            shown,
            "field is immutable, unable to assign a value if it was already empty",
        ),
        (Some(_), Some(_), _) => errors.invalid(path, shown, "field is immutable"),
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
    let value = path.split('.').try_fold(object, |value, member| value.get(member))?;
    (!is_empty(value)).then_some(value)
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
    fn a_member_stays_as_its_rule_says() {
        let (none, a, b) = (json!({}), json!({ "spec": { "x": "a" } }), json!({ "spec": { "x": "b" } }));
        let empty = json!({ "spec": { "x": "" } });
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
            (Fixed::OnlyCleared, &a, &none, None),
            (Fixed::OnlyCleared, &none, &a, Some("unable to assign a value")),
        ] {
            let mut errors = FieldErrors::default();
            check(&[("spec.x", fixed)], old, new, &mut errors);
            match expected {
                None => assert!(errors.is_empty(), "{fixed:?} {old} {new}: {}", errors.message()),
                Some(words) => {
                    assert!(errors.message().contains(words), "{fixed:?} {old} {new}: {}", errors.message())
                }
            }
        }
    }
}
