//! IngressClasses.

use k8s_openapi::api::networking::v1::IngressClass;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    generation: Generation::Specification,
    columns: &[
        NAME,
        Column::text("Controller", "/spec/controller"),
        Column::derived("Parameters", parameters),
        AGE,
    ],
    defaults: &[("spec.parameters.scope", r#""Cluster""#)],
    validate,
    immutable: &[Immutable::Text("spec.controller")],
    example: r#"{"spec": {"controller": "example.com/c"}}"#,
    ..BuiltinKind::cluster::<IngressClass>()
};

fn parameters(object: &Value) -> String {
    let at = |member: &str| text_at(object, &format!("/spec/parameters/{member}"));
    match (at("apiGroup"), at("kind"), at("name")) {
        (_, "", _) => NONE.to_owned(),
        ("", kind, name) => format!("{kind}/{name}"),
        (group, kind, name) => format!("{kind}.{group}/{name}"),
    }
}

fn validate(object: &Value, causes: &mut Causes) {
    let controller = text_at(object, "/spec/controller");
    if controller.is_empty() {
        causes.push(Invalid::required("spec.controller", ""));
    } else if !controller.contains('/') {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(Invalid::text("spec.controller", controller, why));
    }
}
