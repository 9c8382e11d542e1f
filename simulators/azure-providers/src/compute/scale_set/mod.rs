//! Scale sets with uniform orchestration: model, capacity, upgrade policy (Azure REST reference,
//! "Virtual Machine Scale Sets").

pub(crate) mod capacity;
mod extension;
pub(crate) mod flexible;
mod flexible_member;
pub(crate) mod instance;
pub(crate) mod instance_address;
mod instance_public_ip;
pub(crate) mod members;
mod model;
mod network_interface;
pub(crate) mod uniform;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use self::flexible_member::{check_member, check_profile};
use self::members::instances;
use self::uniform::apply_model;
use crate::compute::disk::sku::usual_disk;
use crate::compute::machine::ending;
use crate::compute::machine::{
    data_disk, image, instance_view, interface_configuration, interface_count, network_profile, os_profile,
    power, spot,
};
use crate::compute::shared::zones::Span;
use crate::compute::shared::{catalogue, quota, zones};
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::{INSTANCE_TYPE, SET_TYPE};
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, at, at_mut, fill_at, flag, items, number, remove_at, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, Action, AzureState, EndedOperation, Expand, PartWrite, Presenting, Proposal, Protocol, Record,
    Shape, Writing,
};
use azure_engine::refusal::{Handled, Refusal, Result};
use azure_engine::store::State;
use azure_engine::store::reference::Reference;

pub(crate) struct ScaleSets;

const PROFILE: &str = "properties/virtualMachineProfile";

const PROTOCOL: Protocol = Protocol {
    members: &model::MEMBERS,
    envelope: &model::ENVELOPE,
    example: include_str!("example.json"),
    actions: &[
        "start",
        "powerOff",
        "deallocate",
        "restart",
        "redeploy",
        "reimage",
        "reapply",
        "manualUpgrade",
        "delete",
    ],
    ..protocol(SET_TYPE, "VirtualMachineScaleSet")
};

impl Shape for ScaleSets {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let profile = at(&record.body, "properties/virtualMachineProfile/networkProfile").into_iter();
        profile.flat_map(|profile| interface_configuration::references(&record.id, profile)).collect()
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        flexible::all_members(azure, &record.id).map(|member| member.id.clone()).collect()
    }
}

impl Writing for ScaleSets {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let (id, mut body) = (proposal.id, proposal.take());
        zones::check(azure, &proposal, Span::Many, &mut body)?;
        let flexible = text(&body, "properties/orchestrationMode") == Some("Flexible");
        // A flexible set without a model is filled with machines that name it, of whatever size.
        let modelled = !flexible || at(&body, PROFILE).is_some();
        if modelled && body.get("sku").is_none() {
            return Err(missing("sku.name"));
        }
        let unique = azure.seed.guid("scale set", id.as_str(), azure.store.incarnation(id));
        fill_at(&mut body, "properties/uniqueId", unique);
        fill_at(&mut body, "properties/singlePlacementGroup", !flexible);
        if !flexible {
            fill_at(&mut body, "properties/overprovision", true);
            fill_at(&mut body, "properties/doNotRunExtensionsOnOverprovisionedVMs", false);
        }
        let domains = if flexible || body.get("zones").is_some() { 1 } else { 5 };
        fill_at(&mut body, "properties/platformFaultDomainCount", domains);
        let capacity = capacity_of(azure, id, &body)?;
        check_size(azure, &proposal, &body, capacity)?;
        if !modelled {
            return Ok(body);
        }
        let size = text(&body, "sku/name").unwrap_or_default().to_owned();
        fill_at(&mut body, PROFILE, json!({}));
        if let Some(profile) = at_mut(&mut body, PROFILE) {
            if flexible {
                check_profile(id, profile)?;
            }
            virtual_machine_profile(id, &size, profile)?;
        }
        let image = format!("{PROFILE}/storageProfile/imageReference");
        if proposal.old_member(&image) != at(&body, &image) {
            let storage = &body["properties"]["virtualMachineProfile"]["storageProfile"];
            image::check(azure, storage, text(&body, "location").unwrap_or_default())?;
        }
        let added = capacity.saturating_sub(instances(azure, id).len() as u64);
        check_room(azure, &body, added)?;
        if flexible && added > 0 {
            check_member(azure, id, &body)?;
        }
        if let Some(profile) = at(&body, "properties/virtualMachineProfile/networkProfile") {
            network_profile::check(azure, profile, |_| id.clone())?;
        }
        Ok(body)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        let Some(record) = azure.store.get_mut(id) else { return };
        let rest = |body: &Value| {
            let mut profile = at(body, PROFILE).cloned().unwrap_or_default();
            remove_at(&mut profile, "networkProfile");
            (profile, at(body, "sku/name").cloned())
        };
        if old.is_none_or(|old| rest(old) != rest(&record.body)) {
            let version = record.hidden.get("model").and_then(Value::as_u64).unwrap_or_default();
            record.hidden.insert("model".into(), (version + 1).into());
        }
        if old.is_some() && text(&record.body, "properties/upgradePolicy/mode") == Some("Automatic") {
            instances(azure, id).iter().for_each(|instance| apply_model(azure, instance));
        }
        capacity::reconcile(azure, id);
    }

    fn awaited_outside(&self, azure: &AzureState, id: &ResourceId) -> Vec<ResourceId> {
        instances(azure, id)
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        if let (Completion::Action(action, targets), false) = (ended.completion, ended.failed) {
            power::finish(azure, id, action, targets);
        }
        // The states of its machines that the operation changed end with it.
        let pending: Vec<(ResourceId, State)> = members::all(azure, id)
            .into_iter()
            .filter(|machine| machine.state != State::Succeeded)
            .filter(|machine| azure.operations.running(machine.operation.as_ref()).is_none())
            .map(|machine| (machine.id.clone(), machine.state))
            .collect();
        for (id, state) in pending {
            match state {
                State::Deleting if !ended.failed => azure.remove(&id),
                State::Creating | State::Updating => ending::settle(azure, &id, ended.failed),
                _ => {}
            }
        }
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        for instance in instances(azure, id) {
            azure.doom(&instance);
        }
    }
}

