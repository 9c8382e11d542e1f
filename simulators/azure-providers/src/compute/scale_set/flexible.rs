//! Flexible orchestration: the members of a scale set are machines of their own, with interfaces and
//! disks of their own ("Orchestration modes for Virtual Machine Scale Sets in Azure").

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::reference::is_of;
use azure_engine::store::State;

/// Whether a scale set has flexible orchestration.
pub(crate) fn is_flexible(set: &Record) -> bool {
    text(&set.body, "properties/orchestrationMode") == Some("Flexible")
}

/// The machines of a set, oldest first; those that are going are left out.
pub(crate) fn members(azure: &AzureState, set: &ResourceId) -> Vec<ResourceId> {
    let mut members: Vec<&Record> =
        all_members(azure, set).filter(|record| record.state != State::Deleting).collect();
    members.sort_by_key(|record| (record.created, record.hidden.get("order").and_then(Value::as_u64)));
    members.into_iter().map(|record| record.id.clone()).collect()
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
    let Some(set) = stored_reference(&record.body, "properties/virtualMachineScaleSet/id") else { return };
    let Some(set) = azure.store.get_mut(&set) else { return };
    set.version += 1;
    if let Some(sku) = set.body.get_mut("sku") {
        let count = sku.get("capacity").and_then(Value::as_u64).unwrap_or_default();
        sku["capacity"] = (count + 1).into();
    }
}
