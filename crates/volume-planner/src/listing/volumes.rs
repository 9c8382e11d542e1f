//! The list of volumes.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::Value;

use super::page::{Page, page};
use crate::attach::machine::manager_id;
use crate::disk::observed::ObservedDisk;
use crate::model::error::{Code, Result};
use crate::model::id::DiskId;
use crate::model::size::to_bytes;

/// A volume in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVolume {
    /// Its ID.
    pub id: DiskId,
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// The machines that have it: several of a shared disk.
    pub machines: Vec<ResourceId>,
}

/// A page of the volumes among these disks, by the order of their IDs. `volumes` are the disks that PersistentVolumes of the
/// driver name; without Kubernetes, all disks but those of operating systems are volumes.
///
/// # Errors
/// As [`page`].
pub fn list_volumes(
    disks: &[Value],
    volumes: Option<&BTreeSet<DiskId>>,
    token: &str,
    max_entries: i32,
) -> Result<Page<ListedVolume>> {
    let listed = |document: &Value| {
        let disk = ObservedDisk(document);
        let id = DiskId::parse(document.get("id")?.as_str()?, Code::Internal).ok()?;
        if disk.is_os_disk() || volumes.is_some_and(|volumes| !volumes.contains(&id)) {
            return None;
        }
        let machines = disk.all_managers().iter().map(manager_id).collect();
        Some(ListedVolume { id, capacity_bytes: to_bytes(disk.size_gib().unwrap_or(0)), machines })
    };
    let mut all: Vec<_> = disks.iter().filter_map(listed).collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    all.dedup_by(|one, other| one.id == other.id);
    page(all, token, max_entries)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// CSI-054.
    /// Section 3.17, with its FIX: OS disks are left out, all machines of a shared disk are named, the order is that of groups.
    #[test]
    fn volumes_are_listed_with_all_their_machines() {
        let machine = |name: &str| {
            format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/{name}")
        };
        let disk = |group: &str, name: &str| json!({ "id": DiskId::new("s", group, name).to_string(), "properties": { "diskSizeGB": 1 } });
        let mut shared = disk("a", "z");
        shared["managedBy"] = machine("m1").into();
        shared["managedByExtended"] = json!([machine("m2"), machine("M1")]);
        let mut os = disk("a", "os");
        os["properties"]["hyperVGeneration"] = "V2".into();
        let disks = [disk("b", "a"), shared, os, disk("a", "b")];
        let names = |volumes: Option<&BTreeSet<DiskId>>, token: &str, maximum| {
            let page = list_volumes(&disks, volumes, token, maximum).unwrap();
            let names =
                page.entries.iter().map(|volume| format!("{}/{}", volume.id.group(), volume.id.name()));
            (names.collect::<Vec<_>>().join(" "), page.next_token)
        };
        assert_eq!(names(None, "", 0), ("a/b a/z b/a".into(), String::new()));
        assert_eq!(names(None, "", 2), ("a/b a/z".into(), "2".into()));
        assert_eq!(names(None, "2", 2), ("b/a".into(), String::new()));
        let known = [DiskId::new("s", "A", "Z")].into();
        assert_eq!(names(Some(&known), "", 0), ("a/z".into(), String::new()));
        let page = list_volumes(&disks, Some(&known), "", 0).unwrap();
        assert_eq!(page.entries[0].machines.len(), 2);
        assert_eq!(page.entries[0].capacity_bytes, 1 << 30);
    }
}
