//! The tables of Events, which two groups serve.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::shared::cells::age;
use crate::kinds::shared::columns::Column;
use crate::object::pointer::{number_at, text_at};

/// Events of both groups, whose members have different names.
pub(crate) const COLUMNS: &[Column] = &[
    Column::timed("Last Seen", "string", |event, now| last_seen(event, now).into()),
    Column::text("Type", "/type"),
    Column::text("Reason", "/reason"),
    Column::derived("Object", subject),
    Column::derived("Subobject", |event| {
        either(event, ["/involvedObject/fieldPath", "/regarding/fieldPath"]).to_owned()
    })
    .wide(),
    Column::derived("Source", source).wide(),
    Column::derived("Message", |event| either(event, ["/message", "/note"]).trim().to_owned()),
    Column::timed("First Seen", "string", |event, now| age(first_seen(event), now).into()).wide(),
    Column::timed("Count", "string", |event, _| count(event).into()).wide(),
    Column::text("Name", "/metadata/name").wide(),
];

/// The first of two texts that is not empty.
fn either<'a>(object: &'a Value, pointers: [&str; 2]) -> &'a str {
    pointers.into_iter().map(|at| text_at(object, at)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn first_seen(object: &Value) -> Option<&Value> {
    let times = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    times.into_iter().filter_map(|at| object.pointer(at)).find(|time| !time.is_null())
}

fn series(object: &Value) -> Option<&Value> {
    object.get("series").filter(|series| !series.is_null())
}

fn last_seen(object: &Value, now: Timestamp) -> String {
    let last = match series(object) {
        Some(series) => series.get("lastObservedTime"),
        None => ["/lastTimestamp", "/deprecatedLastTimestamp"]
            .into_iter()
            .filter_map(|at| object.pointer(at))
            .find(|time| !time.is_null())
            .or_else(|| first_seen(object)),
    };
    age(last, now)
}

fn count(object: &Value) -> i64 {
    match series(object) {
        Some(series) => number_at(series, "/count"),
        None => number_at(object, "/count").max(number_at(object, "/deprecatedCount")).max(1),
    }
}

fn subject(object: &Value) -> String {
    let kind = either(object, ["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    let name = either(object, ["/involvedObject/name", "/regarding/name"]);
    if kind.is_empty() { name.to_owned() } else { format!("{kind}/{name}") }
}

fn source(object: &Value) -> String {
    let component = either(object, ["/source/component", "/deprecatedSource/component"]);
    let (component, host) = if component.is_empty() {
        let reporter = either(object, ["/reportingComponent", "/reportingController"]);
        (reporter, text_at(object, "/reportingInstance"))
    } else {
        (component, either(object, ["/source/host", "/deprecatedSource/host"]))
    };
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}
