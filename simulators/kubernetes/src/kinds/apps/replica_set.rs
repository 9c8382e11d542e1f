//! ReplicaSets.

use k8s_openapi::api::apps::v1::ReplicaSet;

use crate::kinds::prelude::*;
use crate::kinds::shared::workload;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["rs"],
    categories: &["all"],
    status: StatusRule::Subresource,
    scale: true,
    generation: Generation::Specification,
    fields: &["status.replicas"],
    columns: &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR],
    pod_spec: Some("/spec/template/spec"),
    defaults: &[("spec.replicas", "1")],
    validate,
    immutable: &[Immutable::Selector("spec.selector")],
    example: r#"{"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
    ..BuiltinKind::namespaced::<ReplicaSet>()
};

fn validate(object: &Value, causes: &mut Causes) {
    workload::validate_numbers(object, causes);
    if workload::validate_selection("ReplicaSet", object, causes) {
        workload::validate_template(object, causes);
    }
}
