//! Virtual machines (Azure REST reference, "Virtual Machines").

pub(crate) mod extension;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::sku::usual_disk;
use crate::compute::disk::{creation, ownership};
use crate::compute::machine::ending;
use crate::compute::machine::interface_configuration::Interfaces;
use crate::compute::machine::{
    data_disk, disk_change, fault_domain, guest, image, instance_view, interface_configuration,
    interface_count, members, network_profile, os_profile, power, spot,
};
use crate::compute::scale_set::{capacity, flexible};
use crate::compute::shared::zones::Span;
use crate::compute::shared::{catalogue, quota, zones};
use crate::compute::tables::codes::{BAD_REQUEST, OPERATION_NOT_ALLOWED};
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::MACHINE_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::{
    Object, at, at_mut, fill_at, flag, items, name, remove_at, stored_reference, strip, text,
};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, Action, AzureState, EndedOperation, Expand, Listing, Presenting, Proposal, Protocol, Record,
    Shape, Source, Writing,
};
use azure_engine::refusal::{Code, Handled, Refusal, Result};
use azure_engine::settings::options::Options;
use azure_engine::store::reference::Reference;
use azure_engine::types::member_table::pointers;

pub(crate) struct VirtualMachines;

const SIZE: &str = "properties/hardwareProfile/vmSize";

const PROTOCOL: Protocol = Protocol {
    members: &members::MACHINE,
    example: include_str!("example.json"),
    actions: &[
        "start",
        "powerOff",
        "deallocate",
        "restart",
        "redeploy",
        "reimage",
        "reapply",
        "attachDetachDataDisks",
    ],
    ..protocol(MACHINE_TYPE, "VM")
};

impl Shape for VirtualMachines {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let mut all = pointers(&members::MACHINE, &record.id, &record.body);
        // References inside interface configurations belong to the interfaces.
        all.retain(|reference| reference.from == record.id);
        let profile = at(&record.body, "properties/networkProfile").into_iter();
        all.extend(profile.flat_map(|profile| interface_configuration::references(&record.id, profile)));
        all
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        let nics = items(&record.body, "properties/networkProfile/networkInterfaces")
            .iter()
            .filter(|nic| text(nic, "properties/deleteOption") == Some("Delete"))
            .filter_map(|nic| stored_reference(nic, "id"));
        let with_addresses = |nic| {
            let addresses = interface_configuration::owned_addresses(azure, &nic);
            std::iter::once(nic).chain(addresses)
        };
        nics.flat_map(with_addresses).chain(data_disk::owned(&record.body)).collect()
    }
}

impl Writing for VirtualMachines {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let (id, mut body) = (proposal.id, proposal.take());
        zones::check(azure, &proposal, Span::One, &mut body)?;
        let size = text(&body, SIZE).unwrap_or_default().to_owned();
        let location = text(&body, "location").unwrap_or_default().to_owned();
        if proposal.old_member(SIZE).and_then(Value::as_str) != Some(&size) {
            catalogue::check_available(azure, &size, &body)?;
            // A scale set that creates a machine has checked the quota.
            if proposal.source != Source::Service {
                quota::check(azure, id, &location, &size, 1, spot::is_of_spot(&body["properties"]))?;
            }
        }
        check_scale_set(azure, &proposal, &body)?;
        check_availability_set(azure, &body)?;
        spot::check_members(&body["properties"])?;
        let windows = system_disk(azure, &proposal, &size, &mut body["properties"]["storageProfile"])?;
        if proposal.old.is_none() {
            image::check(azure, &body["properties"]["storageProfile"], &location)?;
        }
        data_disk::normalise(azure, id, proposal.old, &mut body)?;
        os_profile::normalise(&proposal, windows, &mut body)?;
        network_profile(azure, &proposal, &location, &size, &mut body["properties"]["networkProfile"])?;
        Ok(body)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            flexible::joined(azure, id);
            create_interfaces(azure, id);
            fault_domain::assign(azure, id);
        }
        creation::create_asked_for(azure, id);
        disk_change::begin(azure, id, old);
        if old.is_none() {
            guest::start(azure, id, true);
        }
    }

    fn after_outside_work(&self, azure: &mut AzureState, id: &ResourceId, answer: &Value) -> Option<Refusal> {
        guest::record_report(azure, id, answer)
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        match ended.completion {
            Completion::Action(action, targets) if !ended.failed => power::finish(azure, id, action, targets),
            Completion::Write | Completion::Report(_) => ending::settle(azure, id, ended.failed),
            _ => {}
        }
    }

    fn preempts(&self, record: &Record, asked: &Value) -> Option<Refusal> {
        disk_change::preempted(record, asked)
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        ownership::machine_gone(azure, record);
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        if let Some(set) = azure.store.get(id).and_then(flexible::set_of) {
            capacity::lower(azure, &set, 1);
        }
    }
}

