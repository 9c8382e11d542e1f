//! Secrets.

use base64::Engine as _;
use k8s_openapi::api::core::v1::Secret;

use super::data::{keys_and_size, stays_sealed};
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    fields: &["type"],
    columns: &[
        NAME,
        Column::text("Type", "/type"),
        Column::timed("Data", "string", |object, _| count_members(object, &["/data"]).into()),
        AGE,
    ],
    dropped_if_empty: &[("", &["data", "binaryData"])],
    defaults: &[("type", r#""Opaque""#)],
    derive: encode_texts,
    validate: |object, causes| causes.note(keys_and_size(object)),
    immutable: &[Immutable::Text("type")],
    validate_update: Some(stays_sealed),
    example: r#"{"data": {"a": "YQ=="}}"#,
    ..BuiltinKind::namespaced::<Secret>()
};

fn encode_texts(object: &mut Value) {
    let Some(Value::Object(texts)) = object.as_object_mut().and_then(|members| members.remove("stringData"))
    else {
        return;
    };
    let Some(data) = member(object, "data") else { return };
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(text).into());
    }
}
