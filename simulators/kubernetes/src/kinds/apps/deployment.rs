//! Deployments.

use k8s_openapi::api::apps::v1::Deployment;

use crate::kinds::prelude::*;
use crate::kinds::shared::workload;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["deploy"],
    categories: &["all"],
    status: StatusRule::Subresource,
    scale: true,
    // Its controller reads annotations.
    generation: Generation::SpecificationAndAnnotations,
    columns: &[
        NAME,
        READY_OF_DESIRED,
        Column::number("Up-to-date", "/status/updatedReplicas"),
        Column::number("Available", "/status/availableReplicas"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    pod_spec: Some("/spec/template/spec"),
    defaults: DEFAULTS,
    validate,
    immutable: &[Immutable::Selector("spec.selector")],
    example: r#"{"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
    ..BuiltinKind::namespaced::<Deployment>()
};

const DEFAULTS: &[Row] = &[
    ("spec.replicas", "1"),
    ("spec.strategy", "{}"),
    ("spec.strategy.type", r#""RollingUpdate""#),
    ("spec.strategy{type=RollingUpdate}.rollingUpdate", "{}"),
    ("spec.strategy.rollingUpdate.maxUnavailable", r#""25%""#),
    ("spec.strategy.rollingUpdate.maxSurge", r#""25%""#),
    ("spec.revisionHistoryLimit", "10"),
    ("spec.progressDeadlineSeconds", "600"),
];

fn validate(object: &Value, causes: &mut Causes) {
    workload::validate_numbers(object, causes);
    match text_at(object, "/spec/strategy/type") {
        "RollingUpdate" => {}
        "Recreate" => {
            if object.pointer("/spec/strategy/rollingUpdate").is_some() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                causes.push(Invalid::forbidden("spec.strategy.rollingUpdate", why));
            }
        }
        other => {
            let supported = "\"Recreate\", \"RollingUpdate\"";
            workload::unsupported_strategy("spec.strategy", other, supported, causes);
        }
    }
    if workload::validate_selection("Deployment", object, causes) {
        workload::validate_template(object, causes);
    }
}