impl Presenting for ScaleSets {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        if let Some(profile) = document["properties"].get_mut("virtualMachineProfile") {
            profile["timeCreated"] = record.created.to_string().into();
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        let each = |show: fn(&AzureState, &Record) -> Vec<Value>| {
            let instances = azure.store.of_type_below(INSTANCE_TYPE, &record.id);
            let all: Vec<Value> = instances.into_iter().flat_map(|instance| show(azure, instance)).collect();
            Some(Ok(json!({ "value": all })))
        };
        match (below.first()?.to_ascii_lowercase().as_str(), below.len()) {
            ("instanceview", 1) => Some(Ok(instance_view::of_set(azure, record))),
            ("networkinterfaces", 1) => each(network_interface::all),
            ("publicipaddresses", 1) => each(instance_public_ip::all),
            ("extensions", _) => extension::view(azure, record, below),
            _ => None,
        }
    }
}

impl Acting for ScaleSets {
    fn write_below(&self, azure: &mut AzureState, id: &ResourceId, write: PartWrite<'_>) -> Handled<bool> {
        match write.below {
            [view, wanted] if view.eq_ignore_ascii_case("extensions") => {
                Some(extension::write(azure, id, wanted, write.body))
            }
            _ => None,
        }
    }

    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        power::begin(azure, id, action, body)
    }
}

/// The capacity of a write, within bounds: one placement group holds fewer machines than several.
fn capacity_of(azure: &AzureState, id: &ResourceId, body: &Value) -> Result<u64> {
    let (set, group) =
        (azure.limit("compute.instancesPerScaleSet"), azure.limit("compute.instancesPerPlacementGroup"));
    let (most, what) = match flag(body, "properties/singlePlacementGroup") && group < set {
        true => (group, " while its singlePlacementGroup is true"),
        false => (set, ""),
    };
    let capacity = at(body, "sku/capacity").and_then(Value::as_i64).unwrap_or_default();
    let text = format!("The capacity {capacity} of {id} is outside the range 0 to {most}{what}.");
    let capacity = u64::try_from(capacity).ok().filter(|capacity| *capacity <= most);
    capacity.ok_or_else(|| Refusal::invalid_parameter("sku.capacity", text))
}

/// Checks that more machines, or machines of another size, are available.
fn check_size(azure: &AzureState, proposal: &Proposal<'_>, body: &Value, capacity: u64) -> Result<()> {
    let size = text(body, "sku/name").unwrap_or_default();
    let before = proposal.old.and_then(|old| number(&old.body, "sku/capacity")).unwrap_or_default();
    let same = proposal.old_member("sku/name").and_then(Value::as_str) == Some(size);
    if capacity == 0 || (same && capacity <= before) {
        return Ok(());
    }
    catalogue::check_available(azure, size, body)?;
    // The machines of a flexible set count by themselves.
    let flexible = proposal.old.is_some_and(flexible::is_flexible);
    let count = if flexible { capacity.saturating_sub(before) } else { capacity };
    let is_spot = at(body, PROFILE).is_some_and(spot::is_of_spot);
    quota::check(azure, proposal.id, text(body, "location").unwrap_or_default(), size, count, is_spot)
}

fn virtual_machine_profile(id: &ResourceId, size: &str, profile: &mut Value) -> Result<()> {
    spot::check_members(profile)?;
    fill_at(profile, "storageProfile/osDisk/managedDisk", json!({}));
    let storage = &mut profile["storageProfile"];
    let windows = image::fill_system_disk(storage).windows;
    let managed = &mut storage["osDisk"]["managedDisk"];
    if managed.as_object().is_some_and(Object::is_empty) {
        managed["storageAccountType"] = usual_disk(size).into();
    }
    data_disk::normalise_model(size, storage)?;
    let prefix: String = id.name().to_ascii_lowercase().chars().take(9).collect();
    fill_at(profile, "osProfile/computerNamePrefix", prefix);
    os_profile::normalise_system(windows, &mut profile["osProfile"])?;
    let network = &mut profile["networkProfile"];
    network_profile::normalise(network, id)?;
    let count = items(network, "networkInterfaceConfigurations").len();
    interface_count::check(size, count, "network interface configurations", "VM scale set")
}

/// The subnets must have room for the machines that the capacity adds.
fn check_room(azure: &AzureState, body: &Value, added: u64) -> Result<()> {
    let Some(profile) = at(body, "properties/virtualMachineProfile/networkProfile") else { return Ok(()) };
    let added = usize::try_from(added).unwrap_or(usize::MAX);
    let mut wanted: BTreeMap<(String, bool), (ResourceId, usize)> = BTreeMap::new();
    for (_, ip) in network_profile::ip_configurations(profile).filter(|_| added > 0) {
        if let Some(subnet) = network_profile::subnet(ip) {
            let key = (subnet.to_lower(), network_profile::is_v6(ip));
            wanted.entry(key).or_insert_with(|| (subnet, 0)).1 += added;
        }
    }
    wanted
        .into_iter()
        .try_for_each(|((_, v6), (subnet, count))| crate::network::check_room(azure, &subnet, v6, count))
}
