//! The machines of a flexible set, as they are made from its model.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine;
use crate::compute::machine::interface_configuration;
use crate::compute::machine::interface_configuration::Interfaces;
use crate::compute::scale_set::flexible::all_members;
use crate::compute::tables::type_names::MACHINE_TYPE;
use azure_engine::document::{Object, at, fill, into_object, strip, text};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Proposal, Record};
use azure_engine::store::State;

/// Checks what only a flexible set's model needs.
pub(crate) fn check_profile(id: &ResourceId, profile: &Object) -> Result<(), Refusal> {
    let storage = profile.get("storageProfile");
    if storage.is_none_or(|storage| storage.get("imageReference").is_none()) {
        return Err(Refusal::invalid_parameter(
            "storageProfile.imageReference",
            "Required parameter 'storageProfile.imageReference' is missing (null).",
        ));
    }
    interface_configuration::check_version(id, profile.get("networkProfile"))
}

/// A machine that a set is to have.
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
    let network = at(&profile, "networkProfile").cloned().unwrap_or_default();
    let interfaces = Interfaces::of(&network, &group, location, &unique);
    let mut os = profile.get("osProfile").cloned().map(into_object).unwrap_or_default();
    let prefix = text(&profile, "osProfile/computerNamePrefix").unwrap_or_default().to_owned();
    strip(&mut os, &["computerNamePrefix"]);
    let tail: String =
        azure.seed.guid("computer", &subject, 0).chars().filter(|c| *c != '-').take(6).collect();
    os.insert("computerName".into(), format!("{prefix}{}", tail.to_ascii_uppercase()).into());
    let mut storage = profile.get("storageProfile").cloned().map(into_object).unwrap_or_default();
    // Names of disks in a model would be the same for all members.
    if let Some(disk) = storage.get_mut("osDisk").and_then(Value::as_object_mut) {
        strip(disk, &["name"]);
        fill(disk, "deleteOption", "Delete");
    }
    for disk in storage.get_mut("dataDisks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(disk) = disk.as_object_mut() {
            strip(disk, &["name"]);
            fill(disk, "deleteOption", "Delete");
        }
    }
    let mut properties = json!({
        "hardwareProfile": { "vmSize": at(body, "sku/name") },
        "storageProfile": storage,
        "osProfile": os,
        "networkProfile": { "networkInterfaces": interfaces.entries("Delete") },
        "virtualMachineScaleSet": { "id": set_id },
    });
    for member in ["priority", "evictionPolicy", "billingProfile", "diagnosticsProfile", "licenseType"] {
        if let Some(value) = profile.get(member) {
            properties[member] = value.clone();
        }
    }
    let mut document = Object::new();
    document.insert("location".into(), body.get("location").cloned().unwrap_or_default());
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
pub(crate) fn check_member(azure: &AzureState, set: &ResourceId, body: &Value) -> Result<(), Refusal> {
    let next = azure.store.get(set).and_then(|set| set.hidden.get("next")?.as_u64()).unwrap_or_default();
    let Member { id, interfaces, document } = member(azure, set, body, next, None);
    interfaces.check(azure)?;
    // The set itself may be what this write makes.
    let mut document = document;
    if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("virtualMachineScaleSet");
    }
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
    // What could refuse it was checked with the set's write.
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

/// Ends what a set's operation brought about in its members.
pub(crate) fn settle(azure: &mut AzureState, set: &ResourceId, failed: bool) {
    let pending: Vec<(ResourceId, State)> = all_members(azure, set)
        .filter(|member| member.state != State::Succeeded)
        .filter(|member| azure.operations.running(member.operation.as_ref()).is_none())
        .map(|member| (member.id.clone(), member.state))
        .collect();
    for (member, state) in pending {
        match (state, failed) {
            (State::Deleting, false) => azure.remove(&member),
            (State::Creating | State::Updating, _) => {
                machine::settle(azure, &member, failed);
            }
            _ => {}
        }
    }
}
