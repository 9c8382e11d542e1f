//! PodTemplates.

use k8s_openapi::api::core::v1::PodTemplate;

use crate::kinds::prelude::*;
use crate::kinds::shared::pod_spec;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    generation: Generation::Specification,
    deletion_returns_object: true,
    columns: &[
        NAME,
        Column::derived("Containers", |object| container_cell(object, "/template/spec", "/name")),
        Column::derived("Images", |object| container_cell(object, "/template/spec", "/image")),
        Column::derived("Pod Labels", |object| labels_cell(object, "/template/metadata/labels")),
    ],
    pod_spec: Some("/template/spec"),
    validate: |object, causes| {
        let spec = object.pointer("/template/spec").unwrap_or(&Value::Null);
        pod_spec::validate(spec, "template.spec", Restarts::Any, causes);
    },
    example: r#"{"template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}}"#,
    ..BuiltinKind::namespaced::<PodTemplate>()
};
