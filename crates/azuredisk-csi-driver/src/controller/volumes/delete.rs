//! A volume is deleted.

use arm::Class;
use csi::v1::{DeleteVolumeRequest, DeleteVolumeResponse};
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::delete;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::DiskId;

use super::volume_calls::Volumes;
use crate::controller::messages::refused;

impl Volumes {
    /// Deletes a disk that no machine has.
    pub(crate) async fn delete(&self, request: DeleteVolumeRequest) -> Result<DeleteVolumeResponse, Status> {
        let disk = DiskId::for_deletion(&request.volume_id).map_err(|it| refused(&it))?;
        let Some(disk) = disk else { return Ok(DeleteVolumeResponse {}) };
        let _held = self.locks.hold(&request.volume_id)?;
        let id = disk.resource();
        let document = self.azure.get(AzureRequest::Disk, id, Class::Delete).await?;
        let Some(document) = document else { return Ok(DeleteVolumeResponse {}) };
        delete::check(&disk, ObservedDisk(&document)).map_err(|it| refused(&it))?;
        self.azure.delete(AzureRequest::Disk, id).await?;
        Ok(DeleteVolumeResponse {})
    }
}
