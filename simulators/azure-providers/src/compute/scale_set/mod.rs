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
pub(crate) mod provisioning;
pub(crate) mod uniform;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use self::flexible_member::{check_member, check_profile};
use self::members::instances;
use self::uniform::apply_model;
use crate::compute::disk::sku::usual_disk;
use crate::compute::machine::{
    data_disk, image, instance_view, interface_configuration, interface_count, network_profile, os_profile,
    power, spot, system_disk,
};
use crate::compute::shared::zones::Span;
use crate::compute::shared::{catalogue, quota, zones};
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::{INSTANCE_TYPE, SET_TYPE};
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, at, fill, into_object, stored_reference, take_properties, text};
use azure_engine::error::Refusal;
use azure_engine::member_table::Member;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Expand, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::{Reference, Role};
use azure_engine::store::State;

pub(crate) struct ScaleSets;

const PROTOCOL: Protocol = Protocol {
    actions: &[
        "start",
        "powerOff",
        "deallocate",
        "restart",
        "redeploy",
        "reimage",
        "reapply",
        "reimageAll",
        "manualUpgrade",
        "delete",
    ],
    ..protocol(SET_TYPE, "VirtualMachineScaleSet")
};

impl ResourceType for ScaleSets {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &model::MEMBERS
    }

    fn envelope(&self) -> &'static [Member] {
        &model::ENVELOPE
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut body = std::mem::take(&mut proposal.body);
        zones::check(azure, id, Span::Many, &mut body)?;
        proposal.old.map_or(Ok(()), |old| zones::check_kept(old, &body))?;
        let mut properties = take_properties(&mut body);
        let flexible = properties.get("orchestrationMode").is_some_and(|mode| mode == "Flexible");
        let mut profile = properties.remove("virtualMachineProfile");
        let priority = profile.as_ref().and_then(|profile| profile.get("priority"));
        // A flexible set without a model is filled with machines that name it, of whatever size.
        let may_lack_sku = flexible && profile.is_none();
        if !may_lack_sku && !body.contains_key("sku") {
            return Err(missing("sku.name"));
        }
        let capacity = capacity_of(azure, id, &body)?;
        check_size(azure, &proposal, &body, spot::names_spot(priority), capacity)?;
        let unique = proposal.old_member("properties/uniqueId").cloned();
        let unique = unique
            .unwrap_or_else(|| azure.seed.guid("scale set", id.as_str(), azure.store.incarnation(id)).into());
        properties.insert("uniqueId".into(), unique);
        fill(&mut properties, "singlePlacementGroup", !flexible);
        if !flexible {
            fill(&mut properties, "overprovision", true);
            fill(&mut properties, "doNotRunExtensionsOnOverprovisionedVMs", false);
        }
        check_capacity(azure, id, &properties, profile.as_ref(), capacity)?;
        let spread = body.contains_key("zones") || flexible;
        fill(&mut properties, "platformFaultDomainCount", if spread { 1 } else { 5 });
        if flexible && profile.is_none() {
            body.insert("properties".into(), Value::Object(properties));
            return Ok(Value::Object(body));
        }
        let mut profile = profile.take().map(into_object).unwrap_or_default();
        if flexible {
            check_profile(id, &profile)?;
        }
        virtual_machine_profile(id, &body, &mut profile)?;
        if let Some(storage) = profile.get("storageProfile")
            && proposal.old_member("properties/virtualMachineProfile/storageProfile/imageReference")
                != storage.get("imageReference")
        {
            image::check(azure, storage, body.get("location").and_then(Value::as_str).unwrap_or_default())?;
        }
        properties.insert("virtualMachineProfile".into(), Value::Object(profile));
        body.insert("properties".into(), Value::Object(properties));
        let body = Value::Object(body);
        check_room(azure, id, &body, capacity)?;
        if flexible && usize::try_from(capacity).is_ok_and(|wanted| wanted > instances(azure, id).len()) {
            check_member(azure, id, &body)?;
        }
        if let Some(profile) = at(&body, "properties/virtualMachineProfile/networkProfile") {
            network_profile::check(azure, profile, |_| id.clone())?;
        }
        Ok(body)
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let Some(profile) = at(&record.body, "properties/virtualMachineProfile/networkProfile") else {
            return Vec::new();
        };
        let probe = stored_reference(profile, "healthProbe/id");
        let probe =
            probe.map(|to| Reference { from: record.id.clone(), to, role: Role::Model, address: None });
        interface_configuration::references(&record.id, profile).into_iter().chain(probe).collect()
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        let Some(record) = azure.store.get_mut(id) else { return };
        let rest = |body: &Value| {
            let mut profile = at(body, "properties/virtualMachineProfile").cloned().unwrap_or_default();
            if let Some(profile) = profile.as_object_mut() {
                profile.remove("networkProfile");
            }
            (profile, at(body, "sku/name").cloned())
        };
        if old.is_none_or(|old| rest(old) != rest(&record.body)) {
            let version = record.hidden.get("model").and_then(Value::as_u64).unwrap_or_default();
            record.hidden.insert("model".into(), (version + 1).into());
        }
        let automatic =
            text(&record.body, "properties/upgradePolicy/mode").is_some_and(|mode| mode == "Automatic");
        if automatic && old.is_some() {
            for instance in instances(azure, id) {
                apply_model(azure, &instance);
            }
        }
        capacity::reconcile(azure, id);
    }

    fn waits_for(&self, azure: &AzureState, id: &ResourceId) -> Vec<ResourceId> {
        instances(azure, id)
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        flexible::all_members(azure, &record.id).map(|member| member.id.clone()).collect()
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
            _ => {}
        }
        // What the operation brought about in instances ends with it.
        flexible_member::settle(azure, id, failed);
        let pending: Vec<(ResourceId, State, bool)> = azure
            .store
            .of_type_below(INSTANCE_TYPE, id)
            .into_iter()
            .filter(|instance| instance.state != State::Succeeded)
            .filter(|instance| azure.operations.running(instance.operation.as_ref()).is_none())
            .map(|instance| (instance.id.clone(), instance.state, failed))
            .collect();
        for (instance, state, failed) in pending {
            match (state, failed) {
                (State::Deleting, false) => azure.remove(&instance),
                (State::Creating | State::Updating, _) => provisioning::settle(azure, &instance, failed),
                _ => {}
            }
        }
    }

    fn on_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        for instance in instances(azure, id) {
            azure.doom(&instance);
        }
    }

    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let created = record.created.to_string();
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        properties.insert("timeCreated".into(), created.as_str().into());
        if let Some(profile) = properties.get_mut("virtualMachineProfile").and_then(Value::as_object_mut) {
            profile.insert("timeCreated".into(), created.into());
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [view] if view.eq_ignore_ascii_case("instanceView") => {
                Some(Ok(instance_view::of_set(azure, record)))
            }
            [view] if view.eq_ignore_ascii_case("networkInterfaces") => {
                let all: Vec<Value> = azure
                    .store
                    .of_type_below(INSTANCE_TYPE, &record.id)
                    .into_iter()
                    .flat_map(|instance| network_interface::all(azure, instance))
                    .collect();
                Some(Ok(json!({ "value": all })))
            }
            [view] if view.eq_ignore_ascii_case("skus") => Some(Ok(catalogue::of_set(record))),
            [view, ..] if view.eq_ignore_ascii_case("extensions") => extension::view(azure, record, below),
            [view] if view.eq_ignore_ascii_case("publicIPAddresses") => {
                let instances = azure.store.of_type_below(INSTANCE_TYPE, &record.id);
                let all: Vec<Value> = instances
                    .into_iter()
                    .flat_map(|instance| instance_public_ip::all(azure, instance))
                    .collect();
                Some(Ok(json!({ "value": all })))
            }
            _ => None,
        }
    }

    fn write_view(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        below: &[&str],
        body: Option<&Value>,
    ) -> Option<Result<bool, Refusal>> {
        match below {
            [view, wanted] if view.eq_ignore_ascii_case("extensions") => {
                Some(extension::write(azure, id, wanted, body))
            }
            _ => None,
        }
    }

    fn act(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        action: &str,
        body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        power::begin(azure, id, action, body)
    }
}

