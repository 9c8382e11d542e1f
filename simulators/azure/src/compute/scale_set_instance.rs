//! Instances of uniform scale sets (Azure REST reference, "Virtual Machine Scale Set VMs").

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::scale_set::ScaleSets;
use super::{
    data_disk, flexible, instance_public_ip, instance_view, network_interface, network_profile, power,
};
use crate::engine::document::{
    Object, at, drop_nulls, into_object, items, merge, name, stored_reference, strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::operation::Completion;
use crate::engine::resource_type::{
    Action, Expand, Listing, Proposal, Protocol, Reference, ResourceType, Role,
};
use crate::engine::state::AzureState;
use crate::engine::store::{Record, State};
use crate::options::Options;

pub(crate) struct Instances;

/// Digits of the number in a computer name.
const NAME_DIGITS: usize = 6;

/// What one IP configuration of an instance is called in full.
pub(super) fn ip_configuration_id(instance: &ResourceId, nic: &Value, ip: &Value) -> ResourceId {
    instance.child("networkInterfaces", name(nic)).child("ipConfigurations", name(ip))
}

/// The scale set of an instance.
pub(super) fn set_of<'a>(azure: &'a AzureState, instance: &ResourceId) -> Option<&'a Record> {
    azure.store.get(&instance.parent()?)
}

/// The address that an instance holds for one IP configuration.
pub(super) fn address<'a>(record: &'a Record, nic: &Value, ip: &Value) -> Option<&'a str> {
    record.hidden.get("addresses")?.get(network_profile::address_key(nic, ip))?.as_str()
}

const PROTOCOL: Protocol = Protocol {
    tracked: false,
    creatable: false,
    ..super::protocol(
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "Virtual Machine Scale Set VM Instance",
    )
};

