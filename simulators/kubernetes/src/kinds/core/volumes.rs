//! What volumes and claims have in common.

use crate::kinds::prelude::*;
use crate::object::{finalizers, set_finalizers};

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates the access modes of a volume or claim.
pub(crate) fn validate_access_modes(object: &Value, why: &str, causes: &mut Causes) {
    let modes = list_at(object, "/spec/accessModes");
    if modes.is_empty() {
        causes.push(Invalid::required("spec.accessModes", why));
    }
    for mode in modes.iter().filter_map(Value::as_str) {
        causes.check_one_of("spec.accessModes", mode, ACCESS_MODES);
    }
}

/// Protects an object while it is in use (the admission plugin `StorageObjectInUseProtection`).
pub(crate) fn protect_in_use(object: &mut Value, finalizer: &str) {
    let mut held = finalizers(object);
    if !held.iter().any(|one| one == finalizer) {
        held.push(finalizer.to_owned());
        set_finalizers(object, &held);
    }
}
