//! Jobs.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use super::{job_spec, job_status};
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    categories: &["all"],
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    fields: &["status.successful"],
    orphans_dependents: true,
    columns: &[
        NAME,
        Column::derived("Status", |job| state(job).to_owned()),
        Column::derived("Completions", completions),
        Column::timed("Duration", "string", |job, now| job_duration(job, now).into()),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    pod_spec: Some("/spec/template/spec"),
    defaults: &[
        ("spec.backoffLimit", "6"),
        ("spec.completionMode", r#""NonIndexed""#),
        ("spec.suspend", "false"),
        ("spec.podReplacementPolicy", r#""TerminatingOrFailed""#),
        ("spec.manualSelector", "false"),
    ],
    derive: complete_job,
    prepare_create: select_own_pods,
    validate: |object, causes| job_spec::validate(object, "/spec", "spec", causes),
    validate_update: Some(validate_update),
    example: r#"{"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}}"#,
    ..BuiltinKind::namespaced::<Job>()
};

fn validate_update(old: &Value, new: &Value, causes: &mut Causes) {
    // The server's update validation repeats the validation of the whole object.
    job_spec::validate(new, "/spec", "spec", causes);
    job_status::validate(old, new, causes);
    check_immutable(&[Immutable::Selector("spec.selector")], old, new, causes);
    validate_specification_update(old, new, causes);
}

fn state(object: &Value) -> &'static str {
    let holds = |kind: &str| condition(object, kind) == Some("True");
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if !text_at(object, "/metadata/deletionTimestamp").is_empty() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(object: &Value) -> String {
    let done = number_at(object, "/status/succeeded");
    match (
        object.pointer("/spec/completions").and_then(Value::as_i64),
        number_at(object, "/spec/parallelism"),
    ) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, side_by_side) if side_by_side > 1 => format!("{done}/1 of {side_by_side}"),
        (None, _) => format!("{done}/1"),
    }
}

fn job_duration(object: &Value, now: Timestamp) -> String {
    let time = |at: &str| text_at(object, at).parse::<Timestamp>().ok();
    let end = time("/status/completionTime").unwrap_or(now);
    time("/status/startTime").map_or_else(String::new, |start| duration(end.as_second() - start.as_second()))
}

/// Defaults a Job to one completion and one pod at a time.
fn complete_job(object: &mut Value) {
    let Some(spec) = member(object, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    spec.entry("parallelism").or_insert_with(|| json!(1));
}

/// Labels a Job's pods with its UID, and selects them by that.
fn select_own_pods(object: &mut Value) {
    const UID: &str = "batch.kubernetes.io/controller-uid";
    if object.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) =
        (text_at(object, "/metadata/uid").to_owned(), text_at(object, "/metadata/name").to_owned());
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) else { return };
    let Some(metadata) =
        member(template, "metadata").map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})))
    else {
        return;
    };
    let Some(labels) = metadata.as_object_mut() else { return };
    for (key, value) in
        [(UID, &uid), ("batch.kubernetes.io/job-name", &name), ("controller-uid", &uid), ("job-name", &name)]
    {
        labels.insert(key.to_owned(), value.as_str().into());
    }
    let labels = Value::Object(labels.clone());
    spec.entry("selector").or_insert_with(|| json!({ "matchLabels": { UID: uid } }));
    if object.pointer("/metadata/labels").is_none()
        && let Some(metadata) = member(object, "metadata")
    {
        metadata.insert("labels".into(), labels);
    }
}

fn validate_specification_update(old: &Value, new: &Value, causes: &mut Causes) {
    let at = |object: &Value, pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let suspended = at(old, "/spec/suspend") == Value::Bool(true);
    // Templates have no creation time; stored ones have it as null.
    let template = |object: &Value| {
        let mut template = at(object, "/spec/template");
        if let Some(Value::Object(metadata)) = template.get_mut("metadata") {
            metadata.remove("creationTimestamp");
        }
        template
    };
    if !suspended && template(old) != template(new) {
        // The server shows the whole template, with the names of Go's fields.
        let value =
            json!({ "metadata": { "labels": at(new, "/spec/template/metadata/labels") } }).to_string();
        causes.push(Invalid::value("spec.template", &value, "field is immutable"));
    }
    for member in ["completions", "completionMode"] {
        let pointer = format!("/spec/{member}");
        if at(old, &pointer) != at(new, &pointer) && at(old, "/spec/completionMode") != "Indexed" {
            let value = at(new, &pointer).to_string();
            causes.push(Invalid::value(format!("spec.{member}"), &value, "field is immutable"));
        }
    }
}
