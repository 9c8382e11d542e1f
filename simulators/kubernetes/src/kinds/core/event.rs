//! Events of the core group.

use k8s_openapi::api::core::v1::Event;

use crate::kinds::prelude::*;
use crate::kinds::shared::events::COLUMNS;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["ev"],
    create_on_update: true,
    fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    name: path_segment,
    columns: COLUMNS,
    validate,
    example: r#"{"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "Started", "type": "Normal"}"#,
    ..BuiltinKind::namespaced::<Event>()
};

/// An Event is in the namespace of the object that it is about.
fn validate(object: &Value, causes: &mut Causes) {
    let subject = text_at(object, "/involvedObject/namespace");
    let namespace = text_at(object, "/metadata/namespace");
    let matches = if subject.is_empty() {
        // Events about cluster-scoped objects are in the default namespace.
        text_at(object, "/involvedObject/kind").is_empty() || matches!(namespace, "default" | "kube-system")
    } else {
        subject == namespace
    };
    if !matches {
        causes.push(Invalid::text("involvedObject.namespace", subject, "does not match event.namespace"));
    }
}
