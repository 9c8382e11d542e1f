//! A volume's attributes change.

use arm::Class;
use csi::messages::{entries, required};
use csi::status::refused;
use csi::v1::{ControllerModifyVolumeRequest, ControllerModifyVolumeResponse};
use tonic::Status;
use volume_planner::parameters::share::ShareModification;
use volume_planner::shares::share;
use volume_planner::{Code, Refusal};

use super::volume_calls::Volumes;

impl Volumes {
    /// Changes operations and bandwidth of a share.
    pub(crate) async fn modify(
        &self,
        request: ControllerModifyVolumeRequest,
    ) -> Result<ControllerModifyVolumeResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        let mutable = entries(request.mutable_parameters);
        let change = ShareModification::parse(&mutable);
        let _held = self.locks.hold(&request.volume_id)?;
        let (_, share_id, document) = self.share(&request.volume_id, Code::NotFound, Class::Create).await?;
        let change = change.map_err(|it| refused(&it))?;
        if !mutable.is_empty() && change == ShareModification::default() {
            return Err(refused(&Refusal::Missing("provisionedIOPS or provisionedBandwidth")));
        }
        if let Some(change) = share::modify(&document, change) {
            self.azure.patch(&share_id, &change).await?;
        }
        Ok(ControllerModifyVolumeResponse {})
    }
}
