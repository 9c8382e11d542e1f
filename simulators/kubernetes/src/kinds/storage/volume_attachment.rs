//! VolumeAttachments.

use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    status: StatusRule::Subresource,
    unconditional_update: false,
    deletion_returns_object: true,
    columns: &[
        NAME,
        Column::text("Attacher", "/spec/attacher"),
        Column::text("PV", "/spec/source/persistentVolumeName"),
        Column::text("Node", "/spec/nodeName"),
        Column::flag("Attached", "/status/attached"),
        AGE,
    ],
    validate: |object, causes| {
        required(object, "/spec/attacher", causes);
        required(object, "/spec/nodeName", causes);
    },
    validate_update: Some(validate_update),
    example: r#"{"spec": {"attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}"#,
    ..BuiltinKind::cluster::<VolumeAttachment>()
};

fn validate_update(old: &Value, new: &Value, causes: &mut Causes) {
    if old.get("spec") != new.get("spec") {
        let at = |member: &str| text_at(new, &format!("/spec/{member}"));
        let value = format!(
            "{{\"Attacher\":{:?},\"Source\":{{\"PersistentVolumeName\":{:?},\"InlineVolumeSpec\":null}},\"NodeName\":{:?}}}",
            at("attacher"),
            at("source/persistentVolumeName"),
            at("nodeName")
        );
        causes.push(Invalid::value("spec", &value, "field is immutable"));
    }
}
