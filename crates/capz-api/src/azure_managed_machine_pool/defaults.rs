//! Defaults of an AzureManagedMachinePool.

use serde_json::{Value, json};

use super::deletion::MODE_LABEL;
use super::types::AzureManagedMachinePoolSpec;
use crate::text::{fill, keep as keep_text};

/// The operating system of pools that name none.
pub(super) const LINUX: &str = "Linux";

/// Sets the defaults of the pool `name`; `old` is its previous version, whose members set by the controller stay.
pub fn set_defaults(
    name: &str,
    spec: &mut AzureManagedMachinePoolSpec,
    old: Option<&AzureManagedMachinePoolSpec>,
) {
    if let Some(old) = old {
        keep_text(&mut spec.subnet_name, &old.subnet_name);
        if spec.provider_id_list.is_none() {
            spec.provider_id_list.clone_from(&old.provider_id_list);
        }
    }
    // An object whose name the API server generates has none yet.
    if !name.is_empty() {
        fill(&mut spec.name, name);
    }
    fill(&mut spec.os_type, LINUX);
}

/// Labels an object with the mode of its pool, at `mode`, by which System pools are counted.
pub(crate) fn label_mode(object: &mut Value, mode: &str) {
    let Some(mode) = object.pointer(mode).and_then(Value::as_str).map(str::to_owned) else { return };
    let labels = &mut object["metadata"]["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[MODE_LABEL] = json!(mode);
}

/// The older one of two, with the defaults of the newer one: objects that were stored before a default existed compare
/// equal.
pub(super) fn completed(name: &str, old: &AzureManagedMachinePoolSpec) -> AzureManagedMachinePoolSpec {
    let mut completed = old.clone();
    set_defaults(name, &mut completed, None);
    completed
}