impl ResourceType for Instances {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn gather<'a>(&self, azure: &'a AzureState, scope: &ResourceId) -> Option<Vec<&'a Record>> {
        let set = azure.store.get(scope).filter(|set| flexible::is_flexible(set))?;
        Some(flexible::all_members(azure, &set.id).collect())
    }

    fn listed(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let mut shown = azure.present(record, listing.expand);
        if record.resource_type.name() != self.name() {
            shown["instanceId"] = record.id.name().into();
        }
        Some(shown)
    }

    fn page_size(&self, options: &Options, _listing: &Listing<'_>) -> usize {
        options.page_size
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        Err(Refusal::invalid_parameter(
            "instanceId",
            "Virtual Machine Scale Set VM instanceId must be a number.",
        ))
    }

    fn stands_for(&self, azure: &AzureState, id: &ResourceId) -> Option<ResourceId> {
        let set = set_of(azure, id).filter(|set| flexible::is_flexible(set))?;
        flexible::all_members(azure, &set.id)
            .find(|member| member.id.name().eq_ignore_ascii_case(id.name()))
            .map(|member| member.id.clone())
    }

    fn absent(&self, id: &ResourceId) -> Option<Refusal> {
        Some(Refusal::invalid_parameter(
            "instanceId",
            format!(
                "The provided instanceId {} is not an active Virtual Machine Scale Set VM instanceId.",
                id.name()
            ),
        ))
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let Some(old) = proposal.old else { return Err(self.not_active(id)) };
        if old.state == State::Deleting {
            let set = id.parent().map(|set| set.name().to_owned()).unwrap_or_default();
            return Err(Refusal::new(
                409,
                "OperationNotAllowed",
                format!(
                    "'Put on Virtual Machine Scale Set VM Instance' is not allowed on Virtual Machine Scale Set '{set}' \
                     since it is marked for deletion."
                ),
            ));
        }
        // Recorded: tags sent with an instance do not come back, they are the set's.
        proposal.body.retain(|member, _| matches!(member.as_str(), "properties" | "identity"));
        let mut given = take_properties(&mut proposal.body);
        // What the service says about the instance is echoed by clients and not theirs to change.
        given.retain(|member, _| {
            matches!(
                member.as_str(),
                "networkProfileConfiguration"
                    | "protectionPolicy"
                    | "userData"
                    | "licenseType"
                    | "diagnosticsProfile"
                    | "storageProfile"
            )
        });
        // Of its disks, an instance has only the data disks for itself.
        if let Some(Value::Object(storage)) = given.get_mut("storageProfile") {
            storage.retain(|member, _| member == "dataDisks");
        }
        proposal.body.insert("properties".into(), Value::Object(given));
        let mut whole = old.body.clone();
        merge(&mut whole, Value::Object(proposal.body));
        drop_nulls(&mut whole);
        let mut body = into_object(whole);
        let mut properties = take_properties(&mut body);
        let mut profile =
            properties.remove("networkProfileConfiguration").map(into_object).unwrap_or_default();
        network_profile::normalise(&mut profile, id)?;
        let profile = Value::Object(profile);
        network_profile::check(azure, &profile, |nic| id.child("networkInterfaces", nic))?;
        properties.insert("networkProfileConfiguration".into(), profile);
        let mut storage = properties.remove("storageProfile").map(into_object).unwrap_or_default();
        let machine = data_disk::Machine {
            id,
            noun: "virtual machine scale set instance",
            size: body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default(),
            zone: body.get("zones").and_then(|zones| zones.as_array()?.first()?.as_str()),
            name: &disk_prefix(id),
        };
        data_disk::normalise(azure, &machine, &mut storage)?;
        properties.insert("storageProfile".into(), Value::Object(storage));
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn owned(&self, _azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        data_disk::owned(&record.body)
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let Some(profile) = at(&record.body, "properties/networkProfileConfiguration") else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for (nic, ip) in network_profile::ip_configurations(profile) {
            let from = ip_configuration_id(&record.id, nic, ip);
            all.extend(network_profile::memberships(ip).map(|to| Reference::uses(&from, to)));
            if let Some(to) = network_profile::subnet(ip) {
                let address = address(record, nic, ip).and_then(|address| address.parse().ok());
                all.push(Reference { from: from.clone(), to, role: Role::Uses, address });
            }
        }
        for nic in items(profile, "networkInterfaceConfigurations") {
            if let Some(to) = stored_reference(nic, "properties/networkSecurityGroup/id") {
                all.push(Reference::uses(&record.id.child("networkInterfaces", name(nic)), to));
            }
        }
        let disks = items(&record.body, "properties/storageProfile/dataDisks").iter();
        all.extend(
            disks
                .filter_map(|disk| stored_reference(disk, "managedDisk/id"))
                .map(|to| Reference::uses(&record.id, to)),
        );
        all
    }

    fn public_address(&self, record: &Record) -> Option<std::net::IpAddr> {
        instance_public_ip::address(record)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        data_disk::create_asked_for(azure, id);
        allocate(azure, id);
    }

    fn after_operation(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        completion: &Completion,
        failed: bool,
    ) {
        match completion {
            Completion::Action(action, targets) if !failed => power::finish(azure, id, action, targets),
            Completion::Delete if failed => {}
            Completion::Delete => {}
            _ => settle(azure, id, failed),
        }
    }

    fn on_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        if let Some(set) = id.parent() {
            super::capacity::lower(azure, &set, 1);
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
        let Some(set) = set_of(azure, &record.id) else { return };
        document.insert("name".into(), format!("{}_{}", set.id.name(), record.id.name()).into());
        document.insert("instanceId".into(), record.id.name().into());
        let view = expand.instance_view.then(|| instance_view::of_instance(azure, record));
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let profile = at(&record.body, "properties/networkProfileConfiguration");
        let latest = follows(record, set);
        properties.insert("latestModelApplied".into(), latest.into());
        let nics: Vec<Value> = profile
            .map_or(&[] as &[Value], |profile| items(profile, "networkInterfaceConfigurations"))
            .iter()
            .map(|nic| json!({ "id": record.id.child("networkInterfaces", name(nic)) }))
            .collect();
        properties.insert("networkProfile".into(), json!({ "networkInterfaces": nics }));
        properties.insert("timeCreated".into(), record.created.to_string().into());
        if let Some(view) = view {
            properties.insert("instanceView".into(), view);
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [view] if view.eq_ignore_ascii_case("instanceView") => {
                Some(Ok(instance_view::of_instance(azure, record)))
            }
            _ => network_interface::view(azure, record, below),
        }
    }

    fn views_of_type(&self, azure: &AzureState, record: &Record, resource_type: &str) -> Vec<Value> {
        let below = resource_type.get(self.name().len() + 1..).unwrap_or_default();
        if below.eq_ignore_ascii_case("networkInterfaces") {
            return network_interface::all(azure, record);
        }
        Vec::new()
    }

    fn act(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        action: &str,
        body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        if action.eq_ignore_ascii_case(data_disk::CHANGE) {
            return Some(data_disk::change(azure, &Self, id, body));
        }
        power::begin(azure, id, action, body)
    }
}

