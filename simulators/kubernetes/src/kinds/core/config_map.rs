//! ConfigMaps.

use k8s_openapi::api::core::v1::ConfigMap;

use super::data::{keys_and_size, stays_sealed};
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["cm"],
    columns: &[
        NAME,
        Column::timed("Data", "string", |object, _| count_members(object, &["/data", "/binaryData"]).into()),
        AGE,
    ],
    dropped_if_empty: &[("", &["data", "binaryData"])],
    validate: |object, causes| causes.note(keys_and_size(object)),
    validate_update: Some(stays_sealed),
    example: r#"{"data": {"a": "1"}}"#,
    ..BuiltinKind::namespaced::<ConfigMap>()
};
