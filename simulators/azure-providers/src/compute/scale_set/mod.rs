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
mod network_interface;
mod rolling_upgrade;
pub(crate) mod uniform;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use self::flexible_member::{check_member, check_profile};
use self::members::instances;
use self::uniform::apply_model;
use crate::compute::disk::sku::usual_disk;
use crate::compute::machine::data_disk;
use crate::compute::machine::instance_view;
use crate::compute::machine::interface_configuration;
use crate::compute::machine::interface_count;
use crate::compute::machine::network_profile;
use crate::compute::machine::os_profile;
use crate::compute::machine::power;
use crate::compute::machine::secret;
use crate::compute::machine::spot;
use crate::compute::machine::system_disk;
use crate::compute::shared::catalogue;
use crate::compute::shared::quota;
use crate::compute::shared::update::updated;
use crate::compute::shared::zones;
use crate::compute::shared::zones::Span;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::{INSTANCE_TYPE, SET_TYPE};
use azure_engine::document::{
    Object, at, fill, integer, into_object, items, stored_reference, strip, take_properties, text,
};
use azure_engine::error::Refusal;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Expand, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::{Reference, Role};
use azure_engine::store::State;

pub(crate) struct ScaleSets;

/// Most fault domains of any region.
const MAX_FAULT_DOMAINS: i64 = 5;

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
        "osRollingUpgrade",
        "extensionRollingUpgrade",
        "rollingUpgrades/cancel",
    ],
    ..protocol(SET_TYPE, "VirtualMachineScaleSet")
};

impl ResourceType for ScaleSets {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut body = updated(&mut proposal);
        zones::check(azure, id, Span::Many, &mut body)?;
        proposal.old.map_or(Ok(()), |old| zones::check_kept(old, &body))?;
        let capacity = sku(azure, id, &mut body)?;
        check_size(azure, &proposal, &body, capacity)?;
        let mut properties = take_properties(&mut body);
        strip(&mut properties, &["provisioningState", "timeCreated", "uniqueId"]);
        let unique = proposal.old_member("properties/uniqueId").cloned();
        let unique = unique
            .unwrap_or_else(|| azure.seed.guid("scale set", id.as_str(), azure.store.incarnation(id)).into());
        properties.insert("uniqueId".into(), unique);
        let mode = properties.get("orchestrationMode").and_then(Value::as_str).unwrap_or("Uniform");
        let Some(mode) = ["Uniform", "Flexible"].into_iter().find(|known| known.eq_ignore_ascii_case(mode))
        else {
            return Err(Refusal::invalid_parameter(
                "orchestrationMode",
                format!(
                    "The value '{mode}' of parameter 'orchestrationMode' is not allowed. Allowed values are 'Uniform,Flexible'."
                ),
            ));
        };
        if proposal.old_member("properties/orchestrationMode").is_some_and(|before| before != mode) {
            return Err(Refusal::new(
                409,
                "PropertyChangeNotAllowed",
                "Changing property 'orchestrationMode' is not allowed.",
            )
            .at("orchestrationMode"));
        }
        let flexible = mode == "Flexible";
        properties.insert("orchestrationMode".into(), mode.into());
        let zoned = body.get("zones").is_some();
        fill(&mut properties, "singlePlacementGroup", !flexible);
        if !flexible {
            fill(&mut properties, "overprovision", true);
            fill(&mut properties, "doNotRunExtensionsOnOverprovisionedVMs", false);
        }
        check_capacity(azure, id, &properties, capacity)?;
        fill(&mut properties, "platformFaultDomainCount", if zoned || flexible { 1 } else { 5 });
        let domains = integer(&properties, "platformFaultDomainCount")?.unwrap_or_default();
        if !(1..=MAX_FAULT_DOMAINS).contains(&domains) {
            return Err(Refusal::invalid_parameter(
                "platformFaultDomainCount",
                format!(
                    "The specified fault domain count {domains} must fall in the range 1 to {MAX_FAULT_DOMAINS}."
                ),
            ));
        }
        upgrade_policy(id, &mut properties)?;
        scale_in_policy(id, &properties)?;
        // A flexible set without a model is filled with machines that name it.
        if flexible && !properties.contains_key("virtualMachineProfile") {
            body.insert("properties".into(), Value::Object(properties));
            return Ok(Value::Object(body));
        }
        let mut profile = properties.remove("virtualMachineProfile").map(into_object).unwrap_or_default();
        if flexible {
            check_profile(id, &profile)?;
        }
        virtual_machine_profile(id, &body, &mut profile, &proposal)?;
        if !azure.outside.listens {
            secret::conceal(&mut profile);
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
            Completion::Step(step) => return rolling_upgrade::step(azure, id, step, failed),
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
                (State::Creating | State::Updating, _) => uniform::settle(azure, &instance, failed),
                _ => {}
            }
        }
        if *completion == Completion::Write && !failed {
            rolling_upgrade::follow_model(azure, id);
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
            secret::conceal(profile);
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
            [view, which]
                if view.eq_ignore_ascii_case("rollingUpgrades") && which.eq_ignore_ascii_case("latest") =>
            {
                Some(rolling_upgrade::latest(record))
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

    fn act(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        action: &str,
        body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        rolling_upgrade::begin(azure, id, action).or_else(|| power::begin(azure, id, action, body))
    }
}

/// Checks the sku; gives the capacity.
fn sku(azure: &AzureState, id: &ResourceId, body: &mut Object) -> Result<i64, Refusal> {
    // A flexible set without a model is filled with machines of whatever size.
    let profile = body.get("properties").and_then(|properties| properties.get("virtualMachineProfile"));
    let mode = body.get("properties").and_then(|properties| text(properties, "orchestrationMode"));
    let flexible = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("Flexible"));
    if flexible && profile.is_none() && !body.contains_key("sku") {
        return Ok(0);
    }
    let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
    if sku.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        return Err(Refusal::invalid_parameter(
            "sku.name",
            format!("Required parameter 'sku.name' is missing for {id}."),
        ));
    }
    fill(&mut sku, "tier", "Standard");
    fill(&mut sku, "capacity", 0);
    let capacity = integer(&sku, "capacity")?.unwrap_or_default();
    let most = i64::try_from(azure.limit("compute.instancesPerScaleSet")).unwrap_or(i64::MAX);
    if !(0..=most).contains(&capacity) {
        return Err(Refusal::invalid_parameter(
            "sku.capacity",
            format!("The capacity {capacity} of {id} is outside the range 0 to {most}."),
        ));
    }
    sku.insert("capacity".into(), capacity.into());
    body.insert("sku".into(), Value::Object(sku));
    Ok(capacity)
}

