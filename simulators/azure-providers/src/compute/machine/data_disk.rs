//! Data disks of machines: which disk is at which LUN.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::access as disk_access;
use crate::compute::disk::background_copy::is_fast;
use crate::compute::disk::copy_source::USUAL_GIB;
use crate::compute::disk::creation as disk_creation;
use crate::compute::disk::creation::check_name_free;
use crate::compute::disk::sku as disk_sku;
use crate::compute::machine::members::MAX_LUN;
use crate::compute::shared::zones;
use crate::compute::tables::codes::{BAD_REQUEST, CONFLICTING_USER_INPUT, NOT_FOUND, OPERATION_NOT_ALLOWED};
use crate::compute::tables::sizes;
use crate::compute::tables::sizes::Size;
use azure_engine::document::{Object, at, fill, into_object, items, stored_reference, text};
use azure_engine::error::Refusal;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Proposal, Record, ResourceType, Source};
use azure_engine::store::State;

/// The machine that gets the disks.
pub(crate) struct Machine<'a> {
    pub(crate) id: &'a ResourceId,
    /// What refusals call it.
    pub(crate) noun: &'static str,
    pub(crate) size: &'a str,
    pub(crate) zone: Option<&'a str>,
    /// Before the names of disks that come with it.
    pub(crate) name: &'a str,
}

/// Checks the data disks of a storage profile and fills what is left open. Entries marked for detaching
/// are taken off.
pub(crate) fn normalise(
    azure: &AzureState,
    machine: &Machine<'_>,
    storage: &mut Object,
) -> Result<(), Refusal> {
    let mut disks = BTreeSet::new();
    each(storage, machine.size, |number, entry| {
        entry.insert("toBeDetached".into(), false.into());
        check(azure, machine, number, entry)?;
        let id = entry.get("managedDisk").and_then(|managed| text(managed, "id"));
        match id.filter(|id| !disks.insert(id.to_ascii_lowercase())) {
            Some(id) => Err(bad(format!("disk {id} is listed more than once"))),
            None => Ok(()),
        }
    })
}

/// Checks the data disks of a scale set's model, of which every instance gets its own.
pub(crate) fn normalise_model(size: &str, storage: &mut Object) -> Result<(), Refusal> {
    each(storage, size, |_, entry| {
        let mut managed = entry.remove("managedDisk").map(into_object).unwrap_or_default();
        // It could be attached to one instance alone.
        if let Some(id) = managed.get("id") {
            return Err(bad(format!("disk {id} cannot be in the model of a scale set")));
        }
        if entry.get("createOption").is_some_and(|option| option != "Empty") {
            fill(entry, "diskSizeGB", USUAL_GIB);
        }
        check_kind_and_size(size, entry, &mut managed, "data disk")
    })
}

/// Goes through the data disks of a storage profile. Entries marked for detaching are taken off; every other has a
/// LUN of its own when `check` gets it, with its number among the disks.
fn each(
    storage: &mut Object,
    size: &str,
    mut check: impl FnMut(usize, &mut Object) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let list = storage.remove("dataDisks");
    let mut luns = BTreeSet::new();
    let mut normal = Vec::new();
    for entry in list.iter().filter_map(Value::as_array).flatten() {
        let mut entry = into_object(entry.clone());
        if entry.get("toBeDetached") == Some(&Value::Bool(true)) {
            continue;
        }
        let lun = entry.get("lun").and_then(Value::as_i64).unwrap_or_default();
        if !luns.insert(lun) {
            return Err(bad(format!("more than one data disk uses lun {lun}")));
        }
        check(normal.len(), &mut entry)?;
        normal.push(Value::Object(entry));
    }
    let most = crate::compute::tables::sizes::most_disks(size);
    if normal.len() > most {
        return Err(OPERATION_NOT_ALLOWED
            .says(format_args!(
                "The maximum number of data disks allowed to be attached to a VM of this size is {most}."
            ))
            .at("dataDisks"));
    }
    storage.insert("dataDisks".into(), normal.into());
    Ok(())
}

/// What the name of a disk without one begins with: the system disk is the first of a machine.
fn usual_name(machine: &str, number: usize) -> String {
    format!("{machine}_disk{}", number + 2)
}

