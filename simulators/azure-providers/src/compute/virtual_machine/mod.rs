//! Virtual machines (Azure REST reference, "Virtual Machines").

pub(crate) mod extension;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::creation as disk_creation;
use crate::compute::disk::creation::check_name_free;
use crate::compute::disk::sku::usual_disk;
use crate::compute::machine;
use crate::compute::machine::interface_configuration::Interfaces;
use crate::compute::machine::{
    data_disk, fault_domain, guest, image, instance_view, interface_configuration, interface_count, members,
    network_profile, os_profile, power, spot, system_disk,
};
use crate::compute::scale_set::{capacity, flexible};
use crate::compute::shared::zones::Span;
use crate::compute::shared::{catalogue, quota, zones};
use crate::compute::tables::codes::{BAD_REQUEST, OPERATION_NOT_ALLOWED};
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::MACHINE_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::{
    Object, at, fill, into_object, items, stored_reference, strip, take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::member_table::{Member, pointers};
use azure_engine::operation::Completion;
use azure_engine::options::Options;
use azure_engine::provider::{
    Action, AzureState, Expand, Listing, Proposal, Protocol, Record, ResourceType, Source,
};
use azure_engine::reference::Reference;

const AZURE_SPOT_VM_NOT_SUPPORTED_IN_AVAILABILITY_SET: Code =
    Code::azures(400, "AzureSpotVMNotSupportedInAvailabilitySet");
const NIC_IN_USE: Code = Code::azures(400, "NicInUse");
const VIRTUAL_MACHINE_MUST_HAVE_ONE_NETWORK_INTERFACE_AS_PRIMARY: Code =
    Code::ours(400, "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary");

pub(crate) struct VirtualMachines;

const PROTOCOL: Protocol = Protocol {
    actions: &[
        "start",
        "powerOff",
        "deallocate",
        "restart",
        "redeploy",
        "reimage",
        "reapply",
        "simulateEviction",
        "attachDetachDataDisks",
    ],
    ..protocol(MACHINE_TYPE, "VM")
};

impl ResourceType for VirtualMachines {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &members::MACHINE
    }

    fn page_size(&self, options: &Options, _listing: &Listing<'_>) -> usize {
        options.page_size
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut body = std::mem::take(&mut proposal.body);
        zones::check(azure, id, Span::One, &mut body)?;
        proposal.old.map_or(Ok(()), |old| zones::check_same(old, &body))?;
        let mut properties = take_properties(&mut body);
        let hardware = properties.get("hardwareProfile");
        let size = hardware.and_then(|hardware| text(hardware, "vmSize")).unwrap_or_default().to_owned();
        let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
        let zones = body.get("zones").and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
        let before = proposal.old_member("properties/hardwareProfile/vmSize").and_then(Value::as_str);
        if before != Some(size.as_str()) {
            catalogue::check_available(azure, &size, location, zones)?;
            let is_spot = spot::names_spot(properties.get("priority"));
            // Who makes a machine for a set has counted it.
            if proposal.source != Source::Service {
                quota::check(azure, id, location, &size, 1, is_spot)?;
            }
        }
        check_scale_set(azure, &proposal, &properties, zones)?;
        check_availability_set(azure, &properties, zones)?;
        spot::check_members(&properties)?;
        let mut storage = properties.remove("storageProfile").map(into_object).unwrap_or_default();
        let windows = system_disk(azure, &proposal, &size, &mut storage)?;
        if proposal.old.is_none() {
            image::check(azure, &Value::Object(storage.clone()), location)?;
        }
        let zone = body.get("zones").and_then(|zones| zones.as_array()?.first()?.as_str()).map(str::to_owned);
        let machine = data_disk::Machine {
            id,
            noun: "virtual machine",
            size: &size,
            zone: zone.as_deref(),
            name: id.name(),
        };
        data_disk::normalise(azure, &machine, &mut storage)?;
        properties.insert("storageProfile".into(), Value::Object(storage));
        os_profile::normalise(&proposal, windows, &mut properties)?;
        network_profile(azure, &proposal, body.get("location"), &size, &mut properties)?;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let mut all = pointers(&members::MACHINE, &record.id, &record.body);
        // What configurations of interfaces point at is the interfaces' to use.
        all.retain(|reference| reference.from == record.id);
        let profile = at(&record.body, "properties/networkProfile").into_iter();
        all.extend(profile.flat_map(|profile| interface_configuration::references(&record.id, profile)));
        all
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            flexible::joined(azure, id);
            create_interfaces(azure, id);
            fault_domain::assign(azure, id);
        }
        create_system_disk(azure, id);
        data_disk::create_asked_for(azure, id);
        if old.is_none() {
            guest::start(azure, id, true);
        }
    }

    fn told(&self, azure: &mut AzureState, id: &ResourceId, answer: &Value) -> Option<Refusal> {
        guest::told(azure, id, answer)
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
            Completion::Write => machine::settle(azure, id, failed),
            _ => {}
        }
    }

    fn on_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        let set = azure
            .store
            .get(id)
            .and_then(|record| stored_reference(&record.body, "properties/virtualMachineScaleSet/id"));
        if let Some(set) = set {
            capacity::lower(azure, &set, 1);
        }
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        let deleted = |entry: &Value, path: &str| text(entry, path) == Some("Delete");
        let nics = items(&record.body, "properties/networkProfile/networkInterfaces")
            .iter()
            .filter(|nic| deleted(nic, "properties/deleteOption"))
            .filter_map(|nic| stored_reference(nic, "id"))
            .flat_map(|nic| {
                let addresses = interface_configuration::owned_addresses(azure, &nic);
                std::iter::once(nic).chain(addresses)
            });
        let system = at(&record.body, "properties/storageProfile/osDisk")
            .filter(|disk| deleted(disk, "deleteOption"))
            .and_then(|disk| stored_reference(disk, "managedDisk/id"));
        nics.chain(data_disk::owned(&record.body)).chain(system).collect()
    }

    fn accepted(&self, _azure: &AzureState, record: &Record, document: &mut Object) {
        // While a machine is being made, its system disk has no id yet.
        if record.hidden.get("power").is_some() {
            return;
        }
        let managed = document
            .get_mut("properties")
            .and_then(|properties| properties.get_mut("storageProfile"))
            .and_then(|storage| storage.get_mut("osDisk"))
            .and_then(|disk| disk.get_mut("managedDisk"))
            .and_then(Value::as_object_mut);
        if let Some(managed) = managed {
            managed.remove("id");
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
        let view = expand.instance_view.then(|| instance_view::of_machine(azure, record));
        let extensions = guest::extensions(azure, record);
        if !extensions.is_empty() {
            document.insert("resources".into(), extensions.into());
        }
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let subject = format!("{}#{}", record.id, record.incarnation);
        properties.insert("vmId".into(), azure.seed.guid("vm", &subject, 0).into());
        properties.insert("timeCreated".into(), record.created.to_string().into());
        if let Some(storage) = properties.get_mut("storageProfile") {
            data_disk::present(azure, storage);
        }
        if let Some(view) = view {
            properties.insert("instanceView".into(), view);
        }
    }

    fn listed(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let Some(filter) = listing.query.get("$filter") else {
            // Who asks for the status alone gets the models with it.
            let status =
                listing.query.get("statusonly").is_some_and(|asked| asked.eq_ignore_ascii_case("true"));
            let expand = Expand { instance_view: listing.expand.instance_view || status };
            return Some(azure.present(record, expand));
        };
        // `'virtualMachineScaleSet/id' eq '{id}'`; who asks for views with it gets no models.
        let wanted = filter.rsplit_once(" eq ")?.1.trim().trim_matches('\'');
        let set = text(&record.body, "properties/virtualMachineScaleSet/id")?;
        if !set.eq_ignore_ascii_case(wanted) {
            return None;
        }
        if !listing.expand.instance_view {
            return Some(azure.present(record, listing.expand));
        }
        Some(json!({
            "id": record.id,
            "name": record.id.name(),
            "properties": { "instanceView": instance_view::of_machine(azure, record) },
        }))
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [view] if view.eq_ignore_ascii_case("instanceView") => {
                Some(Ok(instance_view::of_machine(azure, record)))
            }
            [view] if view.eq_ignore_ascii_case("vmSizes") => Some(Ok(catalogue::sizes())),
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
        if action.eq_ignore_ascii_case(data_disk::CHANGE) {
            return Some(data_disk::change(azure, &Self, id, body));
        }
        power::begin(azure, id, action, body)
    }
}