/// A set in one placement group, and a set of a custom image, hold fewer machines than others.
fn check_capacity(
    azure: &AzureState,
    id: &ResourceId,
    properties: &Object,
    capacity: i64,
) -> Result<(), Refusal> {
    let capacity = u64::try_from(capacity).unwrap_or_default();
    let one_group = properties.get("singlePlacementGroup") == Some(&Value::Bool(true));
    let image = properties
        .get("virtualMachineProfile")
        .and_then(|profile| text(profile, "storageProfile/imageReference/id"))
        .map(str::to_ascii_lowercase);
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
    catalogue::check_available(azure, proposal.id, size, location, zones)?;
    // The machines of a flexible set count by themselves.
    let flexible = proposal.old.is_some_and(flexible::is_flexible);
    let count = if flexible { count.saturating_sub(before) } else { count };
    let profile = body.get("properties").and_then(|properties| properties.get("virtualMachineProfile"));
    let is_spot = spot::names_spot(profile.and_then(|profile| profile.get("priority")));
    quota::check(azure, proposal.id, location, size, count, is_spot)
}

fn scale_in_policy(id: &ResourceId, properties: &Object) -> Result<(), Refusal> {
    let Some(policy) = properties.get("scaleInPolicy") else { return Ok(()) };
    let unknown = items(policy, "rules")
        .iter()
        .find(|rule| !["Default", "OldestVM", "NewestVM"].iter().any(|known| *rule == known));
    match unknown {
        None => Ok(()),
        Some(rule) => Err(Refusal::invalid_parameter(
            "scaleInPolicy.rules",
            format!("{id}: {rule} is no scale-in rule. Allowed values are 'Default,OldestVM,NewestVM'."),
        )),
    }
}