/// Checks one entry; `number` is how many stand before it.
fn check(
    azure: &AzureState,
    machine: &Machine<'_>,
    number: usize,
    entry: &mut Object,
) -> Result<(), Refusal> {
    let option = entry.get("createOption").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut managed = entry.remove("managedDisk").map(into_object).unwrap_or_default();
    let known = managed.contains_key("id");
    if option == "Attach" || known {
        let id = managed.get("id").and_then(Value::as_str).and_then(|id| ResourceId::parse(id).ok());
        let Some(id) = id else { return Err(bad("a data disk to attach needs managedDisk.id")) };
        let Some(disk) = azure.store.get(&id) else {
            return Err(NOT_FOUND.says(format_args!("Disk {id} is not found.")));
        };
        attachable(azure, machine, disk)?;
        check_shared_caching(entry, disk)?;
        managed.insert("id".into(), disk.id.as_str().into());
        let kind = text(&disk.body, "sku/name").unwrap_or_default();
        managed.insert("storageAccountType".into(), kind.into());
        entry.insert("name".into(), disk.id.name().into());
        if let Some(size) = at(&disk.body, "properties/diskSizeGB") {
            entry.insert("diskSizeGB".into(), size.clone());
        }
    } else {
        if option != "Empty" {
            let source = entry.get("sourceResource").and_then(|source| stored_reference(source, "id"));
            let source = source.and_then(|source| azure.store.get(&source));
            let size = source.and_then(|source| at(&source.body, "properties/diskSizeGB")).cloned();
            fill(entry, "diskSizeGB", size.unwrap_or_else(|| USUAL_GIB.into()));
        }
        let incarnation = azure.store.incarnation(machine.id);
        let subject = format!("{}/{}", machine.id, entry.get("lun").unwrap_or(&Value::Null));
        let unique = azure.seed.guid("data disk", &subject, incarnation).replace('-', "");
        fill(entry, "name", format!("{}_{unique}", usual_name(machine.name, number)));
        check_name_free(azure, machine.id, entry.get("name"), "dataDisk.name")?;
    }
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    check_kind_and_size(machine.size, entry, &mut managed, &name)
}

/// Checks how large a disk is and of which kind, and puts what is known of the kind into its entry.
fn check_kind_and_size(
    size: &str,
    entry: &mut Object,
    managed: &mut Object,
    name: &str,
) -> Result<(), Refusal> {
    fill(managed, "storageAccountType", "Standard_LRS");
    let kind = managed.get("storageAccountType").and_then(Value::as_str).unwrap_or_default();
    let Some(gib) = entry.get("diskSizeGB").and_then(Value::as_i64) else {
        return Err(bad("an empty data disk needs diskSizeGB"));
    };
    disk_sku::check_size("dataDisk.diskSizeGB", gib, disk_sku::largest(kind))?;
    check_caching(entry, kind)?;
    check_kind(size, kind, name, "dataDisk.managedDisk.storageAccountType")?;
    entry.insert("managedDisk".into(), Value::Object(std::mem::take(managed)));
    Ok(())
}

/// The kind of the disk that a member of a machine names: it may have changed since the machine was written.
pub(crate) fn kind_of<'a>(azure: &'a AzureState, managed: &Object) -> Option<&'a str> {
    let id = managed.get("id").and_then(Value::as_str).and_then(|id| ResourceId::parse(id).ok())?;
    text(&azure.store.get(&id)?.body, "sku/name")
}

/// Shows the disks of a machine as they are now.
pub(crate) fn present(azure: &AzureState, storage: &mut Value) {
    let mut disks: Vec<&mut Value> = Vec::new();
    for (member, value) in storage.as_object_mut().into_iter().flatten() {
        match (member.as_str(), value) {
            ("osDisk", system) => disks.push(system),
            ("dataDisks", Value::Array(list)) => disks.extend(list),
            _ => {}
        }
    }
    for managed in disks.into_iter().filter_map(|disk| disk.get_mut("managedDisk")?.as_object_mut()) {
        if let Some(kind) = kind_of(azure, managed) {
            managed.insert("storageAccountType".into(), kind.into());
        }
    }
}

/// What several machines write no host keeps a copy of.
fn check_shared_caching(entry: &Object, disk: &Record) -> Result<(), Refusal> {
    let caching = entry.get("caching").and_then(Value::as_str).unwrap_or("None");
    let shares = at(&disk.body, "properties/maxShares").and_then(Value::as_u64).unwrap_or(1);
    if caching == "None" || shares < 2 {
        return Ok(());
    }
    let name = disk.id.name();
    let text = format!(
        "Shared disk '{name}' with maxShares {shares} supports only Disk CachingType 'None', not '{caching}'."
    );
    Err(BAD_REQUEST.says(text))
}

