//! ValidatingAdmissionPolicyBindings.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::matching::MATCHED;
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    categories: &["api-extensions"],
    generation: Generation::Specification,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::text("PolicyName", "/spec/policyName"),
        Column::derived("ParamRef", param_ref),
        AGE,
    ],
    shared_defaults: &[("/spec/matchResources", MATCHED)],
    validate: |object, causes| {
        required(object, "/spec/policyName", causes);
        if list_at(object, "/spec/validationActions").is_empty() {
            causes.push(Invalid::required("spec.validationActions", ""));
        }
    },
    example: r#"{"spec": {"policyName": "p", "validationActions": ["Deny"]}}"#,
    ..BuiltinKind::cluster::<ValidatingAdmissionPolicyBinding>()
};

fn param_ref(object: &Value) -> String {
    let at = |member: &str| text_at(object, &format!("/spec/paramRef/{member}"));
    match (object.pointer("/spec/paramRef"), at("namespace"), at("name")) {
        (None | Some(Value::Null), ..) => UNSET.to_owned(),
        (_, "", name) => format!("*/{name}"),
        (_, namespace, name) => format!("{namespace}/{name}"),
    }
}
