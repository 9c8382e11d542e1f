//! Uniform orchestration: instances are made from the model of their set, and follow it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::creation;
use crate::compute::disk::creation::disk_id;
use crate::compute::machine::{data_disk, guest, image, network_profile};
use crate::compute::scale_set::instance_address::{address, set_of};
use crate::compute::scale_set::instance_public_ip;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::document::{Object, at, into_object, items, remove_at, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::State;

/// A number in base 36, of six digits, as computer names have it.
fn computer_number(number: u64) -> String {
    let digit = |place| char::from_digit((number / 36_u64.pow(place) % 36) as u32, 36).unwrap_or('0');
    (0..6).rev().map(digit).collect()
}

/// Makes the next instance of a set from its model. Numbers are never used twice.
pub(crate) fn create(azure: &mut AzureState, set_id: &ResourceId, zone: Option<String>) {
    let created = azure.now();
    let Some(instances) = azure.resource_type(INSTANCE_TYPE) else { return };
    let Some(set) = azure.store.get_mut(set_id) else { return };
    let number = set.hidden.get("next").and_then(Value::as_u64).unwrap_or_default();
    set.hidden.insert("next".into(), (number + 1).into());
    let (set_id, body) = (set.id.clone(), set.body.clone());
    let model = set.hidden.get("model").cloned().unwrap_or_default();
    let id = set_id.child("virtualMachines", &number.to_string());
    let mut record = Record::new(instances, &id, json!({ "location": body["location"] }), created);
    record.state = State::Creating;
    if let Some(zone) = zone {
        record.body["zones"] = json!([zone]);
    }
    let prefix =
        text(&body, "properties/virtualMachineProfile/osProfile/computerNamePrefix").unwrap_or_default();
    let computer = format!("{prefix}{}", computer_number(number));
    record.hidden.insert("computerName".into(), computer.into());
    record.hidden.insert("model".into(), model);
    copy_model(azure, &set_id, &body, &mut record);
    azure.insert(record);
    creation::create_asked_for(azure, &id);
    allocate(azure, &id);
    guest::start(azure, &id, true);
}

/// Copies the model into an instance.
fn copy_model(azure: &AzureState, set: &ResourceId, model: &Value, record: &mut Record) {
    let profile = at(model, "properties/virtualMachineProfile").cloned().unwrap_or_default();
    let mut os = profile["osProfile"].clone();
    remove_at(&mut os, "computerNamePrefix");
    // Custom data stay with the model: there may be thousands of instances.
    remove_at(&mut os, "customData");
    if let Some(computer) = record.hidden.get("computerName") {
        os["computerName"] = computer.clone();
    }
    let mut storage = profile["storageProfile"].clone();
    // The model's disks are made for each instance; those that it has stay as they are.
    storage["dataDisks"] = match at(&record.body, "properties/storageProfile/dataDisks") {
        Some(disks) => disks.clone(),
        None => data_disk::of_model(azure, &record.id, items(&storage, "dataDisks")),
    };
    let image = image::of(&storage);
    image::name_version(&mut storage, &image);
    // Numbers of instances are used once in the life of a set, and every set has its own unique id.
    let subject = format!("{}/{}", text(model, "properties/uniqueId").unwrap_or_default(), record.id.name());
    let unique = azure.seed.guid("os disk", &subject, 0).replace('-', "");
    let disk = format!("{0}_{0}_{1}_OS__1_{unique}", set.name(), record.id.name());
    storage["osDisk"]["managedDisk"]["id"] = disk_id(set, &disk).as_str().into();
    storage["osDisk"]["name"] = disk.into();
    let configurations = items(&profile, "networkProfile/networkInterfaceConfigurations");
    let mut properties = json!({
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "hardwareProfile": { "vmSize": at(model, "sku/name") },
        "networkProfileConfiguration": { "networkInterfaceConfigurations": configurations },
        "osProfile": os,
        "resilientVMDeletionStatus": "Disabled",
        "storageProfile": storage,
        "vmId": azure.seed.guid("vm", &subject, 0),
    });
    if let Some(diagnostics) = profile.get("diagnosticsProfile") {
        properties["diagnosticsProfile"] = diagnostics.clone();
    }
    record.body["sku"] = json!({ "name": at(model, "sku/name"), "tier": at(model, "sku/tier") });
    // What was set on the instance alone (its protection) stays.
    match record.body.get_mut("properties") {
        Some(Value::Object(old)) => old.extend(into_object(properties)),
        _ => record.body["properties"] = properties,
    }
}

/// Whether an instance matches the model of its set.
pub(crate) fn follows(record: &Record, set: &Record) -> bool {
    let model =
        at(&set.body, "properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations");
    at(&record.body, "properties/networkProfileConfiguration/networkInterfaceConfigurations") == model
        && record.hidden.get("model") == set.hidden.get("model")
}

/// Brings an instance to the latest model.
pub(crate) fn apply_model(azure: &mut AzureState, id: &ResourceId) {
    let (Some(set), Some(old)) = (set_of(azure, id), azure.store.get(id)) else { return };
    if old.resource_type.name() != INSTANCE_TYPE {
        return;
    }
    let mut record = old.clone();
    record.hidden.insert("model".into(), set.hidden.get("model").cloned().unwrap_or_default());
    copy_model(azure, &set.id, &set.body, &mut record);
    if record.body != old.body {
        record.version += 1;
        record.state = if record.state == State::Succeeded { State::Updating } else { record.state };
        azure.insert(record);
        allocate(azure, id);
    } else if let Some(stored) = azure.store.get_mut(id) {
        stored.hidden = record.hidden;
    }
}

/// Gives every IP configuration an address, keeps those it has, returns those of configurations
/// that are gone.
pub(crate) fn allocate(azure: &mut AzureState, id: &ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let mut kept = Object::new();
    let mut promised = BTreeSet::new();
    let profile = at(&record.body, "properties/networkProfileConfiguration");
    for (nic, ip) in profile.into_iter().flat_map(network_profile::ip_configurations) {
        let Some(subnet) = network_profile::subnet(ip) else { continue };
        let prefixes = crate::network::subnet_prefixes(azure, &subnet);
        let held = address(record, nic, ip).and_then(|held| held.parse::<IpAddr>().ok());
        let address = match held.filter(|held| prefixes.iter().any(|prefix| prefix.contains(held))) {
            Some(held) => held,
            // The write checked that there is room; a subnet may have filled up since.
            None => match crate::network::free_address(azure, &subnet, network_profile::is_v6(ip), &promised)
            {
                Ok(free) => free,
                Err(_) => continue,
            },
        };
        promised.insert(address);
        kept.insert(network_profile::address_key(nic, ip), address.to_string().into());
    }
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.insert("addresses".into(), Value::Object(kept));
    }
    instance_public_ip::allocate(azure, id);
    azure.changed(id);
}

#[cfg(test)]
mod tests {
    use super::computer_number;

    #[test]
    fn computer_names_count_in_base_36() {
        for (number, name) in [(0, "000000"), (9, "000009"), (10, "00000a"), (35, "00000z"), (36, "000010")] {
            assert_eq!(computer_number(number), name);
        }
    }
}