/// Hosts cache no fast disks.
fn check_caching(entry: &Object, kind: &str) -> Result<(), Refusal> {
    let caching = entry.get("caching").and_then(Value::as_str).unwrap_or("None");
    if caching == "None" || !is_fast(kind) {
        return Ok(());
    }
    Err(Refusal::invalid_parameter(
        "dataDisk.caching",
        format!(
            "Storage Account type {kind} is not supported with caching type {caching}. Please use caching type None."
        ),
    ))
}

/// Not every size takes premium disks. What those outside the catalogue take nobody knows.
pub(crate) fn check_kind(size: &str, kind: &str, disk: &str, target: &str) -> Result<(), Refusal> {
    let takes = sizes::find(size).is_none_or(Size::premium);
    if takes || !kind.starts_with("Premium") {
        return Ok(());
    }
    Err(Refusal::invalid_parameter(
        target,
        format!(
            "Requested operation cannot be performed because the VM size {size} does not support the storage account type \
             {kind} of disk '{disk}'. Consider updating the VM to a size that supports Premium storage."
        ),
    ))
}

/// Whether a disk can be with this machine, too.
fn attachable(azure: &AzureState, machine: &Machine<'_>, disk: &Record) -> Result<(), Refusal> {
    let holds = azure.store.referrers(&disk.id).any(|user| user.from == *machine.id);
    if !holds {
        disk_access::check_none(azure, disk)?;
        if disk.state == State::Deleting {
            return Err(NOT_FOUND.says(format_args!("Disk {} is not found.", disk.id)));
        }
    }
    let others: Vec<&ResourceId> =
        azure.store.referrers(&disk.id).map(|user| &user.from).filter(|user| *user != machine.id).collect();
    let shares = at(&disk.body, "properties/maxShares").and_then(Value::as_u64).unwrap_or(1);
    if let (Some(other), true) = (others.first(), others.len() as u64 >= shares) {
        return Err(CONFLICTING_USER_INPUT
            .says(format_args!(
                "Disk '{}' cannot be attached as the disk is already owned by VM '{other}'.",
                disk.id.name()
            ))
            .at(disk.id.as_str()));
    }
    check_zone(machine, disk)
}

/// A machine in a zone takes disks of that zone, and one in no zone those of none; both take those that are in all.
fn check_zone(machine: &Machine<'_>, disk: &Record) -> Result<(), Refusal> {
    let zone = items(&disk.body, "zones").first().and_then(Value::as_str);
    let redundant = text(&disk.body, "sku/name").is_some_and(zones::is_redundant);
    if zone != machine.zone && !redundant {
        return Err(BAD_REQUEST.says(format_args!(
            "Disk {} cannot be attached to the {} because it is not in zone '{}'.",
            disk.id,
            machine.noun,
            machine.zone.unwrap_or_default()
        )));
    }
    Ok(())
}

/// The disks that a scale set's model asks for, for one new instance: they go with it.
pub(crate) fn of_model(
    azure: &AzureState,
    instance: &ResourceId,
    prefix: &str,
    model: Option<&Value>,
) -> Value {
    let asked = model.and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
    let disks: Vec<Value> = asked
        .iter()
        .enumerate()
        .filter_map(|(number, entry)| {
            let lun = entry.get("lun").and_then(Value::as_i64)?;
            let unique = azure.seed.guid("data disk", &format!("{instance}/{lun}"), 0).replace('-', "");
            let mut entry = into_object(entry.clone());
            entry.insert("name".into(), format!("{}_{unique}", usual_name(prefix, number)).into());
            fill(&mut entry, "deleteOption", "Delete");
            fill(&mut entry, "createOption", "Empty");
            fill(&mut entry, "toBeDetached", false);
            let mut managed = entry.remove("managedDisk").map(into_object).unwrap_or_default();
            fill(&mut managed, "storageAccountType", "Standard_LRS");
            entry.insert("managedDisk".into(), Value::Object(managed));
            Some(Value::Object(entry))
        })
        .collect();
    disks.into()
}

/// The data disks that go with their machine.
pub(crate) fn owned(body: &Value) -> Vec<ResourceId> {
    items(body, "properties/storageProfile/dataDisks")
        .iter()
        .filter(|disk| text(disk, "deleteOption") == Some("Delete"))
        .filter_map(|disk| stored_reference(disk, "managedDisk/id"))
        .collect()
}

