//! Events of their own group. They are stored as core Events, whose members have other names.

use k8s_openapi::api::events::v1::Event;

use crate::kinds::prelude::*;
use crate::kinds::shared::events::COLUMNS;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["ev"],
    stored_form: Some(StoredForm {
        shelf: "events",
        api_version: "v1",
        read: |value| rename(value, MEMBERS.iter().copied()),
        write: |value| rename(value, MEMBERS.iter().map(|(core, served)| (*served, *core))),
    }),
    create_on_update: true,
    fields: &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    name: path_segment,
    columns: COLUMNS,
    validate: |object, causes| causes.note(validate(object)),
    example: r#"{"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "c", "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal", "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}}"#,
    ..BuiltinKind::namespaced::<Event>()
};

/// Members of core Events, and their names in `events.k8s.io`.
const MEMBERS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn validate(object: &Value) -> Result<(), Invalid> {
    if object.get("eventTime").is_none_or(Value::is_null) {
        return Err(Invalid::required("eventTime", ""));
    }
    for required in ["reportingController", "reportingInstance", "action", "reason"] {
        if object.get(required).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(Invalid::required(required, ""));
        }
    }
    let severity = text_at(object, "/type");
    if !matches!(severity, "Normal" | "Warning") {
        return Err(Invalid::value("type", "\"\"", &format!("has invalid value: {severity}")));
    }
    Ok(())
}

fn rename<'a>(value: &mut Value, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(members) = value.as_object_mut() else { return };
    for (from, to) in pairs {
        if let Some(member) = members.remove(from) {
            members.insert(to.to_owned(), member);
        }
    }
}
