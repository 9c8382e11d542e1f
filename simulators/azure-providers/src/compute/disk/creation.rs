//! Disks that are created together with a machine.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::ownership;
use crate::compute::disk::sku::SKUS;
use crate::compute::machine::image;
use crate::compute::shared::zones;
use crate::compute::tables::codes::CONFLICTING_USER_INPUT;
use crate::compute::tables::type_names::DISK_TYPE;
use azure_engine::document::{at, name, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;

/// The id of a disk in the group of its machine.
pub(crate) fn disk_id(machine: &ResourceId, name: &str) -> ResourceId {
    let group = ResourceId::group(machine.subscription_id(), machine.group_name().unwrap_or_default());
    group.resource("Microsoft.Compute", "disks", name)
}

/// Refuses the name of a new disk where a disk of that name exists: it would have two owners.
pub(crate) fn check_name_free(
    azure: &AzureState,
    machine: &ResourceId,
    disk: &Value,
    member: &str,
) -> Result<()> {
    let (name, group) = (name(disk), machine.group_name().unwrap_or_default());
    let taken = !name.is_empty() && azure.store.get(&disk_id(machine, name)).is_some();
    let text = format_args!(
        "Disk {name} already exists in resource group {group}. Only CreateOption.Attach is supported."
    );
    CONFLICTING_USER_INPUT.says_when(taken, text).map_err(|refusal| refusal.at(member))
}

/// The entries of a machine's disks in its properties.
pub(crate) fn entries_mut(properties: &mut Value) -> Vec<&mut Value> {
    let mut entries = Vec::new();
    let storage = properties.get_mut("storageProfile").and_then(Value::as_object_mut);
    for (member, value) in storage.into_iter().flatten() {
        match (member.as_str(), value) {
            ("osDisk", system) => entries.push(system),
            ("dataDisks", Value::Array(list)) => entries.extend(list),
            _ => {}
        }
    }
    entries
}

/// Creates the disks of a machine's entries, ready at once, and puts their ids into the entries.
pub(crate) fn create_asked_for(azure: &mut AzureState, machine: &ResourceId) {
    let now = azure.now();
    let Some(record) = azure.store.get(machine) else { return };
    let Some(disks) = azure.resource_type(DISK_TYPE) else { return };
    let (location, mut body, mut made) = (azure.location(machine), record.body.clone(), Vec::new());
    let zones = record.body.get("zones");
    let generation = image::of(&record.body["properties"]["storageProfile"]).generation;
    for entry in entries_mut(&mut body["properties"]) {
        if at(entry, "managedDisk/id").is_some() {
            continue;
        }
        let (id, kind) =
            (disk_id(machine, name(entry)), text(entry, "managedDisk/storageAccountType").unwrap_or(SKUS[0]));
        let option = if entry.get("lun").is_some() { "Empty" } else { "FromImage" };
        let mut disk = json!({
            "location": location,
            "sku": { "name": kind },
            "properties": { "creationData": { "createOption": option }, "diskSizeGB": entry.get("diskSizeGB") },
        });
        if let Some(system) = entry.get("osType") {
            disk["properties"]["osType"] = system.clone();
            disk["properties"]["hyperVGeneration"] = generation.into();
        }
        if let Some(set) = at(entry, "managedDisk/diskEncryptionSet/id") {
            let of_set = stored_reference(entry, "managedDisk/diskEncryptionSet/id");
            let of_set = of_set.and_then(|set| at(&azure.store.get(&set)?.body, "properties/encryptionType"));
            disk["properties"]["encryption"] = json!({ "diskEncryptionSetId": set, "type": of_set });
        }
        // A machine's zone is its disks' zone, too, but for kinds that are in all of them.
        if let Some(zones) = zones.filter(|_| !zones::is_redundant(kind)) {
            disk["zones"] = zones.clone();
        }
        entry["managedDisk"]["id"] = id.as_str().into();
        let mut disk = Record::new(disks, &id, disk, now);
        ownership::changed_at(&mut disk, &now.to_string());
        made.push(disk);
    }
    if made.is_empty() {
        return;
    }
    made.into_iter().for_each(|disk| azure.insert(disk));
    if let Some(record) = azure.store.get_mut(machine) {
        record.body = body;
    }
    azure.changed(machine);
}
