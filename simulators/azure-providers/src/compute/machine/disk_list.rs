//! The list of a machine's data disks: those that it has, those that it is to get, and those that leave it.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{flag, items, text};
use azure_engine::provider::Record;

/// The data disks in a machine's document.
pub(crate) const LIST: &str = "properties/storageProfile/dataDisks";
/// The hidden member with the list as it was before the change that is under way.
pub(crate) const BEFORE: &str = "disksBefore";

/// Whether an entry of the list leaves it.
pub(crate) fn leaves(entry: &Value) -> bool {
    flag(entry, "toBeDetached")
}

/// Whether an entry is of a disk.
pub(crate) fn is_of(entry: &Value, disk: &str) -> bool {
    text(entry, "managedDisk/id").is_some_and(|id| id.eq_ignore_ascii_case(disk))
}

/// The entry of a disk.
pub(crate) fn find<'a>(list: &'a [Value], disk: &str) -> Option<&'a Value> {
    list.iter().find(|entry| is_of(entry, disk))
}

/// Whether two entries are of one disk: by the disk's id, or by its name where one of them has none.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    let by = |member| Some((text(one, member)?, text(other, member)?));
    by("managedDisk/id").or_else(|| by("name")).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// The list before the change that is under way, if there is one.
pub(crate) fn before(machine: &Record) -> Option<&[Value]> {
    machine.hidden.get(BEFORE)?.as_array().map(Vec::as_slice)
}

/// The disks that a machine has now.
pub(crate) fn held(machine: &Record) -> &[Value] {
    before(machine).unwrap_or_else(|| items(&machine.body, LIST))
}

/// Whether a machine that lists a disk has it already.
pub(crate) fn has_arrived(machine: &Record, disk: &ResourceId) -> bool {
    let comes = |before: &[Value]| {
        find(before, disk.as_str()).is_none() && find(items(&machine.body, LIST), disk.as_str()).is_some()
    };
    !before(machine).is_some_and(comes)
}

/// Whether a disk is leaving a machine.
pub(crate) fn is_leaving(machine: &Record, disk: &ResourceId) -> bool {
    find(items(&machine.body, LIST), disk.as_str()).is_some_and(leaves)
}