/// Creates the disks that entries ask for, and says in the entries which they are.
pub(crate) fn create_asked_for(azure: &mut AzureState, id: &ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let location = azure.location(id);
    let zones = record.body.get("zones").cloned();
    let group = ResourceId::group(id.subscription_id(), id.group_name().unwrap_or_default());
    let mut asked = Vec::new();
    let mut body = record.body.clone();
    let list = body
        .get_mut("properties")
        .and_then(|properties| properties.get_mut("storageProfile"))
        .and_then(|storage| storage.get_mut("dataDisks"))
        .and_then(Value::as_array_mut);
    for entry in list.into_iter().flatten() {
        if at(entry, "managedDisk/id").is_some() {
            continue;
        }
        let disk = group.resource("Microsoft.Compute", "disks", text(entry, "name").unwrap_or_default());
        asked.push((
            disk.clone(),
            disk_body(
                &location,
                zones.as_ref(),
                text(entry, "managedDisk/storageAccountType"),
                json!({
                    "creationData": { "createOption": "Empty" },
                    "diskSizeGB": entry.get("diskSizeGB"),
                }),
            ),
        ));
        entry["managedDisk"]["id"] = disk.as_str().into();
    }
    if asked.is_empty() {
        return;
    }
    for (disk, body) in asked {
        disk_creation::create(azure, &disk, body);
    }
    if let Some(record) = azure.store.get_mut(id) {
        record.body = body;
    }
    azure.changed(id);
}

/// The document of a disk that comes with a machine.
pub(crate) fn disk_body(
    location: &str,
    zones: Option<&Value>,
    kind: Option<&str>,
    properties: Value,
) -> Value {
    let mut body = json!({
        "location": location,
        "sku": { "name": kind.unwrap_or("Standard_LRS") },
        "properties": properties,
    });
    // A machine's zone is its disks' zone, too, but for kinds that are in all of them.
    if let Some(zones) = zones.filter(|_| !kind.is_some_and(zones::is_redundant)) {
        body["zones"] = zones.clone();
    }
    body
}

/// The action that changes the list of data disks entry by entry.
pub(crate) const CHANGE: &str = "attachDetachDataDisks";

/// Does that: what it comes to is written as a whole list would be.
pub(crate) fn change(
    azure: &mut AzureState,
    resource_type: &'static dyn ResourceType,
    id: &ResourceId,
    body: &Value,
) -> Result<Action, Refusal> {
    let record = azure.store.get(id).ok_or_else(|| azure.not_found(id))?;
    let mut list: Vec<Value> = items(&record.body, "properties/storageProfile/dataDisks").to_vec();
    let same = |entry: &Value, disk: &str| {
        text(entry, "managedDisk/id").is_some_and(|id| id.eq_ignore_ascii_case(disk))
    };
    for gone in items(body, "dataDisksToDetach") {
        let disk = text(gone, "diskId").unwrap_or_default();
        let before = list.len();
        list.retain(|entry| !same(entry, disk));
        if list.len() == before {
            return Err(bad(format!("disk {disk} is not attached to {}", id.name())));
        }
    }
    for wanted in items(body, "dataDisksToAttach") {
        let used: BTreeSet<i64> = list.iter().filter_map(|entry| entry.get("lun")?.as_i64()).collect();
        let free = (0..=MAX_LUN).find(|lun| !used.contains(lun));
        let lun = wanted.get("lun").and_then(Value::as_i64).or(free);
        let mut entry = into_object(wanted.clone());
        let disk = entry.remove("diskId");
        entry.insert("lun".into(), lun.into());
        entry.insert("createOption".into(), "Attach".into());
        entry.insert("managedDisk".into(), json!({ "id": disk }));
        list.push(Value::Object(entry));
    }
    let mut envelope = Object::new();
    envelope.insert("properties".into(), json!({ "storageProfile": { "dataDisks": list } }));
    let written = { azure.judge(resource_type, Proposal::new(id, Some(record), envelope, Source::Put))? };
    // Who asked is told the storage profile that came of it.
    let told = at(&written, "properties/storageProfile").cloned().unwrap_or_default();
    if let Some(record) = azure.store.get_mut(id) {
        record.body = written;
        record.version += 1;
    }
    azure.changed(id);
    Ok(Action { completion: Completion::Report(told), answer: None })
}

fn bad(why: impl std::fmt::Display) -> Refusal {
    Refusal::invalid_parameter("dataDisks", format!("The data disks cannot be as asked for: {why}."))
}
