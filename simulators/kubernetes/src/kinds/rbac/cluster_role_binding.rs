//! ClusterRoleBindings.

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;

use super::bindings::{COLUMNS, DEFAULTS, group_subjects, keep_role, validate_binding};
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    create_on_update: true,
    name: path_segment,
    columns: COLUMNS,
    defaults: DEFAULTS,
    derive: group_subjects,
    validate: |object, causes| validate_binding(false, object, causes),
    validate_update: Some(keep_role),
    example: r#"{"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}"#,
    ..BuiltinKind::cluster::<ClusterRoleBinding>()
};