/// A machine joins flexible sets alone, and stands where its set does.
fn check_scale_set(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    properties: &Object,
    zones: &[Value],
) -> Result<(), Refusal> {
    let set = properties.get("virtualMachineScaleSet").and_then(|set| stored_reference(set, "id"));
    let Some(set) = set.and_then(|set| azure.store.get(&set)) else { return Ok(()) };
    if !flexible::is_flexible(set) {
        return Err(Refusal::invalid_parameter(
            "virtualMachineScaleSet.id",
            format!(
                "Virtual machine scale set {} has uniform orchestration: machines cannot join it.",
                set.id
            ),
        ));
    }
    // A set may have got zones since.
    if proposal.old.is_some() {
        return Ok(());
    }
    zones::check_member(set, zones.first().and_then(Value::as_str))
}

/// A machine in an availability set is in no zone, and the set is one for managed disks.
fn check_availability_set(azure: &AzureState, properties: &Object, zones: &[Value]) -> Result<(), Refusal> {
    let set = properties.get("availabilitySet").and_then(|set| stored_reference(set, "id"));
    let Some(set) = set else { return Ok(()) };
    if spot::names_spot(properties.get("priority")) {
        return Err(AZURE_SPOT_VM_NOT_SUPPORTED_IN_AVAILABILITY_SET
            .says("Azure Spot Virtual Machine is not supported in Availability Set."));
    }
    if !zones.is_empty() {
        return Err(BAD_REQUEST.says("Virtual Machine cannot be created because both Availability Zone and Availability Set were specified. \
             Deploying an Availability Set to an Availability Zone isn't supported."));
    }
    let kind = azure.store.get(&set).and_then(|set| at(&set.body, "sku/name")?.as_str());
    if kind == Some("Classic") {
        return Err(OPERATION_NOT_ALLOWED.says(format_args!("A VM with managed disks cannot be added to Availability Set '{}', whose sku is not 'Aligned'.", set.name()))
        .at("availabilitySet"));
    }
    Ok(())
}

