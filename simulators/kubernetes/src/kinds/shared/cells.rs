//! The values of cells that several kinds show.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::object::pointer::{list_at, text_at};

pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

/// A text, or another one if it is empty.
pub(crate) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// The total number of members of the maps at the pointers.
pub(crate) fn count_members(object: &Value, pointers: &[&str]) -> usize {
    pointers.iter().filter_map(|at| object.pointer(at)?.as_object()).map(serde_json::Map::len).sum()
}

/// The time since `since`, in its two most significant units: `90s`, `2m5s`, `3h`, `12d`.
pub(crate) fn age(since: Option<&Value>, now: Timestamp) -> String {
    let since = since.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    since.map_or_else(|| UNKNOWN.to_owned(), |since| duration(now.as_second() - since.as_second()))
}

/// A duration in its two most significant units.
pub(crate) fn duration(seconds: i64) -> String {
    let pair = |large: i64, unit: &str, small: i64, part: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{part}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => pair(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

/// Labels, ordered by key.
pub(crate) fn labels_cell(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let mut pairs: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or(&pairs.join(","), NONE).to_owned()
}

/// A label selector: labels, then expressions.
pub(crate) fn selector_cell(object: &Value, pointer: &str) -> String {
    let Some(selector) = object.pointer(pointer) else { return NONE.to_owned() };
    let mut terms: Vec<(String, String)> = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in list_at(selector, "/matchExpressions") {
        let key = text_at(expression, "/key");
        let mut values: Vec<&str> = list_at(expression, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text_at(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort();
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    or(&terms.join(","), NONE).to_owned()
}

/// A member of all containers of a pod's specification.
pub(crate) fn container_cell(object: &Value, specification: &str, member: &str) -> String {
    let containers = list_at(object, &format!("{specification}/containers"));
    containers.iter().map(|container| text_at(container, member)).collect::<Vec<_>>().join(",")
}

/// The texts of a list.
pub(crate) fn joined(object: &Value, pointer: &str) -> String {
    list_at(object, pointer).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// The status of a condition.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = list_at(object, "/status/conditions");
    conditions.iter().find(|one| text_at(one, "/type") == kind).map(|one| text_at(one, "/status"))
}

/// At most three, then how many more there are.
pub(crate) fn some_of(all: &[String], none: &str) -> String {
    match all {
        [] => none.to_owned(),
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a},{b},{c} + {} more...", rest.len()),
        few => few.join(","),
    }
}

/// The phase of a volume or claim.
pub(crate) fn phase(object: &Value) -> &str {
    let terminating = object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
    if terminating { "Terminating" } else { text_at(object, "/status/phase") }
}

/// Access modes in their short forms.
pub(crate) fn access_modes_cell(object: &Value, pointer: &str) -> String {
    const SHORT: &[(&str, &str)] = &[
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes: Vec<&str> = list_at(object, pointer).iter().filter_map(Value::as_str).collect();
    let shown = SHORT.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short);
    shown.collect::<Vec<_>>().join(",")
}

/// The addresses in the status of a Service or Ingress, ordered.
pub(crate) fn load_balancer_addresses(object: &Value) -> String {
    let given: BTreeSet<&str> = list_at(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|entry| or(text_at(entry, "/ip"), text_at(entry, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    given.into_iter().collect::<Vec<_>>().join(",")
}
