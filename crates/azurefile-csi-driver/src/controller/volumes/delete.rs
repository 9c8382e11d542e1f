//! A volume is deleted.

use csi::messages::required;
use csi::v1::{DeleteVolumeRequest, DeleteVolumeResponse};
use tonic::Status;
use volume_planner::Code;
use volume_planner::share_id::ShareId;

use super::volume_calls::Volumes;
use crate::controller::azure::share_id;

impl Volumes {
    /// Deletes a share. One that does not exist, or an ID of another form, is no error. A share with snapshots stays: its
    /// snapshots are backups.
    pub(crate) async fn delete(&self, request: DeleteVolumeRequest) -> Result<DeleteVolumeResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        let Ok(id) = ShareId::parse(&request.volume_id, Code::InvalidArgument) else {
            return Ok(DeleteVolumeResponse {});
        };
        let (account, share) = share_id(&id, &self.azure.place()?);
        let _held = self.locks.hold(&request.volume_id)?;
        self.azure.delete_share(&share).await?;
        // The volume is gone: an account that stays marked as full is looked at again later.
        if let Err(status) = self.accounts.mark_free(&account, self.options.full_for).await {
            tracing::warn!(%account, error = status.message(), "the mark of an account is not looked at");
        }
        Ok(DeleteVolumeResponse {})
    }
}
