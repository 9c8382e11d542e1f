//! Validates objects of the other kinds: the rules that users meet most often, with kube-apiserver's messages.

mod data;
mod job_status;
mod rules;

pub(super) use job_status::validate as validate_job_status;
use serde_json::{Value, json};

use super::pod::{self, Restarts};
use super::{Causes, Invalid, list_at, metadata, text_at};
use crate::registry::Kind;

/// Validates an object by the rules of its kind.
pub(super) fn validate(kind: &Kind, object: &Value, causes: &mut Causes) {
    let Some(name) = kind.builtin() else { return };
    match name {
        ("", "Pod") => pod_of(object, "/spec", "spec", Restarts::Any, causes),
        ("", "PodTemplate") => pod_of(object, "/template/spec", "template.spec", Restarts::Any, causes),
        ("", "ReplicationController") => replication_controller(object, causes),
        ("apps", "ControllerRevision") if object.get("data").is_none_or(Value::is_null) => {
            causes.push(Invalid::required("data", "data is mandatory"));
        }
        ("apps", "ControllerRevision") => {}
        ("apps", _) => workload(&kind.kind, object, causes),
        ("batch", "Job") => job(object, "/spec", "spec", causes),
        ("batch", "CronJob") => cron_job(object, causes),
        ("" | "events.k8s.io", "Event") => causes.note(data::event(object)),
        ("", "Secret" | "ConfigMap") => causes.note(data::keys_and_size(object)),
        ("coordination.k8s.io", "Lease") => data::lease(object, causes),
        ("discovery.k8s.io", "EndpointSlice") => causes.note(data::endpoint_slice(object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {}
        _ => rules::validate(name, object, causes),
    }
}

fn pod_of(object: &Value, at: &str, field: &str, restarts: Restarts, causes: &mut Causes) {
    pod::validate(object.pointer(at).unwrap_or(&Value::Null), field, restarts, causes);
}

/// Validates a template's labels and pod specification.
fn template(spec: &Value, field: &str, restarts: Restarts, causes: &mut Causes) {
    template_labels(spec, field, causes);
    let pods = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    pod::validate(pods, &format!("{field}.template.spec"), restarts, causes);
}

fn template_labels(spec: &Value, field: &str, causes: &mut Causes) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    for (key, value) in metadata::members(template, "/metadata/labels") {
        let field = format!("{field}.template.labels");
        let value = value.as_str().unwrap_or_default();
        causes.note(metadata::qualified_name(key).map_err(|why| Invalid::text(field.as_str(), key, &why)));
        causes.note(metadata::label_value(value).map_err(|why| Invalid::text(field.as_str(), value, &why)));
    }
}

fn not_negative(object: &Value, pointer: &str, causes: &mut Causes) {
    if let Some(number) = object.pointer(pointer).and_then(Value::as_i64)
        && number < 0
    {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        causes.push(Invalid::value(field, &number.to_string(), "must be greater than or equal to 0"));
    }
}

fn workload(kind: &str, object: &Value, causes: &mut Causes) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    for member in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        not_negative(object, &format!("/spec/{member}"), causes);
    }
    strategy(kind, spec, causes);
    if !selected_template(kind, spec, causes) {
        return;
    }
    if kind == "StatefulSet" {
        // Its pods have volumes that the template does not name: one for each claim template.
        let mut spec = spec.clone();
        let claims: Vec<Value> = list_at(&spec, "/volumeClaimTemplates")
            .iter()
            .map(|claim| json!({ "name": text_at(claim, "/metadata/name"), "persistentVolumeClaim": {} }))
            .collect();
        if let Some(Value::Object(pods)) = spec.pointer_mut("/template/spec")
            && let Value::Array(volumes) = pods.entry("volumes").or_insert_with(|| json!([]))
        {
            let own: Vec<Value> = volumes.iter().map(|volume| volume["name"].clone()).collect();
            volumes.extend(claims.into_iter().filter(|claim| !own.contains(&claim["name"])));
        }
        template(&spec, "spec", Restarts::Always, causes);
        return;
    }
    template(spec, "spec", Restarts::Always, causes);
}

