//! Values that have another form in each version.

use serde_json::{Value, json};

use crate::names::{BOOTSTRAP, CONTROL_PLANE, CORE};
use crate::objects::{list, text};

/// The version of a group in references of `v1beta1`.
fn version_of(group: &str) -> &'static str {
    match group {
        CORE | BOOTSTRAP | CONTROL_PLANE => "v1beta2",
        _ => "v1beta1",
    }
}

/// Converts a reference.
pub(super) fn reference(up: bool, reference: &Value, namespace: &Value) -> Value {
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
pub(super) fn duration_seconds(duration: &str) -> Option<u64> {
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
pub(super) fn go_duration(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// Converts failure domains: a map by name in `v1beta1`, a list in `v1beta2`.
pub(super) fn failure_domains(up: bool, domains: &Value) -> Value {
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
pub(super) fn arguments(up: bool, arguments: &Value) -> Value {
    if up {
        let named = arguments.as_object().into_iter().flatten();
        named.map(|(name, value)| json!({"name": name, "value": value})).collect()
    } else {
        let all = list(arguments).iter().map(|one| (text(&one["name"]).to_owned(), one["value"].clone()));
        Value::Object(all.collect())
    }
}
