//! PersistentVolumeClaims.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use super::volumes::{protect_in_use, validate_access_modes};
use crate::kinds::prelude::*;
use crate::object::quantity::Quantity;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["pvc"],
    status: StatusRule::Subresource,
    deletion_returns_object: true,
    columns: COLUMNS,
    defaults: &[("spec.volumeMode", r#""Filesystem""#), ("status", "{}"), ("status.phase", r#""Pending""#)],
    prepare_create: |object| protect_in_use(object, "kubernetes.io/pvc-protection"),
    validate,
    validate_update: Some(validate_update),
    example: r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
    ..BuiltinKind::namespaced::<PersistentVolumeClaim>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::derived("Status", |claim| phase(claim).to_owned()),
    Column::text("Volume", "/spec/volumeName"),
    Column::derived("Capacity", |claim| if_bound(claim, text_at(claim, "/status/capacity/storage"))),
    Column::derived("Access Modes", |claim| {
        if_bound(claim, &access_modes_cell(claim, "/status/accessModes"))
    }),
    Column::text("StorageClass", "/spec/storageClassName"),
    VOLUME_ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

/// A value that is shown only for a claim with a volume.
fn if_bound(object: &Value, shown: &str) -> String {
    if text_at(object, "/spec/volumeName").is_empty() { String::new() } else { shown.to_owned() }
}

fn validate(object: &Value, causes: &mut Causes) {
    validate_access_modes(object, "at least 1 access mode is required", causes);
    let size = text_at(object, "/spec/resources/requests/storage");
    if size.is_empty() {
        causes.push(Invalid::required("spec.resources[storage]", ""));
    } else if Quantity::parse(size).is_some_and(|size| size.nanos() <= 0) {
        causes.push(Invalid::text("spec.resources[storage]", size, "must be greater than zero"));
    }
    one_of(object, "/spec/volumeMode", &["Block", "Filesystem"], causes);
    let class = text_at(object, "/spec/storageClassName");
    if !class.is_empty() {
        causes.check("spec.storageClassName", class, dns_subdomain);
    }
}

fn validate_update(old: &Value, new: &Value, causes: &mut Causes) {
    const WHY: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let (mut before, mut after) = (
        spec_without(old, &["volumeAttributesClassName"]),
        spec_without(new, &["volumeAttributesClassName"]),
    );
    // The volume name and a missing storage class may be set once.
    for member in ["volumeName", "storageClassName"] {
        if before.get(member).is_none_or(|value| value.is_null() || value == "") {
            before.remove(member);
            after.remove(member);
        }
    }
    let bound = text_at(old, "/status/phase") == "Bound";
    let size = |spec: &mut Map<String, Value>| {
        let requests = spec.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        let storage = requests.and_then(Value::as_object_mut).and_then(|requests| requests.remove("storage"));
        storage.and_then(|storage| Quantity::parse(storage.as_str()?)).map(|size| size.nanos())
    };
    if bound {
        let (was, is) = (size(&mut before), size(&mut after));
        if is < was {
            let why = "field can not be less than previous value";
            causes.push(Invalid::forbidden("spec.resources.requests.storage", why));
        }
    }
    if before != after {
        causes.push(Invalid::forbidden("spec", WHY));
    }
}