impl Instances {
    fn not_active(&self, id: &ResourceId) -> Refusal {
        self.absent(id).unwrap_or_else(|| Refusal::invalid_parameter("instanceId", "No such instance."))
    }
}

/// A number in base 36, filled up with zeros.
fn computer_number(number: u64) -> String {
    let mut digits = Vec::new();
    let mut left = number;
    while left > 0 || digits.len() < NAME_DIGITS {
        let digit =
            u32::try_from(left % 36).ok().and_then(|digit| char::from_digit(digit, 36)).unwrap_or('0');
        digits.push(digit);
        left /= 36;
    }
    digits.iter().rev().collect()
}

/// Makes the next instance of a set from its model. Numbers are never used twice.
pub(super) fn create(azure: &mut AzureState, set_id: &ResourceId, zone: Option<String>) {
    let created = azure.now();
    let Some(set) = azure.store.get_mut(set_id) else { return };
    let number = set.hidden.get("next").and_then(Value::as_u64).unwrap_or_default();
    set.hidden.insert("next".into(), (number + 1).into());
    let (set_id, body) = (set.id.clone(), set.body.clone());
    let model = set.hidden.get("model").cloned().unwrap_or_default();
    let id = set_id.child("virtualMachines", &number.to_string());
    let mut record = Record::new(&Instances, &id, json!({ "location": body["location"] }), created);
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
    data_disk::create_asked_for(azure, &id);
    allocate(azure, &id);
}

/// What the names of an instance's disks begin with.
fn disk_prefix(instance: &ResourceId) -> String {
    let set = instance.parent().map(|set| set.name().to_owned()).unwrap_or_default();
    format!("{set}_{set}_{}", instance.name())
}

/// Gives an instance what the model says.
fn copy_model(azure: &AzureState, set: &ResourceId, model: &Value, record: &mut Record) {
    let profile = |member: &str| at(model, &format!("properties/virtualMachineProfile/{member}")).cloned();
    let mut os = profile("osProfile").map(into_object).unwrap_or_default();
    strip(&mut os, &["computerNamePrefix"]);
    if let Some(computer) = record.hidden.get("computerName") {
        os.insert("computerName".into(), computer.clone());
    }
    let mut storage = profile("storageProfile").map(into_object).unwrap_or_default();
    // The model's disks are made for each instance; those that it has stay as they are.
    let disks = match at(&record.body, "properties/storageProfile/dataDisks") {
        Some(disks) => disks.clone(),
        None => data_disk::of_model(azure, &record.id, &disk_prefix(&record.id), storage.get("dataDisks")),
    };
    storage.insert("dataDisks".into(), disks);
    let image = super::image::of(&Value::Object(storage.clone()));
    if let Some(Value::Object(reference)) = storage.get_mut("imageReference") {
        reference.insert("exactVersion".into(), image.exact.into());
    }
    let set_name = set.name();
    // Numbers of instances are used once in the life of a set, and every set has its own unique id.
    let subject = format!("{}/{}", text(model, "properties/uniqueId").unwrap_or_default(), record.id.name());
    let unique = azure.seed.guid("os disk", &subject, 0).replace('-', "");
    let disk_name = format!("{set_name}_{set_name}_{}_OS__1_{unique}", record.id.name());
    let group = ResourceId::group(set.subscription_id(), set.group_name().unwrap_or_default());
    if let Some(Value::Object(disk)) = storage.get_mut("osDisk") {
        disk.insert("name".into(), disk_name.as_str().into());
        if let Some(Value::Object(managed)) = disk.get_mut("managedDisk") {
            let id = group.resource("Microsoft.Compute", "disks", &disk_name);
            managed.insert("id".into(), id.as_str().into());
        }
    }
    let network = profile("networkProfile").map(into_object).unwrap_or_default();
    let configurations = network.get("networkInterfaceConfigurations").cloned().unwrap_or_else(|| json!([]));
    let properties = json!({
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "hardwareProfile": { "vmSize": at(model, "sku/name") },
        "networkProfileConfiguration": { "networkInterfaceConfigurations": configurations },
        "osProfile": os,
        "resilientVMDeletionStatus": "Disabled",
        "storageProfile": storage,
        "vmId": azure.seed.guid("vm", &subject, 0),
    });
    let mut whole = record.body.clone();
    whole["sku"] = json!({ "name": at(model, "sku/name"), "tier": at(model, "sku/tier") });
    // What was set on the instance alone (its protection) stays.
    match whole.get_mut("properties") {
        Some(Value::Object(old)) => old.extend(into_object(properties)),
        _ => whole["properties"] = properties,
    }
    record.body = whole;
}

