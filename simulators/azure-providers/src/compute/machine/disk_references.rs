//! The disks that a machine uses.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{items, stored_reference};
use azure_engine::reference::Reference;

/// The disks that a storage profile points at, its system disk with them.
pub(crate) fn references(id: &ResourceId, storage: &Value) -> Vec<Reference> {
    let system = stored_reference(storage, "osDisk/managedDisk/id");
    let data = items(storage, "dataDisks").iter().filter_map(|disk| stored_reference(disk, "managedDisk/id"));
    system.into_iter().chain(data).map(|to| Reference::uses(id, to)).collect()
}
