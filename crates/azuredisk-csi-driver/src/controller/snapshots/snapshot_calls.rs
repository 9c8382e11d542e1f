//! What serves calls about snapshots.

use csi::locks::Locks;
use csi::v1::Snapshot;
use volume_planner::snapshot::observed::SnapshotFacts;

use crate::controller::azure::Azure;
use crate::controller::messages::timestamp;
use crate::controller::options::ControllerOptions;

/// Serves calls about snapshots.
pub(crate) struct Snapshots {
    pub azure: Azure,
    pub options: ControllerOptions,
    /// Held by name while a snapshot is created.
    pub locks: Locks,
}

/// The message about a snapshot.
pub(super) fn message(facts: SnapshotFacts) -> Snapshot {
    Snapshot {
        size_bytes: i64::try_from(facts.size_bytes).unwrap_or(i64::MAX),
        snapshot_id: facts.id.to_string(),
        source_volume_id: facts.source,
        creation_time: facts.created.as_deref().and_then(timestamp),
        ready_to_use: facts.is_ready,
        ..Snapshot::default()
    }
}