/// Whether an instance is as the model of its set says.
fn follows(record: &Record, set: &Record) -> bool {
    let model =
        at(&set.body, "properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations");
    at(&record.body, "properties/networkProfileConfiguration/networkInterfaceConfigurations") == model
        && record.hidden.get("model") == set.hidden.get("model")
}

/// The same for an instance whose set is not at hand.
pub(super) fn is_latest(azure: &AzureState, record: &Record) -> bool {
    set_of(azure, &record.id).is_none_or(|set| follows(record, set))
}

/// Brings an instance to the latest model.
pub(super) fn apply_model(azure: &mut AzureState, id: &ResourceId) {
    let Some((set, body, model)) = set_of(azure, id)
        .map(|set| (set.id.clone(), set.body.clone(), set.hidden.get("model").cloned().unwrap_or_default()))
    else {
        return;
    };
    let Some(old) = azure.store.get(id).filter(|old| old.resource_type.name() == Instances.name()) else {
        return;
    };
    let mut record = old.clone();
    record.hidden.insert("model".into(), model);
    copy_model(azure, &set, &body, &mut record);
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
fn allocate(azure: &mut AzureState, id: &ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let mut kept = Object::new();
    let mut promised = BTreeSet::new();
    if let Some(profile) = at(&record.body, "properties/networkProfileConfiguration") {
        for (nic, ip) in network_profile::ip_configurations(profile) {
            let Some(subnet) = network_profile::subnet(ip) else { continue };
            let prefixes = crate::network::subnet_prefixes(azure, &subnet);
            let held = address(record, nic, ip)
                .filter(|held| {
                    let held = held.parse::<std::net::IpAddr>();
                    held.is_ok_and(|held| prefixes.iter().any(|prefix| prefix.contains(&held)))
                })
                .map(str::to_owned);
            let address = match held {
                Some(held) => held,
                None => {
                    match crate::network::free_address(azure, &subnet, network_profile::is_v6(ip), &promised)
                    {
                        Ok(free) => {
                            promised.insert(free);
                            free.to_string()
                        }
                        // The write checked that there is room; a subnet may have filled up since.
                        Err(_) => continue,
                    }
                }
            };
            kept.insert(network_profile::address_key(nic, ip), address.into());
        }
    }
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.insert("addresses".into(), Value::Object(kept));
    }
    instance_public_ip::allocate(azure, id);
    azure.changed(id);
}

/// Ends whatever an instance was in.
pub(super) fn settle(azure: &mut AzureState, id: &ResourceId, failed: bool) {
    let Some(record) = azure.store.get_mut(id).filter(|record| record.state != State::Deleting) else {
        return;
    };
    if failed {
        record.state = State::Failed;
    } else {
        record.state = State::Succeeded;
        if record.hidden.get("power").is_none() {
            record.hidden.insert("power".into(), "running".into());
        }
    }
    azure.revision += 1;
}

/// Whether a record is a scale set (rather than one of its instances).
pub(super) fn is_set(record: &Record) -> bool {
    record.resource_type.name() == ScaleSets.name()
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
