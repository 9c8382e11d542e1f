//! DaemonSets.

use k8s_openapi::api::apps::v1::DaemonSet;

use crate::kinds::builtin::Complete;
use crate::kinds::prelude::*;
use crate::kinds::shared::workload;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["ds"],
    categories: &["all"],
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    columns: COLUMNS,
    pod_spec: Some("/spec/template/spec"),
    defaults: DEFAULTS,
    prepare_create: |object| count_templates(object, 1),
    prepare_update,
    validate,
    immutable: &[Immutable::Selector("spec.selector")],
    example: r#"{"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
    ..BuiltinKind::namespaced::<DaemonSet>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::number("Desired", "/status/desiredNumberScheduled"),
    Column::number("Current", "/status/currentNumberScheduled"),
    Column::number("Ready", "/status/numberReady"),
    Column::number("Up-to-date", "/status/updatedNumberScheduled"),
    Column::number("Available", "/status/numberAvailable"),
    Column::derived("Node Selector", |set| labels_cell(set, "/spec/template/spec/nodeSelector")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const DEFAULTS: &[Row] = &[
    ("spec.updateStrategy", "{}"),
    ("spec.updateStrategy.type", r#""RollingUpdate""#),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate", "{}"),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", "1"),
    ("spec.updateStrategy.rollingUpdate.maxSurge", "0"),
    ("spec.revisionHistoryLimit", "10"),
];

fn validate(object: &Value, causes: &mut Causes) {
    workload::validate_numbers(object, causes);
    let strategy = text_at(object, "/spec/updateStrategy/type");
    if !matches!(strategy, "RollingUpdate" | "OnDelete") {
        let supported = "\"OnDelete\", \"RollingUpdate\"";
        workload::unsupported_strategy("spec.updateStrategy", strategy, supported, causes);
    }
    if workload::validate_selection("DaemonSet", object, causes) {
        workload::validate_template(object, causes);
    }
}

fn prepare_update(old: &Value, object: &mut Value, complete: &Complete<'_>) {
    let text = text_at(old, &format!("/metadata/annotations/{TEMPLATE_GENERATION}"));
    let template = |object: &Value| complete(object).pointer("/spec/template").cloned();
    let changed = template(old) != template(object);
    count_templates(object, text.parse().unwrap_or(1) + u64::from(changed));
}

/// The annotation that counts a DaemonSet's templates; older versions have a field for it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn count_templates(object: &mut Value, count: u64) {
    if let Some(all) = object.get_mut("metadata").and_then(|metadata| member(metadata, "annotations")) {
        all.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
    }
}
