//! Data disks of machines: which disk is at which LUN.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::access;
use crate::compute::disk::background_copy::is_fast;
use crate::compute::disk::copy_source::USUAL_GIB;
use crate::compute::disk::creation::check_name_free;
use crate::compute::disk::creation::entries_mut;
use crate::compute::disk::ownership;
use crate::compute::disk::sku::{check_size, kind_of};
use crate::compute::machine::disk_list::{is_leaving, leaves};
use crate::compute::machine::members::{MAX_LUN, STORAGE};
use crate::compute::machine::{disk_change, full_id};
use crate::compute::shared::zones;
use crate::compute::tables::codes::{BAD_REQUEST, CONFLICTING_USER_INPUT, NOT_FOUND, OPERATION_NOT_ALLOWED};
use crate::compute::tables::sizes;
use crate::compute::tables::sizes::Size;
use azure_engine::document::{
    Object, at, fill_at, flag, items, name, number, remove_at, stored_reference, text,
};
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Proposal, Record, Source};
use azure_engine::refusal::{Handled, Refusal, Result};
use azure_engine::store::State;
use azure_engine::store::reference::Role;
use azure_engine::types::member_table::pointers_below;

/// The machine that gets the disks.
struct Machine<'a> {
    id: &'a ResourceId,
    size: &'a str,
    zone: Option<&'a str>,
}

/// Checks the data disks in the document of a machine and fills what is left open. Disks that leave the machine stay in
/// the list, marked.
pub(crate) fn normalise(
    azure: &AzureState,
    id: &ResourceId,
    old: Option<&Record>,
    body: &mut Value,
) -> Result<()> {
    let size = text(body, "properties/hardwareProfile/vmSize").unwrap_or_default().to_owned();
    let zone = items(body, "zones").first().and_then(Value::as_str).map(str::to_owned);
    let machine = Machine { id, size: &size, zone: zone.as_deref() };
    let mut disks = BTreeSet::new();
    let storage = &mut body["properties"]["storageProfile"];
    disk_change::keep_leaving(id, old, storage)?;
    each(storage, &size, |number, entry| {
        check(azure, &machine, number, entry)?;
        let id = text(entry, "managedDisk/id").filter(|id| !disks.insert(id.to_ascii_lowercase()));
        id.map_or(Ok(()), |id| Err(bad(format_args!("disk {id} is listed more than once"))))
    })
}

/// Checks the data disks of a scale set's model, of which every instance gets its own.
pub(crate) fn normalise_model(size: &str, storage: &mut Value) -> Result<()> {
    each(storage, size, |_, entry| {
        // An existing disk could be attached to one instance alone.
        if let Some(id) = at(entry, "managedDisk/id") {
            return Err(bad(format_args!("disk {id} cannot be in the model of a scale set")));
        }
        check_kind_and_size(size, entry, "data disk")
    })
}

/// Goes through the data disks of a storage profile that stay on the machine: each has a LUN of its own when `check`
/// gets it, with its number among the disks. A disk that comes may have the LUN of one that leaves.
fn each(
    storage: &mut Value,
    size: &str,
    mut check: impl FnMut(usize, &mut Value) -> Result<()>,
) -> Result<()> {
    let Some(Value::Array(list)) = storage.get_mut("dataDisks") else {
        return Ok(());
    };
    let mut luns = BTreeSet::new();
    for (at, entry) in list.iter_mut().filter(|entry| !leaves(entry)).enumerate() {
        let lun = number(entry, "lun").unwrap_or_default();
        if !luns.insert(lun) {
            return Err(bad(format_args!("more than one data disk uses lun {lun}")));
        }
        check(at, entry)?;
    }
    let most = sizes::most_disks(size);
    let text = format_args!(
        "The maximum number of data disks allowed to be attached to a VM of this size is {most}."
    );
    OPERATION_NOT_ALLOWED.says_when(luns.len() > most, text).map_err(|refusal| refusal.at("dataDisks"))
}

