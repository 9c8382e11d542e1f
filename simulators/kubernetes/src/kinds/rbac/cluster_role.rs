//! ClusterRoles.

use k8s_openapi::api::rbac::v1::ClusterRole;

use super::rules::validate_rules;
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    create_on_update: true,
    name: path_segment,
    validate: |object, causes| validate_rules(false, object, causes),
    example: r#"{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}"#,
    ..BuiltinKind::cluster::<ClusterRole>()
};