/// Fills the system disk; says whether the system is Windows.
fn system_disk(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    size: &str,
    storage: &mut Object,
) -> Result<bool, Refusal> {
    let id = proposal.id;
    let attached = storage
        .get("osDisk")
        .and_then(|disk| text(disk, "createOption"))
        .is_some_and(|option| option == "Attach");
    if storage.get("imageReference").is_none() && !attached {
        return Err(missing("storageProfile.imageReference"));
    }
    let image = system_disk::fill_by_image(storage);
    let mut system = storage.remove("osDisk").map(into_object).unwrap_or_default();
    if let Some(reference) = storage.get_mut("imageReference").and_then(Value::as_object_mut) {
        reference.insert("exactVersion".into(), image.exact.into());
    }
    let unique = azure.seed.guid("os disk", id.as_str(), azure.store.incarnation(id)).replace('-', "");
    fill(&mut system, "name", format!("{}_OsDisk_1_{unique}", id.name()));
    if proposal.old.is_none() && !attached {
        check_name_free(azure, id, system.get("name"), "osDisk.name")?;
    }
    let mut managed = system.remove("managedDisk").map(into_object).unwrap_or_default();
    if let Some(kind) = data_disk::kind_of(azure, &managed) {
        managed.insert("storageAccountType".into(), kind.into());
    }
    fill(&mut managed, "storageAccountType", usual_disk(size));
    let kind = managed.get("storageAccountType").and_then(Value::as_str).unwrap_or_default();
    let name = system.get("name").and_then(Value::as_str).unwrap_or_default();
    data_disk::check_kind(size, kind, name, "osDisk.managedDisk.storageAccountType")?;
    system.insert("managedDisk".into(), Value::Object(managed));
    storage.insert("osDisk".into(), Value::Object(system));
    Ok(image.windows)
}

/// Makes the system disk of a new machine a resource.
fn create_system_disk(azure: &mut AzureState, id: &ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let Some(system) = at(&record.body, "properties/storageProfile/osDisk") else { return };
    if at(system, "managedDisk/id").is_some() {
        return;
    }
    let group = ResourceId::group(id.subscription_id(), id.group_name().unwrap_or_default());
    let disk_id = group.resource("Microsoft.Compute", "disks", text(system, "name").unwrap_or_default());
    let body = data_disk::disk_body(
        &azure.location(id),
        record.body.get("zones"),
        text(system, "managedDisk/storageAccountType"),
        json!({
            "osType": system.get("osType"),
            "creationData": { "createOption": "FromImage" },
            "diskSizeGB": system.get("diskSizeGB"),
        }),
    );
    disk_creation::create(azure, &disk_id, body);
    let managed = azure
        .store
        .get_mut(id)
        .and_then(|record| record.body.get_mut("properties")?.get_mut("storageProfile")?.get_mut("osDisk"))
        .and_then(|system| system.get_mut("managedDisk"));
    if let Some(managed) = managed {
        managed["id"] = disk_id.as_str().into();
    }
    azure.changed(id);
}

