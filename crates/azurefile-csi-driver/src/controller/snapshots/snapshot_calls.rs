//! What serves calls about snapshots.

use csi::locks::Locks;

use crate::controller::azure::Azure;

/// Serves calls about snapshots.
pub(crate) struct Snapshots {
    pub azure: Azure,
    /// Held by name while a snapshot is created.
    pub locks: Locks,
}
