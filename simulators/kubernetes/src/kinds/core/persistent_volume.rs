//! PersistentVolumes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;

use super::volumes::{protect_in_use, validate_access_modes};
use crate::kinds::prelude::*;
use crate::object::{rfc3339_seconds, value_at};

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["pv"],
    status: StatusRule::Subresource,
    deletion_returns_object: true,
    columns: COLUMNS,
    defaults: &[
        ("spec.persistentVolumeReclaimPolicy", r#""Retain""#),
        ("spec.volumeMode", r#""Filesystem""#),
        ("spec.hostPath.type", r#""""#),
        ("spec.azureDisk.cachingMode", r#""ReadWrite""#),
        ("spec.azureDisk.fsType", r#""ext4""#),
        ("spec.azureDisk.readOnly", "false"),
        ("spec.azureDisk.kind", r#""Shared""#),
        ("spec.iscsi.iscsiInterface", r#""default""#),
        ("status", "{}"),
        ("status.phase", r#""Pending""#),
    ],
    prepare_create: |object| protect_in_use(object, "kubernetes.io/pv-protection"),
    validate,
    validate_update: Some(validate_update),
    date_status,
    example: r#"{"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}}"#,
    ..BuiltinKind::cluster::<PersistentVolume>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::text("Capacity", "/spec/capacity/storage"),
    Column::derived("Access Modes", |volume| access_modes_cell(volume, "/spec/accessModes")),
    Column::text("Reclaim Policy", "/spec/persistentVolumeReclaimPolicy"),
    Column::derived("Status", |volume| phase(volume).to_owned()),
    Column::derived("Claim", claim),
    Column::text("StorageClass", "/spec/storageClassName"),
    VOLUME_ATTRIBUTES_CLASS,
    Column::text("Reason", "/status/reason"),
    AGE,
    VOLUME_MODE,
];

fn claim(object: &Value) -> String {
    let at = |member: &str| text_at(object, &format!("/spec/claimRef/{member}"));
    if at("name").is_empty() { String::new() } else { format!("{}/{}", at("namespace"), at("name")) }
}

fn validate(object: &Value, causes: &mut Causes) {
    const OTHERS: &[&str] = &[
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    validate_access_modes(object, "", causes);
    if members(object, "/spec/capacity").next().is_none() {
        causes.push(Invalid::required("spec.capacity", ""));
        let why = "Unsupported value: null: supported values: \"storage\"";
        causes.push(Invalid::new("spec.capacity", why));
    } else if object.pointer("/spec/capacity/storage").is_none() {
        let given: Vec<&str> = members(object, "/spec/capacity").map(|(name, _)| name.as_str()).collect();
        causes.push(Invalid::unsupported("spec.capacity", &given.join(","), &["storage"]));
    }
    let sources = members(object, "/spec")
        .filter(|(member, value)| !OTHERS.contains(&member.as_str()) && value.is_object())
        .count();
    match sources {
        0 => causes.push(Invalid::required("spec", "must specify a volume type")),
        1 => {}
        _ => causes.push(Invalid::forbidden("spec", "may not specify more than 1 volume type")),
    }
    one_of(object, "/spec/persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], causes);
    one_of(object, "/spec/volumeMode", &["Block", "Filesystem"], causes);
}

fn validate_update(old: &Value, new: &Value, causes: &mut Causes) {
    const FREE: &[&str] = &[
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "nodeAffinity",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if spec_without(old, FREE) != spec_without(new, FREE) {
        let why = "spec.persistentvolumesource is immutable after creation";
        causes.push(Invalid::forbidden("spec.persistentvolumesource", why));
    }
    let mode = |object: &Value| text_at(object, "/spec/volumeMode").to_owned();
    if mode(old) != mode(new) {
        causes.push(Invalid::text("spec.volumeMode", &mode(new), "field is immutable"));
    }
}

/// Sets the time of a volume's phase change, unless the client has set it.
fn date_status(old: Option<&Value>, object: &mut Value, now: Timestamp) {
    const TIME: &str = "lastPhaseTransitionTime";
    let at =
        |object: &Value, member: &str| value_at(object, &["status", member]).cloned().unwrap_or_default();
    let same = old.is_some_and(|old| at(old, "phase") == at(object, "phase"));
    let noted = old.map(|old| at(old, TIME)).unwrap_or_default();
    let given = at(object, TIME);
    let time = match same {
        true if given.is_null() => noted,
        false if given.is_null() || given == noted => Value::from(rfc3339_seconds(now)),
        _ => return,
    };
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        && !time.is_null()
    {
        status.insert(TIME.to_owned(), time);
    }
}
