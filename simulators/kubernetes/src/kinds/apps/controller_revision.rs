//! ControllerRevisions.

use k8s_openapi::api::apps::v1::ControllerRevision;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    columns: &[NAME, Column::derived("Controller", controller), Column::number("Revision", "/revision"), AGE],
    validate: |object, causes| {
        if object.get("data").is_none_or(Value::is_null) {
            causes.push(Invalid::required("data", "data is mandatory"));
        }
    },
    immutable: &[Immutable::Json("data")],
    example: r#"{"revision": 1, "data": {"a": "b"}}"#,
    ..BuiltinKind::namespaced::<ControllerRevision>()
};

/// The controller of the object: `daemonset.apps/x`.
fn controller(object: &Value) -> String {
    let owners = list_at(object, "/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true))) else {
        return NONE.to_owned();
    };
    let group = text_at(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = text_at(owner, "/kind").to_lowercase();
    let name = text_at(owner, "/name");
    if group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{group}/{name}") }
}
