//! StatefulSets.

use k8s_openapi::api::apps::v1::StatefulSet;

use crate::kinds::prelude::*;
use crate::kinds::shared::workload;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["sts"],
    categories: &["all"],
    status: StatusRule::Subresource,
    scale: true,
    generation: Generation::Specification,
    // Its pods have its name in a label.
    name: dns_label,
    columns: &[NAME, READY_OF_DESIRED, AGE, CONTAINERS, IMAGES],
    pod_spec: Some("/spec/template/spec"),
    defaults: DEFAULTS,
    validate,
    validate_update: Some(validate_update),
    example: r#"{"spec": {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}"#,
    ..BuiltinKind::namespaced::<StatefulSet>()
};

const DEFAULTS: &[Row] = &[
    ("spec.replicas", "1"),
    ("spec.podManagementPolicy", r#""OrderedReady""#),
    ("spec.updateStrategy", "{}"),
    ("spec.updateStrategy.type", r#""RollingUpdate""#),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate", "{}"),
    ("spec.updateStrategy.rollingUpdate.partition", "0"),
    ("spec.revisionHistoryLimit", "10"),
    ("spec.persistentVolumeClaimRetentionPolicy", "{}"),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", r#""Retain""#),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", r#""Retain""#),
    ("spec.volumeClaimTemplates[].apiVersion", r#""v1""#),
    ("spec.volumeClaimTemplates[].kind", r#""PersistentVolumeClaim""#),
    ("spec.volumeClaimTemplates[].spec.volumeMode", r#""Filesystem""#),
    ("spec.volumeClaimTemplates[].status", r#"{"phase": "Pending"}"#),
];

fn validate(object: &Value, causes: &mut Causes) {
    workload::validate_numbers(object, causes);
    let policy = text_at(object, "/spec/podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        causes.push(Invalid::text("spec.podManagementPolicy", policy, why));
    }
    let strategy = text_at(object, "/spec/updateStrategy/type");
    if !matches!(strategy, "RollingUpdate" | "OnDelete") {
        let value = format!("{{\"Type\":{strategy:?},\"RollingUpdate\":null}}");
        let why = "must be 'RollingUpdate' or 'OnDelete'";
        causes.push(Invalid::value("spec.updateStrategy", &value, why));
    }
    if workload::validate_selection("StatefulSet", object, causes) {
        workload::validate_template(&with_claimed_volumes(object), causes);
    }
}

/// The object with the volumes that its template does not name: its pods have one for each claim template.
fn with_claimed_volumes(object: &Value) -> Value {
    let mut object = object.clone();
    let claims: Vec<Value> = list_at(&object, "/spec/volumeClaimTemplates")
        .iter()
        .map(|claim| json!({ "name": text_at(claim, "/metadata/name"), "persistentVolumeClaim": {} }))
        .collect();
    if let Some(Value::Object(pods)) = object.pointer_mut("/spec/template/spec")
        && let Value::Array(volumes) = pods.entry("volumes").or_insert_with(|| json!([]))
    {
        let own: Vec<Value> = volumes.iter().map(|volume| volume["name"].clone()).collect();
        volumes.extend(claims.into_iter().filter(|claim| !own.contains(&claim["name"])));
    }
    object
}

fn validate_update(old: &Value, new: &Value, causes: &mut Causes) {
    const FREE: &[&str] = &[
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if spec_without(old, FREE) != spec_without(new, FREE) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        causes.push(Invalid::forbidden("spec", why));
    }
}
