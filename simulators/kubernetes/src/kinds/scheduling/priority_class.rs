//! PriorityClasses.

use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["pc"],
    generation: Generation::Constant,
    columns: &[
        NAME,
        Column::number("Value", "/value"),
        Column::flag("Global-Default", "/globalDefault"),
        AGE,
        Column::text("PreemptionPolicy", "/preemptionPolicy"),
    ],
    defaults: &[("preemptionPolicy", r#""PreemptLowerPriority""#)],
    validate,
    immutable: &[
        Immutable::Forbidden("value", "may not be changed in an update."),
        Immutable::Text("preemptionPolicy"),
    ],
    example: r#"{"value": 10}"#,
    ..BuiltinKind::cluster::<PriorityClass>()
};

fn validate(object: &Value, causes: &mut Causes) {
    // The highest priority that users may set; higher ones are the system's own.
    const HIGHEST: i64 = 1_000_000_000;
    const OWN: &[&str] = &["system-node-critical", "system-cluster-critical"];
    let name = text_at(object, "/metadata/name");
    let value = object.get("value").and_then(Value::as_i64).unwrap_or(0);
    if name.starts_with("system-") && !OWN.contains(&name) {
        let why = "priority class names with 'system-' prefix are reserved for system use only. error: not a system \
                   priority class name";
        causes.push(Invalid::forbidden("metadata.name", why));
    }
    if value > HIGHEST && !OWN.contains(&name) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.push(Invalid::forbidden("value", &why));
    }
    one_of(object, "/preemptionPolicy", &["Never", "PreemptLowerPriority"], causes);
}
