//! A volume grows.

use arm::Class;
use csi::call::Call;
use csi::v1::{ControllerExpandVolumeRequest, ControllerExpandVolumeResponse};
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::expand;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::DiskId;
use volume_planner::{Code, Refusal};

use super::volume_calls::Volumes;
use crate::controller::messages::{range, refused, required};

impl Volumes {
    /// Grows a disk. The node always has to see the new size: of a file system, and of a block device.
    pub(crate) async fn expand(
        &self,
        request: ControllerExpandVolumeRequest,
    ) -> Result<ControllerExpandVolumeResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        if request.capacity_range.is_none() {
            return Err(refused(&Refusal::Missing("capacity range")));
        }
        let disk = DiskId::parse(&request.volume_id, Code::NotFound).map_err(|it| refused(&it))?;
        let _held = self.locks.hold(&request.volume_id)?;
        let id = disk.resource();
        let document = self.azure.get(AzureRequest::Disk, id, Class::Create).await?;
        let document = document.ok_or_else(|| refused(&Refusal::DiskNotFound(id.clone())))?;
        let observed = ObservedDisk(&document);
        if let Some(sku) = observed.sku_name() {
            Call::current().label("storage_account_type", sku);
        }
        let grown = expand::plan(&disk, observed, range(request.capacity_range), self.options.grows_attached);
        let grown = grown.map_err(|it| refused(&it))?;
        if let Some(change) = &grown.document {
            self.azure.patch(AzureRequest::Disk, id, change).await?;
        }
        Ok(ControllerExpandVolumeResponse {
            capacity_bytes: i64::try_from(grown.capacity_bytes).unwrap_or(i64::MAX),
            node_expansion_required: true,
        })
    }
}
