//! Entries of a machine's list of data disks. Members that the driver does not set stay as they were read.

use std::collections::BTreeSet;

use serde_json::Value;

use super::intent::Attach;
use crate::model::document::{object, text};
use crate::model::id::DiskId;

/// Whether an entry is this disk: by the ID of the managed disk. A name decides only in an entry without an ID, because disks
/// of several groups may have one name.
pub fn is_of(entry: &Value, disk: &DiskId) -> bool {
    match text(entry, "/managedDisk/id") {
        Some(id) => id.eq_ignore_ascii_case(disk.resource().as_str()),
        None => text(entry, "/name").is_some_and(|name| name.eq_ignore_ascii_case(disk.name())),
    }
}

/// The entry of a disk.
pub fn find<'a>(list: &'a [Value], disk: &DiskId) -> Option<&'a Value> {
    list.iter().find(|entry| is_of(entry, disk))
}

/// The LUN of an entry.
pub fn lun(entry: &Value) -> Option<u32> {
    entry.get("lun")?.as_u64()?.try_into().ok()
}

/// Whether an entry is being detached.
pub fn is_leaving(entry: &Value) -> bool {
    entry.get("toBeDetached").and_then(Value::as_bool).unwrap_or(false)
}

/// How many entries are of disks that are no volumes: those of the machine's image, or attached by hand.
pub fn count_foreign(list: &[Value], volumes: &BTreeSet<DiskId>) -> u32 {
    let is_volume = |entry: &Value| volumes.iter().any(|disk| is_of(entry, disk));
    list.iter().filter(|entry| !is_volume(entry)).count() as u32
}

/// Marks an entry for its detach. Answers whether this changed it.
pub(super) fn mark_leaving(entry: &mut Value, is_forced: bool) -> bool {
    let before = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.insert("toBeDetached".to_owned(), true.into());
        if is_forced {
            members.insert("detachOption".to_owned(), "ForceDetach".into());
        }
    }
    *entry != before
}

/// The entry for a new disk.
pub(super) fn new_entry(attach: &Attach, lun: u32, machines_set: Option<&str>) -> Value {
    let set = attach.encryption_set.as_ref().map(|set| set.as_str()).or(machines_set);
    let managed = object([
        ("id", Some(attach.disk.resource().as_str().into())),
        ("diskEncryptionSet", set.map(|set| object([("id", Some(set.into()))]))),
    ]);
    object([
        ("name", Some(attach.disk.name().into())),
        ("lun", Some(lun.into())),
        ("caching", Some(attach.caching.name().into())),
        ("createOption", Some("Attach".into())),
        ("managedDisk", Some(managed)),
        ("writeAcceleratorEnabled", attach.has_write_accelerator.then_some(true.into())),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// CSI-047. Section 3.12, trap 2: disks that are no volumes take slots.
    #[test]
    fn disks_that_are_no_volumes_are_counted() {
        let volume = DiskId::new("s", "g", "a");
        let other = DiskId::new("s", "other", "a");
        let list = [
            json!({ "name": "a", "managedDisk": { "id": volume.to_string().to_uppercase() } }),
            json!({ "name": "a", "managedDisk": { "id": other.to_string() } }),
            json!({ "name": "image-data" }),
            json!({ "lun": 3 }),
        ];
        assert_eq!(count_foreign(&list, &[volume].into()), 3);
        assert_eq!(count_foreign(&list, &BTreeSet::new()), 4);
        assert_eq!(count_foreign(&[], &BTreeSet::new()), 0);
    }
}
