//! RuntimeClasses.

use k8s_openapi::api::node::v1::RuntimeClass;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    unconditional_update: false,
    columns: &[NAME, Column::text("Handler", "/handler"), AGE],
    validate: |object, causes| required(object, "/handler", causes),
    immutable: &[Immutable::Text("handler")],
    example: r#"{"handler": "h"}"#,
    ..BuiltinKind::cluster::<RuntimeClass>()
};
