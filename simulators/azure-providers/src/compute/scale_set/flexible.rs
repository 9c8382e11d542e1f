//! Flexible orchestration: the members of a scale set are machines of their own, with interfaces and
//! disks of their own ("Orchestration modes for Virtual Machine Scale Sets in Azure").

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::reference::is_of;

/// Whether a scale set has flexible orchestration.
pub(crate) fn is_flexible(set: &Record) -> bool {
    text(&set.body, "properties/orchestrationMode") == Some("Flexible")
}

/// The set that a machine of its own is in.
pub(crate) fn set_of(machine: &Record) -> Option<ResourceId> {
    stored_reference(&machine.body, "properties/virtualMachineScaleSet/id")
}

/// The machines of a set, in the order of their ids.
pub(crate) fn all_members<'a>(azure: &'a AzureState, set: &ResourceId) -> impl Iterator<Item = &'a Record> {
    azure
        .store
        .referrers(set)
        .filter(|user| is_of(&user.from, "/virtualmachines/"))
        .filter_map(|user| azure.store.get(&user.from))
}

/// A machine that a client put into a set counts in its capacity.
pub(crate) fn joined(azure: &mut AzureState, machine: &ResourceId) {
    let Some(record) = azure.store.get(machine).filter(|record| !record.hidden.contains_key("order")) else {
        return;
    };
    let Some(set) = set_of(record).and_then(|set| azure.store.get_mut(&set)) else { return };
    set.version += 1;
    if let Some(sku) = set.body.get_mut("sku") {
        let count = sku.get("capacity").and_then(Value::as_u64).unwrap_or_default();
        sku["capacity"] = (count + 1).into();
    }
}
