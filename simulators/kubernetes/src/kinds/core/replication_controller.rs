//! ReplicationControllers.

use k8s_openapi::api::core::v1::ReplicationController;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["rc"],
    categories: &["all"],
    etcd_directory: Some("controllers"),
    status: StatusRule::Subresource,
    scale: true,
    generation: Generation::Specification,
    fields: &["status.replicas"],
    orphans_dependents: true,
    columns: &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, LABELS_SELECTED],
    pod_spec: Some("/spec/template/spec"),
    defaults: &[("spec.replicas", "1")],
    derive: select_template,
    validate,
    example: r#"{"spec": {"replicas": 1, "selector": {"app": "a"}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
    ..BuiltinKind::namespaced::<ReplicationController>()
};

/// Derives the selector and labels of a replication controller from its template.
fn select_template(object: &mut Value) {
    let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() else { return };
    if object.pointer("/spec/selector").is_none()
        && let Some(spec) = member(object, "spec")
    {
        spec.insert("selector".into(), labels.clone());
    }
    if object.pointer("/metadata/labels").is_none()
        && let Some(metadata) = member(object, "metadata")
    {
        metadata.insert("labels".into(), labels);
    }
}

fn validate(object: &Value, causes: &mut Causes) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    not_negative(object, "/spec/replicas", causes);
    let selector = spec.get("selector").unwrap_or(&Value::Null);
    if selector.as_object().is_none_or(Map::is_empty) {
        causes.push(Invalid::required("spec.selector", ""));
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    if !selects(&json!({ "matchLabels": selector }), labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Invalid::value("spec.template.metadata.labels", labels, why));
    }
    template(spec, "spec", Restarts::Always, causes);
}
