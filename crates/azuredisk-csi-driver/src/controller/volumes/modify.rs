//! A volume's attributes change.

use arm::Class;
use csi::call::Call;
use csi::v1::{ControllerModifyVolumeRequest, ControllerModifyVolumeResponse};
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::modify;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::DiskId;
use volume_planner::parameters::modification::Modification;
use volume_planner::{Code, Refusal};

use super::volume_calls::Volumes;
use crate::controller::messages::{entries, refused, required};

impl Volumes {
    /// Changes a disk's kind, or its operations and throughput.
    pub(crate) async fn modify(
        &self,
        request: ControllerModifyVolumeRequest,
    ) -> Result<ControllerModifyVolumeResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        let is_stack = self.azure.place().await?.is_stack;
        let disk = DiskId::parse(&request.volume_id, Code::NotFound).map_err(|it| refused(&it))?;
        let change = Modification::parse(&entries(request.mutable_parameters), is_stack);
        let _held = self.locks.hold(&request.volume_id)?;
        let id = disk.resource();
        let document = self.azure.get(AzureRequest::Disk, id, Class::Create).await?;
        let document = document.ok_or_else(|| refused(&Refusal::DiskNotFound(id.clone())))?;
        let (change, observed) = (change.map_err(|it| refused(&it))?, ObservedDisk(&document));
        if let Some(sku) = change.sku.map(|sku| sku.name()).or(observed.sku_name()) {
            Call::current().label("storage_account_type", sku);
        }
        let planned = modify::plan(&disk, observed, change).map_err(|it| refused(&it))?;
        if let Some(change) = &planned.document {
            self.azure.patch(AzureRequest::Disk, id, change).await?;
        }
        Ok(ControllerModifyVolumeResponse {})
    }
}
