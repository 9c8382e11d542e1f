//! CSIDrivers.

use k8s_openapi::api::storage::v1::CSIDriver;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    unconditional_update: false,
    deletion_returns_object: true,
    columns: COLUMNS,
    defaults: DEFAULTS,
    example: r#"{"spec": {"attachRequired": true}}"#,
    ..BuiltinKind::cluster::<CSIDriver>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::flag("AttachRequired", "/spec/attachRequired"),
    Column::flag("PodInfoOnMount", "/spec/podInfoOnMount"),
    Column::flag("StorageCapacity", "/spec/storageCapacity"),
    Column::derived("TokenRequests", audiences),
    Column::flag("RequiresRepublish", "/spec/requiresRepublish"),
    Column::derived("Modes", |driver| joined(driver, "/spec/volumeLifecycleModes")),
    AGE,
];

const DEFAULTS: &[Row] = &[
    ("spec.attachRequired", "true"),
    ("spec.podInfoOnMount", "false"),
    ("spec.storageCapacity", "false"),
    ("spec.fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
    ("spec.volumeLifecycleModes", r#"["Persistent"]"#),
    ("spec.requiresRepublish", "false"),
    ("spec.seLinuxMount", "false"),
];

fn audiences(object: &Value) -> String {
    let requests = list_at(object, "/spec/tokenRequests");
    let audiences: Vec<&str> = requests.iter().map(|request| text_at(request, "/audience")).collect();
    or(&audiences.join(","), UNSET).to_owned()
}
