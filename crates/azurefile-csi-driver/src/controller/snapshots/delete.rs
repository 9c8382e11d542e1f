//! A snapshot is deleted.

use csi::messages::required;
use csi::v1::{DeleteSnapshotRequest, DeleteSnapshotResponse};
use tonic::Status;
use volume_planner::Code;
use volume_planner::share_id::ShareSnapshotId;

use super::snapshot_calls::Snapshots;
use crate::controller::azure::share_id;

impl Snapshots {
    /// Deletes a snapshot. The ID of something that is no snapshot of a share names none, and its deletion succeeds.
    pub(crate) async fn delete(
        &self,
        request: DeleteSnapshotRequest,
    ) -> Result<DeleteSnapshotResponse, Status> {
        required(&request.snapshot_id, "snapshot ID")?;
        let Ok(id) = ShareSnapshotId::parse(&request.snapshot_id, Code::InvalidArgument) else {
            return Ok(DeleteSnapshotResponse {});
        };
        let (_, share) = share_id(&id.volume, &self.azure.place()?);
        let _held = self.locks.hold(&request.snapshot_id)?;
        self.azure.delete_snapshot(&share, &id.time).await?;
        Ok(DeleteSnapshotResponse {})
    }
}