impl Presenting for VirtualMachines {
    fn page_size(&self, options: &Options, _listing: &Listing<'_>) -> usize {
        options.page_size
    }

    fn present_unfinished(&self, _azure: &AzureState, record: &Record, document: &mut Object) {
        // While a machine is being made, its system disk has no id yet.
        if record.hidden.get("power").is_none()
            && let Some(properties) = document.get_mut("properties")
        {
            remove_at(properties, "storageProfile/osDisk/managedDisk/id");
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
        instance_view::present(azure, record, document, expand);
        data_disk::present(azure, &mut document["properties"]);
    }

    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let Some(filter) = listing.query.get("$filter") else {
            // `statusOnly` returns the models, too.
            let status =
                listing.query.get("statusonly").is_some_and(|asked| asked.eq_ignore_ascii_case("true"));
            let expand = Expand { instance_view: listing.expand.instance_view || status };
            return Some(azure.present(record, expand));
        };
        // `'virtualMachineScaleSet/id' eq '{id}'`; with this filter, `$expand` returns no models.
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
            "properties": { "instanceView": instance_view::of(azure, record) },
        }))
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        let [view] = below else { return None };
        view.eq_ignore_ascii_case("instanceView").then(|| Ok(instance_view::of(azure, record)))
    }
}

impl Acting for VirtualMachines {
    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        data_disk::change(azure, id, action, body).or_else(|| power::begin(azure, id, action, body))
    }
}

/// A machine joins flexible sets alone, and stands where its set does.
fn check_scale_set(azure: &AzureState, proposal: &Proposal<'_>, body: &Value) -> Result<()> {
    let set = stored_reference(body, "properties/virtualMachineScaleSet/id");
    let Some(set) = set.and_then(|set| azure.store.get(&set)) else { return Ok(()) };
    let text = format_args!(
        "Virtual machine scale set {} has uniform orchestration: machines cannot join it.",
        set.id
    );
    Refusal::invalid_when(!flexible::is_flexible(set), "virtualMachineScaleSet.id", text)?;
    // The set may have been given zones since.
    if proposal.old.is_some() { Ok(()) } else { zones::check_member(set, items(body, "zones").first()) }
}

/// A machine in an availability set is in no zone, and the set is one for managed disks.
fn check_availability_set(azure: &AzureState, body: &Value) -> Result<()> {
    let Some(set) = stored_reference(body, "properties/availabilitySet/id") else { return Ok(()) };
    Code::azures(400, "AzureSpotVMNotSupportedInAvailabilitySet").says_when(
        spot::is_of_spot(&body["properties"]),
        "Azure Spot Virtual Machine is not supported in Availability Set.",
    )?;
    BAD_REQUEST.says_when(
        !items(body, "zones").is_empty(),
        "Virtual Machine cannot be created because both Availability Zone and Availability Set were specified. \
         Deploying an Availability Set to an Availability Zone isn't supported.",
    )?;
    let classic = azure.store.get(&set).is_some_and(|set| text(&set.body, "sku/name") == Some("Classic"));
    let name = set.name();
    let text = format_args!(
        "A VM with managed disks cannot be added to Availability Set '{name}', whose sku is not 'Aligned'."
    );
    OPERATION_NOT_ALLOWED.says_when(classic, text).map_err(|refusal| refusal.at("availabilitySet"))
}

