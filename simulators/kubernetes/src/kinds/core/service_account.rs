//! ServiceAccounts. Their tokens are in [`crate::identity`].

use k8s_openapi::api::core::v1::ServiceAccount;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["sa"],
    subresources: &[Subresource {
        name: "token",
        takes: (Some(("authentication.k8s.io", "v1")), "TokenRequest"),
        verb: "create",
    }],
    deletion_returns_object: true,
    columns: &[NAME, AGE],
    example: r#"{"secrets": [{"name": "a"}]}"#,
    ..BuiltinKind::namespaced::<ServiceAccount>()
};
