//! Changes of a machine's data disks. They take effect when their operation ends: until then, a disk that leaves stays
//! with its machine, marked `toBeDetached`, and a disk that comes has no machine. A failed operation changes nothing
//! (Azure REST reference, "Virtual Machines", `toBeDetached` and `detachOption`).

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::disk::ownership;
use crate::compute::machine::disk_list::{BEFORE, LIST, before, held, is_leaving, is_of, leaves, same};
use crate::compute::machine::machine_name;
use crate::compute::tables::codes::{ATTACH_DISK_WHILE_BEING_DETACHED, DATA_DISKS_FORCE_DETACHED};
use azure_engine::document::{at_mut, items, remove_at, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Refusal, Result};

/// Completes a wanted list: disks that it marks or leaves out stay in it, marked, while the machine has them.
pub(crate) fn keep_leaving(id: &ResourceId, old: Option<&Record>, storage: &mut Value) -> Result<()> {
    let Some(Value::Array(wanted)) = storage.get_mut("dataDisks") else { return Ok(()) };
    let had = old.map_or(&[][..], held);
    let mut list = Vec::new();
    for mut entry in std::mem::take(wanted) {
        if !leaves(&entry) {
            remove_at(&mut entry, "detachOption");
            let disk = stored_reference(&entry, "managedDisk/id");
            if let Some(disk) = disk.filter(|disk| old.is_some_and(|old| is_leaving(old, disk))) {
                return Err(being_detached(&disk, id));
            }
            list.push(entry);
        } else if let Some(known) = had.iter().find(|known| same(known, &entry)) {
            list.push(leaving(known, entry.get("detachOption")));
        }
    }
    let left_out = had.iter().filter(|known| !list.iter().any(|entry| same(known, entry)));
    let left_out: Vec<Value> = left_out.map(|known| leaving(known, None)).collect();
    list.extend(left_out);
    *wanted = list;
    Ok(())
}

fn leaving(known: &Value, option: Option<&Value>) -> Value {
    let mut entry = known.clone();
    entry["toBeDetached"] = true.into();
    if let Some(option) = option {
        entry["detachOption"] = option.clone();
    }
    entry
}

/// A disk that is being detached cannot be attached, neither there nor elsewhere.
pub(crate) fn being_detached(disk: &ResourceId, machine: &ResourceId) -> Refusal {
    let (name, machine) = (disk.name(), machine_name(machine));
    ATTACH_DISK_WHILE_BEING_DETACHED
        .says(format_args!(
            "Cannot attach data disk '{name}' to VM '{machine}' because the disk is currently being detached or the last \
             detach operation failed. Please wait until the disk is completely detached and then try again or \
             delete/detach the disk explicitly again."
        ))
        .at(disk.as_str())
}

/// Why the change that is under way ends, if a request takes disks off the machine by force.
pub(crate) fn preempted(machine: &Record, asked: &Value) -> Option<Refusal> {
    before(machine)?;
    let forced = |entry: &Value| text(entry, "detachOption") == Some("ForceDetach");
    let now = items(&machine.body, LIST);
    let listed = items(asked, "storageProfile/dataDisks").iter().filter(|entry| leaves(entry));
    let named = items(asked, "dataDisksToDetach").iter();
    let is_new = |entry: &Value| {
        let disk = text(entry, "managedDisk/id").or_else(|| text(entry, "diskId"));
        let known =
            now.iter().find(|known| same(known, entry) || disk.is_some_and(|disk| is_of(known, disk)));
        forced(entry) && !known.is_some_and(forced)
    };
    listed.chain(named).any(is_new).then(|| {
        DATA_DISKS_FORCE_DETACHED.says(format_args!(
            "The operation on '{}' was preempted, because data disks were force detached from it.",
            machine_name(&machine.id)
        ))
    })
}

/// Begins a change: the list in the document is the one that is wanted, `old` is the document before.
pub(crate) fn begin(azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
    let Some(record) = azure.store.get_mut(id) else { return };
    match old {
        Some(old) if items(old, LIST) != items(&record.body, LIST) => {
            let before = items(old, LIST).to_vec();
            record.hidden.entry(BEFORE).or_insert_with(|| before.into());
        }
        Some(_) => {}
        // A new machine has its disks from the start.
        None => ownership::machine_switched(azure, id),
    }
}

/// Ends it.
pub(crate) fn end(azure: &mut AzureState, id: &ResourceId, failed: bool) {
    let Some(record) = azure.store.get_mut(id) else { return };
    let Some(Value::Array(before)) = record.hidden.remove(BEFORE) else { return };
    let Some(Value::Array(list)) = at_mut(&mut record.body, LIST) else { return };
    let wanted = std::mem::take(list);
    let (mut came, mut went) = (Vec::new(), Vec::new());
    for entry in &wanted {
        let known = before.iter().any(|known| same(known, entry));
        match (known, leaves(entry)) {
            (false, _) => came.push(entry.clone()),
            (true, true) => went.push(entry.clone()),
            (true, false) => {}
        }
    }
    *list = match failed {
        true => before,
        false => wanted.iter().filter(|entry| !leaves(entry)).cloned().collect(),
    };
    record.version += u64::from(*list != wanted);
    azure.changed(id);
    if !failed {
        ownership::changed(azure, disks_of(&came).chain(disks_of(&went)));
        return;
    }
    // The disks that were made for the machine go with the change.
    came.retain(|entry| text(entry, "createOption") != Some("Attach"));
    disks_of(&came).for_each(|disk| azure.remove(&disk));
}

fn disks_of(list: &[Value]) -> impl Iterator<Item = ResourceId> + '_ {
    list.iter().filter_map(|entry| stored_reference(entry, "managedDisk/id"))
}
