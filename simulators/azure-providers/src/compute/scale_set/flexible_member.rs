//! The machines of a flexible set, created from its model.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::creation::entries_mut;
use crate::compute::machine::interface_configuration;
use crate::compute::machine::interface_configuration::Interfaces;
use crate::compute::tables::type_names::MACHINE_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, at, fill_at, remove_at, text};
use azure_engine::provider::{AzureState, Proposal, Record};
use azure_engine::refusal::Result;
use azure_engine::store::State;

/// Checks what only a flexible set's model needs.
pub(crate) fn check_profile(id: &ResourceId, profile: &Value) -> Result<()> {
    if at(profile, "storageProfile/imageReference").is_none() {
        return Err(missing("storageProfile.imageReference"));
    }
    interface_configuration::check_version(id, &profile["networkProfile"])
}

/// A machine that a set needs.
pub(crate) struct Member {
    id: ResourceId,
    interfaces: Interfaces,
    document: Object,
}

/// The machine with that number, from the set's document.
pub(crate) fn member(
    azure: &AzureState,
    set_id: &ResourceId,
    body: &Value,
    number: u64,
    zone: Option<String>,
) -> Member {
    let subject = format!("{}/{number}", text(body, "properties/uniqueId").unwrap_or_default());
    let unique: String = azure.seed.guid("member", &subject, 0).chars().take(8).collect();
    let group = ResourceId::group(set_id.subscription_id(), set_id.group_name().unwrap_or_default());
    let id = group.resource("Microsoft.Compute", "virtualMachines", &format!("{}_{unique}", set_id.name()));
    let profile = at(body, "properties/virtualMachineProfile").cloned().unwrap_or_default();
    let location = text(body, "location").unwrap_or_default();
    let interfaces = Interfaces::of(&profile["networkProfile"], set_id, location, &unique);
    let prefix = text(&profile, "osProfile/computerNamePrefix").unwrap_or_default();
    let tail = azure.seed.guid("computer", &subject, 0).replace('-', "").to_ascii_uppercase();
    let computer = format!("{prefix}{}", tail.get(..6).unwrap_or_default());
    let mut properties = json!({
        "hardwareProfile": { "vmSize": at(body, "sku/name") },
        "networkProfile": { "networkInterfaces": interfaces.entries("Delete") },
        "virtualMachineScaleSet": { "id": set_id },
    });
    for member in [
        "storageProfile",
        "osProfile",
        "priority",
        "evictionPolicy",
        "billingProfile",
        "diagnosticsProfile",
        "licenseType",
    ] {
        if let Some(value) = profile.get(member) {
            properties[member] = value.clone();
        }
    }
    remove_at(&mut properties, "osProfile/computerNamePrefix");
    properties["osProfile"]["computerName"] = computer.into();
    for disk in entries_mut(&mut properties) {
        // Names of disks in a model would be the same for all members.
        remove_at(disk, "name");
        fill_at(disk, "deleteOption", "Delete");
    }
    let mut document = Object::new();
    document.insert("location".into(), location.into());
    document.insert("properties".into(), properties);
    if let Some(tags) = body.get("tags") {
        document.insert("tags".into(), tags.clone());
    }
    if let Some(zone) = zone {
        document.insert("zones".into(), json!([zone]));
    }
    Member { id, interfaces, document }
}

/// Whether a member could be made from a set's document now.
pub(crate) fn check_member(azure: &AzureState, set: &ResourceId, body: &Value) -> Result<()> {
    let next = azure.store.get(set).and_then(|set| set.hidden.get("next")?.as_u64()).unwrap_or_default();
    let Member { id, interfaces, mut document } = member(azure, set, body, next, None);
    interfaces.check(azure)?;
    // The set itself may be what this write makes.
    remove_at(&mut document["properties"], "virtualMachineScaleSet");
    let machines = azure.resource_type(MACHINE_TYPE).ok_or_else(|| azure.not_found(&id))?;
    azure.judge(machines, Proposal::of_service(&id, document)).map(drop)
}

/// Makes the next machine of a set from its model, with its interfaces.
pub(crate) fn create(azure: &mut AzureState, set_id: &ResourceId, zone: Option<String>) {
    let Some(set) = azure.store.get_mut(set_id) else { return };
    let number = set.hidden.get("next").and_then(Value::as_u64).unwrap_or_default();
    set.hidden.insert("next".into(), (number + 1).into());
    let (set_id, body) = (set.id.clone(), set.body.clone());
    let Member { id, interfaces, document } = member(azure, &set_id, &body, number, zone);
    let Some(machines) = azure.resource_type(MACHINE_TYPE) else { return };
    // All refusals were checked with the set's write.
    let Ok(stored) = azure.judge(machines, Proposal::of_service(&id, document)) else { return };
    if interfaces.make(azure).is_err() {
        return;
    }
    let mut record = Record::new(machines, &id, stored, azure.now());
    record.state = State::Creating;
    record.hidden.insert("order".into(), number.into());
    azure.insert(record);
    machines.after_write(azure, &id, None);
}
