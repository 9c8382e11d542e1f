//! NetworkPolicies.

use k8s_openapi::api::networking::v1::NetworkPolicy;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["netpol"],
    generation: Generation::Specification,
    columns: &[
        NAME,
        Column::derived("Pod-Selector", |object| selector_cell(object, "/spec/podSelector")),
        AGE,
    ],
    defaults: &[
        ("spec.podSelector", "{}"),
        ("spec.ingress[].ports[].protocol", r#""TCP""#),
        ("spec.egress[].ports[].protocol", r#""TCP""#),
    ],
    derive: name_policy_types,
    validate: |object, causes| {
        if let Some(selector) = object.pointer("/spec/podSelector") {
            selector_is_sound(selector, "spec.podSelector", causes);
        }
    },
    example: r#"{"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}"#,
    ..BuiltinKind::namespaced::<NetworkPolicy>()
};

fn name_policy_types(object: &mut Value) {
    let egress = !list_at(object, "/spec/egress").is_empty();
    let Some(spec) = member(object, "spec") else { return };
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("policyTypes".into(), types);
    }
}
