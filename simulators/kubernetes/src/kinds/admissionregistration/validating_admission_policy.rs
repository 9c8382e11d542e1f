//! ValidatingAdmissionPolicies.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::matching::MATCHED;
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    categories: &["api-extensions"],
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::length("Validations", "/spec/validations"),
        Column::derived("ParamKind", param_kind),
        AGE,
    ],
    defaults: &[("spec.failurePolicy", r#""Fail""#)],
    shared_defaults: &[("/spec/matchConstraints", MATCHED)],
    example: r#"{"spec": {"matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nothing"]}]}, "validations": [{"expression": "true"}]}}"#,
    ..BuiltinKind::cluster::<ValidatingAdmissionPolicy>()
};

fn param_kind(object: &Value) -> String {
    let at = |member: &str| text_at(object, &format!("/spec/paramKind/{member}"));
    if at("kind").is_empty() { UNSET.to_owned() } else { format!("{}/{}", at("apiVersion"), at("kind")) }
}