fn upgrade_policy(id: &ResourceId, properties: &mut Object) -> Result<(), Refusal> {
    let mut policy = properties.remove("upgradePolicy").map(into_object).unwrap_or_default();
    let mode = policy.get("mode").and_then(Value::as_str).unwrap_or("Manual");
    let Some(mode) =
        ["Manual", "Automatic", "Rolling"].into_iter().find(|known| known.eq_ignore_ascii_case(mode))
    else {
        return Err(Refusal::invalid_parameter(
            "upgradePolicy.mode",
            format!("{id}: '{mode}' is no upgrade mode."),
        ));
    };
    policy.insert("mode".into(), mode.into());
    if let Some(Value::Object(automatic)) = policy.get_mut("automaticOSUpgradePolicy") {
        for member in ["enableAutomaticOSUpgrade", "useRollingUpgradePolicy", "disableAutomaticRollback"] {
            fill(automatic, member, false);
        }
    }
    rolling_upgrade::normalise(&mut policy)?;
    properties.insert("upgradePolicy".into(), Value::Object(policy));
    Ok(())
}

fn virtual_machine_profile(
    id: &ResourceId,
    body: &Object,
    profile: &mut Object,
    proposal: &Proposal<'_>,
) -> Result<(), Refusal> {
    profile.remove("timeCreated");
    spot::check_members(profile)?;
    let mut storage = profile.remove("storageProfile").map(into_object).unwrap_or_default();
    let windows = storage_profile(body, &mut storage)?;
    profile.insert("storageProfile".into(), Value::Object(storage));

    let mut os = profile.remove("osProfile").map(into_object).unwrap_or_default();
    os_profile::check(&os)?;
    secret::strip_from_system(&mut os);
    let default_prefix: String = id.name().to_ascii_lowercase().chars().take(9).collect();
    fill(&mut os, "computerNamePrefix", default_prefix);
    let old_prefix = proposal.old_member("properties/virtualMachineProfile/osProfile/computerNamePrefix");
    if old_prefix.is_some_and(|old| Some(old) != os.get("computerNamePrefix")) {
        return Err(Refusal::new(
            409,
            "PropertyChangeNotAllowed",
            "Changing property 'osProfile.computerNamePrefix' is not allowed.",
        )
        .at("osProfile.computerNamePrefix"));
    }
    fill(&mut os, "secrets", json!([]));
    fill(&mut os, "allowExtensionOperations", true);
    fill(&mut os, "requireGuestProvisionSignal", true);
    let (member, extra) = if windows {
        ("windowsConfiguration", ("enableAutomaticUpdates", true))
    } else {
        ("linuxConfiguration", ("disablePasswordAuthentication", false))
    };
    let mut configuration = os.remove(member).map(into_object).unwrap_or_default();
    fill(&mut configuration, "provisionVMAgent", true);
    fill(&mut configuration, extra.0, extra.1);
    os.insert(member.into(), Value::Object(configuration));
    profile.insert("osProfile".into(), Value::Object(os));

    let mut network = profile.remove("networkProfile").map(into_object).unwrap_or_default();
    azure_engine::document::reference(&mut network, "healthProbe")?;
    network_profile::normalise(&mut network, id)?;
    let network = Value::Object(network);
    let size = body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default();
    interface_count::check_model(size, &network)?;
    profile.insert("networkProfile".into(), network);
    Ok(())
}

/// Checks the disks and fills that of the operating system; says whether the system is Windows.
fn storage_profile(body: &Object, storage: &mut Object) -> Result<bool, Refusal> {
    let size = body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default();
    let given = storage.get("osDisk").and_then(|disk| text(disk, "osType")).map(str::to_owned);
    let publisher =
        storage.get("imageReference").and_then(|image| text(image, "publisher")).unwrap_or_default();
    let windows = match given {
        Some(given) => given.eq_ignore_ascii_case("Windows"),
        None => publisher.to_ascii_lowercase().contains("windows"),
    };
    let mut disk = storage.remove("osDisk").map(into_object).unwrap_or_default();
    fill(&mut disk, "osType", if windows { "Windows" } else { "Linux" });
    fill(&mut disk, "createOption", "FromImage");
    fill(&mut disk, "caching", "None");
    fill(&mut disk, "diskSizeGB", if windows { 127 } else { 30 });
    system_disk::check_size(&disk)?;
    if disk.get("managedDisk").is_none() {
        disk.insert("managedDisk".into(), json!({ "storageAccountType": usual_disk(size) }));
    }
    storage.insert("osDisk".into(), Value::Object(disk));
    if storage.contains_key("dataDisks") {
        data_disk::normalise_model(size, storage)?;
    }
    Ok(windows)
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