/// What a disk without a name is called: the system disk is the first of a machine. Numbers of instances are used once
/// in the life of a set.
fn usual_name(azure: &AzureState, machine: &ResourceId, number: usize, lun: Option<&Value>) -> String {
    let subject = format!("{machine}/{}", lun.unwrap_or(&Value::Null));
    let (name, incarnation) = match instance_prefix(machine) {
        Some(prefix) => (prefix, 0),
        None => (machine.name().to_owned(), azure.store.incarnation(machine)),
    };
    let unique = azure.seed.guid("data disk", &subject, incarnation).replace('-', "");
    format!("{name}_disk{}_{unique}", number + 2)
}

/// What the names of disks of a scale set's instance begin with.
pub(crate) fn instance_prefix(machine: &ResourceId) -> Option<String> {
    let set = machine.parent().filter(|parent| parent.namespace().is_some())?;
    Some(format!("{0}_{0}_{1}", set.name(), machine.name()))
}

/// Checks one entry; `number` is how many stand before it.
fn check(azure: &AzureState, machine: &Machine<'_>, number: usize, entry: &mut Value) -> Result<()> {
    if text(entry, "createOption") == Some("Attach") || at(entry, "managedDisk/id").is_some() {
        let id = stored_reference(entry, "managedDisk/id");
        let id = id.ok_or_else(|| bad("a data disk to attach needs managedDisk.id"))?;
        let disk = azure.store.get(&id).ok_or_else(|| not_found(&id))?;
        attachable(azure, machine, disk)?;
        check_shared_caching(entry, disk)?;
        entry["managedDisk"]["id"] = disk.id.as_str().into();
        entry["managedDisk"]["storageAccountType"] = kind_of(disk).into();
        entry["name"] = disk.id.name().into();
        if let Some(size) = at(&disk.body, "properties/diskSizeGB") {
            entry["diskSizeGB"] = size.clone();
        }
    } else {
        let usual = usual_name(azure, machine.id, number, entry.get("lun"));
        fill_at(entry, "name", usual);
        check_name_free(azure, machine.id, entry, "dataDisk.name")?;
    }
    let name = name(entry).to_owned();
    check_kind_and_size(machine.size, entry, &name)
}

/// Checks how large a disk is and of which kind.
fn check_kind_and_size(size: &str, entry: &mut Value, name: &str) -> Result<()> {
    if text(entry, "createOption") != Some("Empty") {
        fill_at(entry, "diskSizeGB", USUAL_GIB);
    }
    let kind = text(entry, "managedDisk/storageAccountType").unwrap_or_default();
    let gib = number(entry, "diskSizeGB").ok_or_else(|| bad("an empty data disk needs diskSizeGB"))?;
    check_size("dataDisk.diskSizeGB", gib, kind)?;
    check_caching(entry, kind)?;
    check_write_accelerator(size, entry, kind, "dataDisk")?;
    check_kind(size, kind, name, "dataDisk.managedDisk.storageAccountType")
}

/// The kind of the disk that an entry of a machine names: it may have changed since the machine was written.
pub(crate) fn kind_now<'a>(azure: &'a AzureState, entry: &Value) -> Option<&'a str> {
    Some(kind_of(azure.store.get(&stored_reference(entry, "managedDisk/id")?)?))
}

/// Shows the disks of a machine as they are now.
pub(crate) fn present(azure: &AzureState, document: &mut Value) {
    for entry in entries_mut(document) {
        if let Some(kind) = kind_now(azure, entry) {
            entry["managedDisk"]["storageAccountType"] = kind.into();
        }
    }
}

/// The caching mode of a disk on the host.
fn caching(entry: &Value) -> &str {
    text(entry, "caching").unwrap_or("None")
}

/// How many machines can have a disk.
fn shares(disk: &Record) -> u64 {
    number(&disk.body, "properties/maxShares").unwrap_or(1)
}

/// Hosts do not cache disks that several machines write.
fn check_shared_caching(entry: &Value, disk: &Record) -> Result<()> {
    let (caching, shares, name) = (caching(entry), shares(disk), disk.id.name());
    BAD_REQUEST.says_when(caching != "None" && shares > 1, format_args!(
        "Shared disk '{name}' with maxShares {shares} supports only Disk CachingType 'None', not '{caching}'."
    ))
}

