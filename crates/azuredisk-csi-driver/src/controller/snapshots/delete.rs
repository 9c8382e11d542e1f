//! A snapshot is deleted.

use csi::v1::{DeleteSnapshotRequest, DeleteSnapshotResponse};
use tonic::Status;
use volume_planner::Code;
use volume_planner::azure_error::AzureRequest;
use volume_planner::id::SnapshotId;

use super::snapshot_calls::Snapshots;
use crate::controller::messages::{refused, required};

impl Snapshots {
    /// Deletes a snapshot. The ID of something that is no snapshot of Azure's names none, and its deletion succeeds.
    pub(crate) async fn delete(
        &self,
        request: DeleteSnapshotRequest,
    ) -> Result<DeleteSnapshotResponse, Status> {
        required(&request.snapshot_id, "snapshot ID")?;
        let place = self.azure.place().await?;
        let id = SnapshotId::parse_or_name(&request.snapshot_id, &place, Code::InvalidArgument);
        let id = id.map_err(|it| refused(&it))?;
        let _held = self.locks.hold(&request.snapshot_id)?;
        self.azure.delete(AzureRequest::Snapshot, id.resource()).await?;
        Ok(DeleteSnapshotResponse {})
    }
}
