//! A volume grows.

use arm::Class;
use csi::messages::{range, required};
use csi::status::refused;
use csi::v1::{ControllerExpandVolumeRequest, ControllerExpandVolumeResponse};
use tonic::Status;
use volume_planner::shares::share;
use volume_planner::size::to_bytes;
use volume_planner::{Code, Refusal};

use super::volume_calls::Volumes;

impl Volumes {
    /// Raises the quota of a share. Nodes see it by themselves.
    pub(crate) async fn expand(
        &self,
        request: ControllerExpandVolumeRequest,
    ) -> Result<ControllerExpandVolumeResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        if request.capacity_range.is_none() {
            return Err(refused(&Refusal::Missing("capacity range")));
        }
        let _held = self.locks.hold(&request.volume_id)?;
        let (id, share_id, document) =
            self.share(&request.volume_id, Code::InvalidArgument, Class::Create).await?;
        if !id.disk.is_empty() {
            return Err(Status::unimplemented("a disk on a share does not grow"));
        }
        let grown = share::grow(&document, range(request.capacity_range));
        let (gib, change) = grown.map_err(|it| refused(&it))?;
        if let Some(change) = &change {
            self.azure.patch(&share_id, change).await?;
        }
        Ok(ControllerExpandVolumeResponse {
            capacity_bytes: i64::try_from(to_bytes(gib)).unwrap_or(i64::MAX),
            node_expansion_required: false,
        })
    }
}