/// Hosts do not cache fast disks.
fn check_caching(entry: &Value, kind: &str) -> Result<()> {
    let caching = caching(entry);
    let text = format_args!(
        "Storage Account type {kind} is not supported with caching type {caching}. Please use caching type None."
    );
    Refusal::invalid_when(caching != "None" && is_fast(kind), "dataDisk.caching", text)
}

/// Write Accelerator is for premium disks of sizes of the M series, cached for reading at most ("Write Accelerator").
pub(crate) fn check_write_accelerator(size: &str, entry: &Value, kind: &str, noun: &str) -> Result<()> {
    if !flag(entry, "writeAcceleratorEnabled") {
        return Ok(());
    }
    let text = format_args!(
        "Write Accelerator is not supported for the VM size '{size}'. It is supported for the M-series alone."
    );
    let member = &format!("{noun}.writeAcceleratorEnabled");
    Refusal::invalid_when(!sizes::accelerates_writes(size), member, text)?;
    let caching = caching(entry);
    let text = format_args!(
        "Write Accelerator is for disks of the kinds Premium_LRS and Premium_ZRS with caching None or ReadOnly, not for          {kind} with {caching}."
    );
    Refusal::invalid_when(!kind.starts_with("Premium_") || caching == "ReadWrite", member, text)
}

/// Refuses premium disks on sizes that do not take them. Sizes outside the catalogue are not checked.
pub(crate) fn check_kind(size: &str, kind: &str, disk: &str, target: &str) -> Result<()> {
    let wrong = kind.starts_with("Premium") && !sizes::find(size).is_none_or(Size::premium);
    Refusal::invalid_when(
        wrong,
        target,
        format_args!(
            "Requested operation cannot be performed because the VM size {size} does not support the storage account type \
         {kind} of disk '{disk}'. Consider updating the VM to a size that supports Premium storage."
        ),
    )
}

/// Whether a disk can be attached to this machine, too.
fn attachable(azure: &AzureState, machine: &Machine<'_>, disk: &Record) -> Result<()> {
    let users = || azure.store.referrers(&disk.id).map(|user| &user.from);
    if !users().any(|user| user == machine.id) {
        access::check_none(azure, disk)?;
        if disk.state == State::Deleting {
            return Err(not_found(&disk.id));
        }
    }
    check_owners(azure, machine, disk)?;
    // A machine takes disks of its own zone, a machine without a zone takes disks without one; both take disks
    // replicated to all zones.
    let zone = items(&disk.body, "zones").first().and_then(Value::as_str);
    let noun = if instance_prefix(machine.id).is_some() {
        "virtual machine scale set instance"
    } else {
        "virtual machine"
    };
    let wanted = machine.zone.unwrap_or_default();
    BAD_REQUEST.says_when(
        zone != machine.zone && !zones::is_redundant(kind_of(disk)),
        format_args!(
            "Disk {} cannot be attached to the {noun} because it is not in zone '{wanted}'.",
            disk.id
        ),
    )
}

/// Refuses a disk that others have, as many as can. Those that it is about to go to, and those that are gone but whose
/// hold has not ended, count, too.
fn check_owners(azure: &AzureState, machine: &Machine<'_>, disk: &Record) -> Result<()> {
    let users = azure.store.referrers(&disk.id).map(|user| user.from.clone());
    let others: Vec<ResourceId> =
        users.chain(ownership::gone(azure, disk)).filter(|user| user != machine.id).collect();
    let Some(other) = others.first().filter(|_| others.len() as u64 >= shares(disk)) else { return Ok(()) };
    let leaves = |user: &ResourceId| azure.store.get(user).is_some_and(|user| is_leaving(user, &disk.id));
    if others.iter().any(leaves) {
        return Err(disk_change::being_detached(&disk.id, machine.id));
    }
    let (name, other) = (disk.id.name(), full_id(other));
    Err(CONFLICTING_USER_INPUT
        .says(format_args!("Disk '{name}' cannot be attached as the disk is already owned by VM '{other}'."))
        .at(disk.id.as_str()))
}

/// The disks of a scale set's model, for one new instance: they are deleted with it.
pub(crate) fn of_model(azure: &AzureState, instance: &ResourceId, model: &[Value]) -> Value {
    let disk = |(number, entry): (usize, &Value)| {
        let mut entry = entry.clone();
        entry["name"] = usual_name(azure, instance, number, entry.get("lun")).into();
        fill_at(&mut entry, "deleteOption", "Delete");
        entry
    };
    model.iter().enumerate().map(disk).collect()
}