/// A machine has at least one interface, each of which is its alone.
fn network_profile(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    location: Option<&Value>,
    size: &str,
    properties: &mut Object,
) -> Result<(), Refusal> {
    let id = proposal.id;
    let mut profile = properties.remove("networkProfile").unwrap_or_default();
    match proposal.old {
        None => {
            network_profile::normalise(&mut profile, id)?;
            interface_configuration::check_version(id, Some(&profile))?;
            let location = location.and_then(Value::as_str).unwrap_or_default();
            new_interfaces(azure, id, &profile, location).check(azure)?;
        }
        // They were made with the machine, and are resources of their own since.
        Some(_) => {
            if let Some(profile) = profile.as_object_mut() {
                strip(profile, &["networkInterfaceConfigurations", "networkApiVersion"]);
            }
        }
    }
    let nics = interfaces(&mut profile);
    let made = items(&profile, "networkInterfaceConfigurations").len();
    if nics.len() + made == 0 {
        return Err(missing("networkProfile"));
    }
    interface_count::check_machine(id.name(), size, nics.len() + made)?;
    proposal.old.map_or(Ok(()), |old| interface_count::check_change(old, &nics))?;
    let mut seen = std::collections::BTreeSet::new();
    for nic in &nics {
        if !seen.insert(nic.to_lower()) {
            return Err(Refusal::invalid_parameter(
                "networkProfile",
                format!("Network interface {nic} is listed more than once."),
            ));
        }
        let user = azure.store.referrers(nic).find(|user| user.from != *id);
        if let Some(user) = user {
            return Err(NIC_IN_USE.details(format_args!(
                "Network Interface {nic} is used by existing resource {}. In order to delete the network interface, it must be \
                 dissociated from the resource. To learn more, see aka.ms/deletenic.",
                user.from
            )));
        }
    }
    let is_primary = |nic: &&Value| at(nic, "properties/primary") == Some(&Value::Bool(true));
    let primaries = items(&profile, "networkInterfaces").iter().filter(is_primary).count() + made.min(1);
    if primaries > 1 || (primaries == 0 && nics.len() > 1) {
        return Err(VIRTUAL_MACHINE_MUST_HAVE_ONE_NETWORK_INTERFACE_AS_PRIMARY
            .says(format_args!(
                "Virtual machine {} must have one network interface set as the primary.",
                id.name()
            ))
            .at("networkProfile"));
    }
    properties.insert("networkProfile".into(), profile);
    Ok(())
}

/// The interfaces that the configurations in a new machine's profile stand for.
fn new_interfaces(azure: &AzureState, id: &ResourceId, profile: &Value, location: &str) -> Interfaces {
    let group = ResourceId::group(id.subscription_id(), id.group_name().unwrap_or_default());
    let guid = azure.seed.guid("interfaces", id.as_str(), azure.store.incarnation(id));
    Interfaces::of(profile, &group, location, guid.get(..8).unwrap_or_default())
}

/// Makes them, and lists them where their configurations stood.
fn create_interfaces(azure: &mut AzureState, id: &ResourceId) {
    let Some(profile) =
        azure.store.get(id).and_then(|record| at(&record.body, "properties/networkProfile")).cloned()
    else {
        return;
    };
    let configurations = items(&profile, "networkInterfaceConfigurations");
    let Some(option) = configurations.first().map(|one| text(one, "properties/deleteOption")) else { return };
    let interfaces = new_interfaces(azure, id, &profile, &azure.location(id));
    let entries = interfaces.entries(option.unwrap_or("Detach"));
    // There was room when the write was checked.
    if interfaces.make(azure).is_err() {
        return;
    }
    let all: Vec<Value> = items(&profile, "networkInterfaces").iter().cloned().chain(entries).collect();
    if let Some(record) = azure.store.get_mut(id) {
        record.body["properties"]["networkProfile"] = json!({ "networkInterfaces": all });
    }
    azure.changed(id);
}

/// Cuts the entries of `networkInterfaces` down to what Azure keeps: the id and their few properties.
fn interfaces(profile: &mut Value) -> Vec<ResourceId> {
    let entries = profile.get_mut("networkInterfaces").and_then(Value::as_array_mut).into_iter().flatten();
    let cut = |entry: &mut Value| {
        let id = stored_reference(entry, "id")?;
        let mut kept = entry.get("properties").cloned().map(into_object).unwrap_or_default();
        kept.retain(|member, _| matches!(member.as_str(), "primary" | "deleteOption"));
        *entry = json!({ "id": id });
        if !kept.is_empty() {
            entry["properties"] = Value::Object(kept);
        }
        Some(id)
    };
    entries.filter_map(cut).collect()
}
