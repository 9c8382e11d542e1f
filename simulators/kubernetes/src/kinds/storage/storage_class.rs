//! StorageClasses.

use k8s_openapi::api::storage::v1::StorageClass;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["sc"],
    deletion_returns_object: true,
    columns: &[
        Column::derived("Name", storage_class_name),
        Column::text("Provisioner", "/provisioner"),
        Column::text_or("ReclaimPolicy", "/reclaimPolicy", "Delete"),
        Column::text_or("VolumeBindingMode", "/volumeBindingMode", "Immediate"),
        Column::flag("AllowVolumeExpansion", "/allowVolumeExpansion"),
        AGE,
    ],
    defaults: &[("reclaimPolicy", r#""Delete""#), ("volumeBindingMode", r#""Immediate""#)],
    validate,
    immutable: &[
        Immutable::Json("parameters"),
        Immutable::Text("provisioner"),
        Immutable::Text("reclaimPolicy"),
        Immutable::Text("volumeBindingMode"),
    ],
    example: r#"{"provisioner": "example.com/p"}"#,
    ..BuiltinKind::cluster::<StorageClass>()
};

fn storage_class_name(object: &Value) -> String {
    let name = text_at(object, "/metadata/name");
    let default = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";
    if text_at(object, default) == "true" { format!("{name} (default)") } else { name.to_owned() }
}

fn validate(object: &Value, causes: &mut Causes) {
    let provisioner = text_at(object, "/provisioner");
    if provisioner.is_empty() {
        causes.push(Invalid::required("provisioner", ""));
    } else if let Err(why) = qualified_name(&provisioner.to_lowercase()) {
        causes.push(Invalid::text("provisioner", provisioner, &why));
    }
    one_of(object, "/reclaimPolicy", &["Delete", "Retain"], causes);
    one_of(object, "/volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], causes);
}