/// The disks that are deleted with their machine.
pub(crate) fn owned(body: &Value) -> Vec<ResourceId> {
    at(body, "properties/storageProfile/osDisk")
        .into_iter()
        .chain(items(body, "properties/storageProfile/dataDisks"))
        .filter(|disk| text(disk, "deleteOption") == Some("Delete"))
        .filter_map(|disk| stored_reference(disk, "managedDisk/id"))
        .collect()
}

/// The action `attachDetachDataDisks` changes the list of data disks entry by entry; `None` for any other.
pub(crate) fn change(azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
    action.eq_ignore_ascii_case("attachDetachDataDisks").then(|| attach_and_detach(azure, id, body))
}

/// Begins that action: the resulting list is written as a whole list would be.
fn attach_and_detach(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<Action> {
    let record = azure.store.get(id).ok_or_else(|| azure.not_found(id))?;
    let mut list: Vec<Value> = items(&record.body, "properties/storageProfile/dataDisks").to_vec();
    for gone in items(body, "dataDisksToDetach") {
        let disk = text(gone, "diskId").unwrap_or_default();
        let is = |entry: &&mut Value| {
            text(entry, "managedDisk/id").is_some_and(|id| id.eq_ignore_ascii_case(disk))
        };
        let Some(entry) = list.iter_mut().find(is) else {
            return Err(bad(format_args!("disk {disk} is not attached to {}", id.name())));
        };
        entry["toBeDetached"] = true.into();
        if let Some(option) = gone.get("detachOption") {
            entry["detachOption"] = option.clone();
        }
    }
    for wanted in items(body, "dataDisksToAttach") {
        let used =
            |lun: &i64| list.iter().any(|entry| !leaves(entry) && entry.get("lun") == Some(&json!(lun)));
        let free = (0..=MAX_LUN).find(|lun| !used(lun));
        if !wanted.is_object() {
            return Err(bad(format_args!("an entry of dataDisksToAttach is not an object")));
        }
        let mut entry = wanted.clone();
        let disk = remove_at(&mut entry, "diskId");
        fill_at(&mut entry, "lun", free);
        entry["createOption"] = "Attach".into();
        entry["managedDisk"] = json!({ "id": disk });
        list.push(entry);
    }
    let mut envelope = Object::new();
    envelope.insert("properties".into(), json!({ "storageProfile": { "dataDisks": list } }));
    let written =
        azure.judge(record.resource_type, Proposal::new(id, Some(record), envelope, Source::Put))?;
    // The answer shows the resulting storage profile.
    let mut shown = at(&written, "properties/storageProfile").cloned().unwrap_or_default();
    if let Some(Value::Array(list)) = shown.get_mut("dataDisks") {
        list.retain(|entry| !leaves(entry));
    }
    let before = azure.store.get(id).map(|record| record.body.clone());
    if let Some(record) = azure.store.get_mut(id) {
        record.body = written;
        record.version += 1;
        record.state = State::Updating;
    }
    azure.changed(id);
    disk_change::begin(azure, id, before.as_ref());
    Ok(Action::begun(Completion::Report(shown)))
}

fn not_found(disk: &ResourceId) -> Refusal {
    NOT_FOUND.says(format_args!("Disk {disk} is not found."))
}

fn bad(why: impl std::fmt::Display) -> Refusal {
    Refusal::invalid_parameter("dataDisks", format!("The data disks cannot be as asked for: {why}."))
}

/// Refuses to start a machine while one of its disks has granted access.
pub(crate) fn check_unread(azure: &AzureState, machine: &ResourceId) -> Result<()> {
    let Some(storage) =
        azure.store.get(machine).and_then(|machine| at(&machine.body, "properties/storageProfile"))
    else {
        return Ok(());
    };
    let disks = pointers_below(&STORAGE, machine, storage, Role::Uses);
    let mut disks = disks.iter().filter_map(|disk| azure.store.get(&disk.to));
    disks.try_for_each(|disk| access::check_none(azure, disk))
}
