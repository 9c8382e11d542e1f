//! CSIStorageCapacities.

use k8s_openapi::api::storage::v1::CSIStorageCapacity;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    columns: &[
        NAME,
        Column::text("StorageClassName", "/storageClassName"),
        Column::text_or("Capacity", "/capacity", UNSET),
    ],
    validate: |object, causes| required(object, "/storageClassName", causes),
    immutable: &[Immutable::Text("storageClassName")],
    example: r#"{"storageClassName": "s", "capacity": "1Gi"}"#,
    ..BuiltinKind::namespaced::<CSIStorageCapacity>()
};