/// How many machines are asked for.
fn capacity_of(azure: &AzureState, id: &ResourceId, body: &Object) -> Result<i64, Refusal> {
    let capacity =
        body.get("sku").and_then(|sku| sku.get("capacity")).and_then(Value::as_i64).unwrap_or_default();
    let most = i64::try_from(azure.limit("compute.instancesPerScaleSet")).unwrap_or(i64::MAX);
    if (0..=most).contains(&capacity) {
        return Ok(capacity);
    }
    let text = format!("The capacity {capacity} of {id} is outside the range 0 to {most}.");
    Err(Refusal::invalid_parameter("sku.capacity", text))
}

/// A set in one placement group, and a set of a custom image, hold fewer machines than others.
fn check_capacity(
    azure: &AzureState,
    id: &ResourceId,
    properties: &Object,
    profile: Option<&Value>,
    capacity: i64,
) -> Result<(), Refusal> {
    let capacity = u64::try_from(capacity).unwrap_or_default();
    let one_group = properties.get("singlePlacementGroup") == Some(&Value::Bool(true));
    let image = profile.and_then(|profile| text(profile, "storageProfile/imageReference/id"));
    let image = image.map(str::to_ascii_lowercase);
    // Images of a gallery are not bounded so.
    let custom = image.is_some_and(|image| image.contains("/images/") && !image.contains("/galleries/"));
    for (applies, limit, what) in [
        (one_group, "compute.instancesPerPlacementGroup", "whose singlePlacementGroup is true"),
        (custom, "compute.instancesPerScaleSetOfCustomImage", "made from a custom image"),
    ] {
        let most = azure.limit(limit);
        if applies && capacity > most {
            return Err(Refusal::invalid_parameter(
                "sku.capacity",
                format!(
                    "The capacity {capacity} of {id} is too large: a scale set {what} holds up to {most} machines."
                ),
            ));
        }
    }
    Ok(())
}

