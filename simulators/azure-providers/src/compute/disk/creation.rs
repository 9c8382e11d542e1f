//! Disks that are made with a machine.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::disk::sku::{SKUS, tier};
use crate::compute::tables::codes::CONFLICTING_USER_INPUT;
use crate::compute::tables::type_names::DISK_TYPE;
use azure_engine::document::{fill, into_object};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Record};

/// Refuses a name for a disk that is to be made where there is one of that name: it would have two owners.
pub(crate) fn check_name_free(
    azure: &AzureState,
    machine: &ResourceId,
    name: Option<&Value>,
    member: &str,
) -> Result<(), Refusal> {
    let name = name.and_then(Value::as_str).unwrap_or_default();
    let group = machine.group_name().unwrap_or_default();
    let id = ResourceId::group(machine.subscription_id(), group).resource("Microsoft.Compute", "disks", name);
    if name.is_empty() || azure.store.get(&id).is_none() {
        return Ok(());
    }
    Err(CONFLICTING_USER_INPUT
        .says(format_args!(
            "Disk {name} already exists in resource group {group}. Only CreateOption.Attach is supported."
        ))
        .at(member))
}

/// Creates a disk that comes with a machine: its system disk, or an empty data disk. Ready at once.
pub(crate) fn create(azure: &mut AzureState, id: &ResourceId, body: Value) {
    let Some(disks) = azure.resource_type(DISK_TYPE) else { return };
    let mut record = Record::new(disks, id, body, azure.now());
    provision(&mut record);
    azure.insert(record);
}

/// The disk is there: what was left open gets its default.
pub(crate) fn provision(record: &mut Record) {
    record.hidden.insert("provisioned".into(), true.into());
    if let Some(body) = record.body.as_object_mut() {
        let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
        fill(&mut sku, "name", SKUS[0]);
        let tier = tier(sku.get("name").and_then(Value::as_str).unwrap_or_default());
        sku.insert("tier".into(), tier.into());
        body.insert("sku".into(), Value::Object(sku));
    }
}
