//! The machines that have a disk: those that list it, but for those that only want it, and for a while one that is gone
//! (Azure REST reference, "Disks", `managedBy`, `managedByExtended`, `LastOwnershipUpdateTime`).

use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::compute::machine::{disk_list, full_id};
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::type_names::DISK_TYPE;
use azure_engine::document::{at, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::store::State;

/// The hidden member with the machines that are gone and still shown: id, and until when.
const GONE: &str = "goneOwners";
/// The hidden member with the time of the last change.
const CHANGED: &str = "ownershipChanged";
/// The step after a machine's end that frees its disks, as latencies name it.
const RELEASE: &str = "release";

/// The machines that have a disk, in order of their ids.
pub(crate) fn holders(azure: &AzureState, disk: &Record) -> Vec<ResourceId> {
    let listed = azure.store.referrers(&disk.id).map(|user| &user.from);
    let arrived = listed
        .filter(|user| azure.store.get(user).is_none_or(|machine| disk_list::has_arrived(machine, &disk.id)));
    let mut all: Vec<ResourceId> = arrived.cloned().collect();
    all.extend(gone(azure, disk));
    all
}

/// Machines that are gone, and that the disk still names.
pub(crate) fn gone(azure: &AzureState, disk: &Record) -> impl Iterator<Item = ResourceId> {
    let kept = disk.hidden.get(GONE).and_then(Value::as_array).into_iter().flatten();
    let now = azure.time();
    kept.filter(move |entry| is_kept(entry, now)).filter_map(|entry| stored_reference(entry, "by"))
}

fn is_kept(entry: &Value, now: Timestamp) -> bool {
    text(entry, "until").and_then(|until| until.parse::<Timestamp>().ok()).is_some_and(|until| now < until)
}

/// Notes a machine that is gone in the disks that it had.
pub(crate) fn machine_gone(azure: &mut AzureState, machine: &Record) {
    let disks = disks_of(machine);
    for disk in &disks {
        let draw = azure.seed.number(RELEASE, disk.as_str(), machine.incarnation);
        let wait = azure.latency.of("POST", DISK_TYPE, Some(RELEASE), draw);
        let now = azure.now();
        let until = SignedDuration::try_from(wait).ok().and_then(|wait| now.checked_add(wait).ok());
        let Some(record) = azure.store.get_mut(disk).filter(|disk| disk.state != State::Deleting) else {
            continue;
        };
        let kept = record.hidden.entry(GONE).or_insert_with(|| json!([]));
        if let Some(kept) = kept.as_array_mut() {
            kept.retain(|entry| is_kept(entry, now));
            kept.push(json!({ "by": machine.id, "until": until.unwrap_or(now).to_string() }));
        }
    }
    changed(azure, disks);
}

/// Notes that a machine was stopped so that it no longer uses its disks, or started again.
pub(crate) fn machine_switched(azure: &mut AzureState, machine: &ResourceId) {
    let disks = azure.store.get(machine).map(disks_of).unwrap_or_default();
    changed(azure, disks);
}

/// The disks that a machine has, the system disk first.
fn disks_of(machine: &Record) -> Vec<ResourceId> {
    let system = at(&machine.body, "properties/storageProfile/osDisk");
    let all = system.into_iter().chain(disk_list::held(machine));
    all.filter_map(|disk| stored_reference(disk, "managedDisk/id")).collect()
}

/// Notes that disks were attached or detached, or that their machine was stopped or started.
pub(crate) fn changed(azure: &mut AzureState, disks: impl IntoIterator<Item = ResourceId>) {
    let now = azure.now().to_string();
    for disk in disks {
        if let Some(record) = azure.store.get_mut(&disk) {
            changed_at(record, &now);
        }
    }
}

/// Notes that in one disk.
pub(crate) fn changed_at(disk: &mut Record, time: &str) {
    disk.hidden.insert(CHANGED.into(), time.into());
}

/// The time of the last such change.
pub(crate) fn last_change(disk: &Record) -> Option<&Value> {
    disk.hidden.get(CHANGED)
}

/// A disk that a machine has cannot be deleted.
pub(crate) fn is_attached(disk: &ResourceId, machine: &ResourceId) -> Refusal {
    let (disk, machine) = (disk.name(), full_id(machine));
    OPERATION_NOT_ALLOWED.says(format_args!("Disk {disk} is attached to VM {machine}."))
}

/// Refuses the deletion of a disk that still names a machine that is gone.
pub(crate) fn check_released(azure: &AzureState, disk: &Record) -> Result<()> {
    gone(azure, disk).next().map_or(Ok(()), |machine| Err(is_attached(&disk.id, &machine)))
}
