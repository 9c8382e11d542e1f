//! The bytes of disks and snapshots. This Azure has none; the embedding program may keep them, such as for simulated machines
//! with block devices.

use std::fmt;

use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_types::ResourceId;

/// Copies what the first disk or snapshot holds to the second one; both are unique IDs of documents.
type Copies = dyn Fn(&str, &str) + Send;

/// What keeps the bytes of disks and snapshots: the embedding program attaches it to the state. It is called while a request
/// is answered, so that a copy holds what its source held at that moment.
pub struct DiskContents(Box<Copies>);

impl DiskContents {
    /// Uses this function: it copies what the disk or snapshot of the first unique ID holds to a new one of the second ID.
    /// It must not use the Azure that it is attached to.
    pub fn new(copies: impl Fn(&str, &str) + Send + 'static) -> Self {
        Self(Box::new(copies))
    }
}

impl fmt::Debug for DiskContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskContents").finish_non_exhaustive()
    }
}

/// The unique ID of a disk or snapshot: another one of the same name has another.
pub(crate) fn unique_id(azure: &AzureState, record: &Record) -> String {
    azure.seed.guid("disk", record.id.as_str(), record.incarnation)
}

/// Copies the bytes of its source to a new disk or snapshot.
pub(crate) fn copy(azure: &AzureState, id: &ResourceId) {
    let Some(contents) = azure.attachments.get::<DiskContents>() else { return };
    let Some(record) = azure.store.get(id) else { return };
    if let Some(source) = text(&record.body, "properties/creationData/sourceUniqueId") {
        (contents.0)(source, &unique_id(azure, record));
    }
}