/// Validates the update strategy of a workload.
fn strategy(kind: &str, spec: &Value, causes: &mut Causes) {
    let is = |pointer: &str, all: &[&str]| all.contains(&text_at(spec, pointer));
    let structure =
        |pointer: &str| format!("{{\"Type\":{:?},\"RollingUpdate\":null}}", text_at(spec, pointer));
    match kind {
        "Deployment" if !is("/strategy/type", &["Recreate", "RollingUpdate"]) => {
            let value = structure("/strategy/type");
            let message =
                format!("Unsupported value: {value}: supported values: \"Recreate\", \"RollingUpdate\"");
            causes.push(Invalid::new("spec.strategy", message));
        }
        "Deployment"
            if is("/strategy/type", &["Recreate"]) && spec.pointer("/strategy/rollingUpdate").is_some() =>
        {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Invalid::forbidden("spec.strategy.rollingUpdate", why));
        }
        "DaemonSet" if !is("/updateStrategy/type", &["RollingUpdate", "OnDelete"]) => {
            let value = structure("/updateStrategy/type");
            let message =
                format!("Unsupported value: {value}: supported values: \"OnDelete\", \"RollingUpdate\"");
            causes.push(Invalid::new("spec.updateStrategy", message));
        }
        "StatefulSet" => {
            if !is("/podManagementPolicy", &["OrderedReady", "Parallel"]) {
                let why = "must be 'OrderedReady' or 'Parallel'";
                let policy = text_at(spec, "/podManagementPolicy");
                causes.push(Invalid::text("spec.podManagementPolicy", policy, why));
            }
            if !is("/updateStrategy/type", &["RollingUpdate", "OnDelete"]) {
                let value = structure("/updateStrategy/type");
                let why = "must be 'RollingUpdate' or 'OnDelete'";
                causes.push(Invalid::value("spec.updateStrategy", &value, why));
            }
        }
        _ => {}
    }
}

/// The selector must exist, must not be empty, and must match the template. Returns whether it is valid enough to
/// validate the template.
fn selected_template(kind: &str, spec: &Value, causes: &mut Causes) -> bool {
    const FIELD: &str = "spec.selector";
    const WHY: &str = "`selector` does not match template `labels`";
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    let differ = || Invalid::value("spec.template.metadata.labels", &labels.to_string(), WHY);
    let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) else {
        if kind != "DaemonSet" {
            causes.push(Invalid::required(FIELD, ""));
        }
        // A missing selector selects nothing.
        causes.push(differ());
        return true;
    };
    let before = causes.count();
    selector_is_sound(selector, FIELD, causes);
    if causes.count() > before {
        causes.push(Invalid::value(FIELD, &selector_text(selector), "invalid label selector"));
        return false;
    }
    if is_empty(selector) {
        let why = format!("empty selector is invalid for {}", kind.to_lowercase());
        causes.push(Invalid::value(FIELD, &selector_text(selector), &why));
    } else if !selects(selector, labels) {
        causes.push(differ());
    }
    true
}

fn is_empty(selector: &Value) -> bool {
    metadata::members(selector, "/matchLabels").next().is_none()
        && list_at(selector, "/matchExpressions").is_empty()
}

/// Validates keys, values and operators of a label selector.
fn selector_is_sound(selector: &Value, field: &str, causes: &mut Causes) {
    for (key, value) in metadata::members(selector, "/matchLabels") {
        let field = format!("{field}.matchLabels");
        let value = value.as_str().unwrap_or_default();
        causes.note(metadata::qualified_name(key).map_err(|why| Invalid::text(field.as_str(), key, &why)));
        causes.note(metadata::label_value(value).map_err(|why| Invalid::text(field.as_str(), value, &why)));
    }
    for (index, expression) in list_at(selector, "/matchExpressions").iter().enumerate() {
        let at = |member: &str| format!("{field}.matchExpressions[{index}].{member}");
        let (operator, values) = (text_at(expression, "/operator"), list_at(expression, "/values"));
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Invalid::required(at("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Invalid::forbidden(at("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => causes.push(Invalid::text(at("operator"), other, "not a valid selector operator")),
        }
        let key = text_at(expression, "/key");
        causes.note(metadata::qualified_name(key).map_err(|why| Invalid::text(at("key"), key, &why)));
    }
}

/// Whether a selector matches labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    metadata::members(selector, "/matchLabels").all(|(key, value)| labels.get(key) == Some(value))
        && list_at(selector, "/matchExpressions").iter().all(|expression| {
            let label = labels.get(text_at(expression, "/key"));
            let named = label.is_some_and(|label| list_at(expression, "/values").contains(label));
            match text_at(expression, "/operator") {
                "In" => named,
                "NotIn" => !named,
                "Exists" => label.is_some(),
                _ => label.is_none(),
            }
        })
}

