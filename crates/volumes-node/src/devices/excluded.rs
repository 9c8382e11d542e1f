//! The devices that are no data disks: those of the operating system, the resource disk, local disks.

use std::collections::BTreeSet;

use super::tree::Tree;

/// Folders whose links, by udev's rules for Azure, lead to such devices. `scsi0` has them on some sizes; `local` has the local
/// disks of sizes with NVMe.
const FOLDERS: [&str; 5] = [
    "/dev/disk/azure",
    "/dev/disk/azure/scsi0",
    "/dev/disk/azure/local/by-serial",
    "/dev/disk/azure/local/by-index",
    "/dev/disk/azure/local/by-name",
];

/// Names of devices that are no data disks.
#[derive(Debug, Default)]
pub(super) struct Excluded(BTreeSet<String>);

impl Excluded {
    pub async fn read(tree: &Tree) -> Self {
        let mut names = BTreeSet::new();
        for folder in FOLDERS.map(|folder| tree.path(folder)) {
            for entry in tree.entries(&folder).await {
                names.extend(tree.target_name(&folder.join(entry)).await);
            }
        }
        // The folders below the first one are its entries, too.
        for folder in ["scsi0", "scsi1", "data", "local"] {
            names.remove(folder);
        }
        Self(names)
    }

    /// Whether no link leads to the system's disks: these are then known by their place alone.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}
