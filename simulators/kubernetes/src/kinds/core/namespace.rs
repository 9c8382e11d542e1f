//! Namespaces. What their deletion does is in [`crate::verbs::lifecycle::namespace`].

use k8s_openapi::api::core::v1::Namespace;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["ns"],
    status: StatusRule::Subresource,
    subresources: &[Subresource { name: "finalize", takes: (None, "Namespace"), verb: "update" }],
    fields: &["status.phase"],
    name: dns_label,
    columns: &[NAME, Column::text("Status", "/status/phase"), AGE],
    defaults: &[("status", "{}"), ("status.phase", r#""Active""#)],
    derive: label_with_name,
    prepare_create: activate,
    ..BuiltinKind::cluster::<Namespace>()
};

/// The finalizer in the specification of every namespace: its contents are deleted first.
pub(crate) const CONTENTS: &str = "kubernetes";

/// Sets the initial specification and status, whatever the client says.
fn activate(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("spec".to_owned(), json!({ "finalizers": [CONTENTS] }));
        members.insert("status".to_owned(), json!({ "phase": "Active" }));
    }
}

fn label_with_name(object: &mut Value) {
    let name = text_at(object, "/metadata/name").to_owned();
    if let Some(labels) = object.get_mut("metadata").and_then(|metadata| member(metadata, "labels")) {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}