/// A label selector as messages show it: JSON in the order of its type's fields.
pub(super) fn selector_text(selector: &Value) -> String {
    let member = |of: &Value, name: &str| {
        of.get(name).filter(|value| !value.is_null()).map(|value| format!("{name:?}:{value}"))
    };
    let joined = |members: Vec<Option<String>>| {
        let members: Vec<String> = members.into_iter().flatten().collect();
        format!("{{{}}}", members.join(","))
    };
    if selector.is_null() {
        return "null".to_owned();
    }
    let expressions: Vec<String> = list_at(selector, "/matchExpressions")
        .iter()
        .map(|one| joined(["key", "operator", "values"].map(|name| member(one, name)).into()))
        .collect();
    let expressions =
        (!expressions.is_empty()).then(|| format!("\"matchExpressions\":[{}]", expressions.join(",")));
    joined(vec![member(selector, "matchLabels"), expressions])
}

/// Validates a member with a fixed set of values.
fn one_of(object: &Value, pointer: &str, supported: &[&str], causes: &mut Causes) {
    let value = text_at(object, pointer);
    let field = pointer.trim_start_matches('/').replace('/', ".");
    if value.is_empty() {
        causes.push(Invalid::required(field, ""));
    } else if !supported.contains(&value) {
        causes.push(Invalid::unsupported(field, value, supported));
    }
}

fn replication_controller(object: &Value, causes: &mut Causes) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    not_negative(object, "/spec/replicas", causes);
    let selector = spec.get("selector").unwrap_or(&Value::Null);
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        causes.push(Invalid::required("spec.selector", ""));
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    if !selects(&serde_json::json!({ "matchLabels": selector }), labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Invalid::value("spec.template.metadata.labels", &labels.to_string(), why));
    }
    template(spec, "spec", Restarts::Always, causes);
}

fn job(object: &Value, at: &str, field: &str, causes: &mut Causes) {
    let spec = object.pointer(at).unwrap_or(&Value::Null);
    for member in
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]
    {
        not_negative(object, &format!("{at}/{member}"), causes);
    }
    if let Some(mode) = spec.get("completionMode").and_then(Value::as_str)
        && !matches!(mode, "NonIndexed" | "Indexed")
    {
        let field = format!("{field}.completionMode");
        causes.push(Invalid::unsupported(field, mode, &["Indexed", "NonIndexed"]));
    }
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if selector.is_none() && at == "/spec" {
        causes.push(Invalid::required(format!("{field}.selector"), ""));
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    // A missing selector selects nothing; a CronJob's Jobs get theirs later.
    if selector.map_or(at == "/spec", |selector| !selects(selector, labels)) {
        let why = "`selector` does not match template `labels`";
        causes.push(Invalid::value(format!("{field}.template.metadata.labels"), &labels.to_string(), why));
    }
    template(spec, field, Restarts::AtMostOnFailure, causes);
}

fn cron_job(object: &Value, causes: &mut Causes) {
    let schedule = text_at(object, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        causes.push(Invalid::required("spec.schedule", ""));
    } else if schedule.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.push(Invalid::text("spec.schedule", schedule, why));
    } else if !schedule.starts_with('@') && fields.len() != 5 {
        let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        causes.push(Invalid::text("spec.schedule", schedule, &why));
    }
    one_of(object, "/spec/concurrencyPolicy", &["Allow", "Forbid", "Replace"], causes);
    for member in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(object, &format!("/spec/{member}"), causes);
    }
    job(object, "/spec/jobTemplate/spec", "spec.jobTemplate.spec", causes);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_shown_in_the_order_of_their_type() {
        let selector = json!({ "matchExpressions": [{ "values": ["b"], "operator": "In", "key": "a" }],
            "matchLabels": { "a": "b" } });
        assert_eq!(
            selector_text(&selector),
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}"#
        );
        assert_eq!((selector_text(&json!({})), selector_text(&Value::Null)), ("{}".into(), "null".into()));
    }

    #[test]
    fn selectors_select() {
        let labels = json!({ "a": "1", "b": "2" });
        let expression = |operator, values: Value| {
            json!({ "matchExpressions": [{ "key": "a", "operator": operator,
            "values": values }] })
        };
        assert!(selects(&json!({ "matchLabels": { "a": "1" } }), &labels));
        assert!(!selects(&json!({ "matchLabels": { "a": "2" } }), &labels));
        assert!(selects(&expression("In", json!(["1", "3"])), &labels));
        assert!(!selects(&expression("NotIn", json!(["1"])), &labels));
        assert!(selects(&expression("Exists", json!([])), &labels));
        assert!(!selects(&expression("DoesNotExist", json!([])), &labels));
    }
}
