//! What a new disk is filled with.

use serde_json::Value;

use super::observed::ObservedDisk;
use crate::model::disk_sku::DiskSku;
use crate::model::document::number;
use crate::model::id::{DiskId, SnapshotId};

/// A snapshot to restore, or a disk to clone. Sizes and kinds are known once the source was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A snapshot.
    Snapshot {
        /// Its ID.
        id: SnapshotId,
        /// Its size in GiB.
        size_gib: Option<u64>,
    },
    /// Another disk.
    Disk {
        /// Its ID.
        id: DiskId,
        /// Its size in GiB; of a disk that is itself being copied, that of its source.
        size_gib: Option<u64>,
        /// Its zone, if it has one alone.
        zone: Option<String>,
        /// Its kind.
        sku: Option<DiskSku>,
    },
}

impl Source {
    /// A snapshot with its document.
    pub fn snapshot(id: SnapshotId, document: &Value) -> Self {
        Self::Snapshot { id, size_gib: number(document, "/properties/diskSizeGB") }
    }

    /// A disk with its document. Without one, Azure judges the source when it copies.
    pub fn disk(id: DiskId, document: Option<ObservedDisk<'_>>) -> Self {
        Self::Disk {
            id,
            size_gib: document.and_then(ObservedDisk::size_gib),
            zone: document.and_then(ObservedDisk::single_zone).map(str::to_owned),
            sku: document.and_then(ObservedDisk::sku),
        }
    }

    /// The ID of the resource.
    pub fn resource(&self) -> &str {
        match self {
            Self::Snapshot { id, .. } => id.resource().as_str(),
            Self::Disk { id, .. } => id.resource().as_str(),
        }
    }

    /// Its size in GiB.
    pub fn size_gib(&self) -> Option<u64> {
        match self {
            Self::Snapshot { size_gib, .. } | Self::Disk { size_gib, .. } => *size_gib,
        }
    }

    /// The zone that a copy has to be in.
    pub fn zone(&self) -> Option<&str> {
        match self {
            Self::Snapshot { .. } => None,
            Self::Disk { zone, .. } => zone.as_deref(),
        }
    }
}