/// Fills the system disk of a storage profile; says whether the system is Windows.
fn system_disk(azure: &AzureState, proposal: &Proposal<'_>, size: &str, storage: &mut Value) -> Result<bool> {
    let id = proposal.id;
    let attached = text(storage, "osDisk/createOption") == Some("Attach");
    if storage.get("imageReference").is_none() && !attached {
        return Err(missing("storageProfile.imageReference"));
    }
    let image = image::fill_system_disk(storage);
    image::name_version(storage, &image);
    let unique = azure.seed.guid("os disk", id.as_str(), azure.store.incarnation(id)).replace('-', "");
    let system = &mut storage["osDisk"];
    fill_at(system, "name", format!("{}_OsDisk_1_{unique}", id.name()));
    if proposal.old.is_none() && !attached {
        creation::check_name_free(azure, id, system, "osDisk.name")?;
    }
    match data_disk::kind_now(azure, system) {
        Some(kind) => system["managedDisk"]["storageAccountType"] = kind.into(),
        None => fill_at(system, "managedDisk/storageAccountType", usual_disk(size)),
    }
    let kind = text(system, "managedDisk/storageAccountType").unwrap_or_default();
    data_disk::check_kind(size, kind, name(system), "osDisk.managedDisk.storageAccountType")?;
    data_disk::check_write_accelerator(size, system, kind, "osDisk")?;
    Ok(image.windows)
}

/// A machine has at least one interface, each of which is its alone.
fn network_profile(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    location: &str,
    size: &str,
    profile: &mut Value,
) -> Result<()> {
    let id = proposal.id;
    if proposal.old.is_none() {
        network_profile::normalise(profile, id)?;
        interface_configuration::check_version(id, profile)?;
        new_interfaces(azure, id, profile, location).check(azure)?;
    } else if let Some(profile) = profile.as_object_mut() {
        // The interfaces were created with the machine, and are resources of their own since.
        strip(profile, &["networkInterfaceConfigurations", "networkApiVersion"]);
    }
    let nics: Vec<ResourceId> =
        items(profile, "networkInterfaces").iter().filter_map(|nic| stored_reference(nic, "id")).collect();
    let made = items(profile, "networkInterfaceConfigurations").len();
    if nics.len() + made == 0 {
        return Err(missing("networkProfile"));
    }
    let whose = format!("virtual machine {}", id.name());
    interface_count::check(size, nics.len() + made, "network interfaces", &whose)?;
    proposal.old.map_or(Ok(()), |old| interface_count::check_change(old, &nics))?;
    for (at, nic) in nics.iter().enumerate() {
        let twice = nics.iter().take(at).any(|other| other == nic);
        let text = format_args!("Network interface {nic} is listed more than once.");
        Refusal::invalid_when(twice, "networkProfile", text)?;
        if let Some(user) = azure.store.referrers(nic).map(|user| &user.from).find(|user| *user != id) {
            return Err(Code::azures(400, "NicInUse").details(format_args!(
                "Network Interface {nic} is used by existing resource {user}. In order to delete the network interface, it must \
                 be dissociated from the resource. To learn more, see aka.ms/deletenic."
            )));
        }
    }
    let primary = items(profile, "networkInterfaces").iter().filter(|nic| flag(nic, "properties/primary"));
    let primaries = primary.count() + made.min(1);
    let wrong = primaries > 1 || (primaries == 0 && nics.len() > 1);
    let text =
        format_args!("Virtual machine {} must have one network interface set as the primary.", id.name());
    Code::ours(400, "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary")
        .says_when(wrong, text)
        .map_err(|refusal| refusal.at("networkProfile"))
}

/// The interfaces that the configurations in a new machine's profile stand for.
fn new_interfaces(azure: &AzureState, id: &ResourceId, profile: &Value, location: &str) -> Interfaces {
    let guid = azure.seed.guid("interfaces", id.as_str(), azure.store.incarnation(id));
    Interfaces::of(profile, id, location, guid.get(..8).unwrap_or_default())
}

/// Makes them, and lists them where their configurations stood.
fn create_interfaces(azure: &mut AzureState, id: &ResourceId) {
    let body = azure.store.get(id).map(|record| &record.body);
    let Some(profile) = body.and_then(|body| at(body, "properties/networkProfile")).cloned() else { return };
    let Some(first) = items(&profile, "networkInterfaceConfigurations").first() else { return };
    let option = text(first, "properties/deleteOption").unwrap_or("Detach");
    let interfaces = new_interfaces(azure, id, &profile, &azure.location(id));
    let mut all = items(&profile, "networkInterfaces").to_vec();
    all.extend(interfaces.entries(option));
    // There was room when the write was checked.
    if interfaces.make(azure).is_err() {
        return;
    }
    let body = azure.store.get_mut(id).map(|record| &mut record.body);
    if let Some(profile) = body.and_then(|body| at_mut(body, "properties/networkProfile")) {
        *profile = json!({ "networkInterfaces": all });
    }
    azure.changed(id);
}
