//! Roles.

use k8s_openapi::api::rbac::v1::Role;

use super::rules::validate_rules;
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    create_on_update: true,
    name: path_segment,
    validate: |object, causes| validate_rules(true, object, causes),
    example: r#"{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}"#,
    ..BuiltinKind::namespaced::<Role>()
};