/// More machines, or machines of another size, must be to be had.
fn check_size(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    body: &Object,
    is_spot: bool,
    capacity: i64,
) -> Result<(), Refusal> {
    let size = body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default();
    let count = u64::try_from(capacity).unwrap_or_default();
    let before = proposal.old_member("sku/capacity").and_then(Value::as_u64).unwrap_or_default();
    let same = proposal.old_member("sku/name").and_then(Value::as_str) == Some(size);
    if count == 0 || (same && count <= before) {
        return Ok(());
    }
    let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
    let zones = body.get("zones").and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
    catalogue::check_available(azure, size, location, zones)?;
    // The machines of a flexible set count by themselves.
    let flexible = proposal.old.is_some_and(flexible::is_flexible);
    let count = if flexible { count.saturating_sub(before) } else { count };
    quota::check(azure, proposal.id, location, size, count, is_spot)
}

fn virtual_machine_profile(id: &ResourceId, body: &Object, profile: &mut Object) -> Result<(), Refusal> {
    let size = body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default();
    spot::check_members(profile)?;
    let mut storage = profile.remove("storageProfile").map(into_object).unwrap_or_default();
    let windows = system_disk::fill_by_image(&mut storage).windows;
    let managed = storage.get_mut("osDisk").and_then(|disk| disk.get_mut("managedDisk")?.as_object_mut());
    if let Some(managed) = managed.filter(|managed| managed.is_empty()) {
        managed.insert("storageAccountType".into(), usual_disk(size).into());
    }
    if storage.contains_key("dataDisks") {
        data_disk::normalise_model(size, &mut storage)?;
    }
    profile.insert("storageProfile".into(), Value::Object(storage));

    let mut os = profile.remove("osProfile").map(into_object).unwrap_or_default();
    os_profile::check(&os)?;
    let default_prefix: String = id.name().to_ascii_lowercase().chars().take(9).collect();
    fill(&mut os, "computerNamePrefix", default_prefix);
    let (member, configuration) = os_profile::fill_system(&mut os, windows);
    os.insert(member.into(), Value::Object(configuration));
    profile.insert("osProfile".into(), Value::Object(os));

    let mut network = profile.remove("networkProfile").unwrap_or_default();
    network_profile::normalise(&mut network, id)?;
    interface_count::check_model(size, &network)?;
    profile.insert("networkProfile".into(), network);
    Ok(())
}

/// The subnets must have room for the machines that the capacity adds.
fn check_room(azure: &AzureState, id: &ResourceId, body: &Value, capacity: i64) -> Result<(), Refusal> {
    let present = instances(azure, id).len();
    let added = usize::try_from(capacity).unwrap_or_default().saturating_sub(present);
    let Some(profile) = at(body, "properties/virtualMachineProfile/networkProfile") else { return Ok(()) };
    if added == 0 {
        return Ok(());
    }
    let mut wanted: BTreeMap<(String, bool), (ResourceId, usize)> = BTreeMap::new();
    for (_, ip) in network_profile::ip_configurations(profile) {
        if let Some(subnet) = network_profile::subnet(ip) {
            let key = (subnet.to_lower(), network_profile::is_v6(ip));
            wanted.entry(key).or_insert_with(|| (subnet, 0)).1 += added;
        }
    }
    for ((_, v6), (subnet, count)) in wanted {
        crate::network::check_room(azure, &subnet, v6, count)?;
    }
    Ok(())
}
