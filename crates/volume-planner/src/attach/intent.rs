//! What waits for a machine's list to be written.

use azure_types::ResourceId;

use crate::model::disk_sku::Caching;
use crate::model::id::DiskId;

/// A disk that is to be attached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attach {
    /// The number of the request in the order of arrival: earlier ones are served first.
    pub arrival: u64,
    /// The disk.
    pub disk: DiskId,
    /// The machine's cache, as it suits the disk's kind and size.
    pub caching: Caching,
    /// Whether writes are accelerated.
    pub has_write_accelerator: bool,
    /// The disk's encryption set.
    pub encryption_set: Option<ResourceId>,
    /// Whether it is an ultra disk, for which a machine has to be prepared.
    pub is_ultra: bool,
    /// How many machines may have it at a time.
    pub max_shares: u32,
    /// The machine that Azure names as the disk's manager, as far as the disk was read.
    pub managed_by: Option<ResourceId>,
    /// Azure's `diskState`, as far as the disk was read.
    pub state: Option<String>,
}

/// A disk that is to be detached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Detach {
    /// The disk.
    pub disk: DiskId,
    /// Whether Azure is not to wait for the machine ([`super::force_detach`] decides).
    pub is_forced: bool,
}
