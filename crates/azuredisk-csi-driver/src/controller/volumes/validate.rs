//! Whether a volume serves a use.

use arm::Class;
use csi::v1::validate_volume_capabilities_response::Confirmed;
use csi::v1::{ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse};
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::context::VolumeContext;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::DiskId;
use volume_planner::{Code, Refusal, access};

use super::volume_calls::Volumes;
use crate::controller::messages::{capability, entries, refused, required};

impl Volumes {
    /// Confirms capabilities of a volume, or says which one it does not have.
    pub(crate) async fn validate(
        &self,
        request: ValidateVolumeCapabilitiesRequest,
    ) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        if request.volume_capabilities.is_empty() {
            return Err(refused(&Refusal::Missing("volume capabilities")));
        }
        let disk = DiskId::parse(&request.volume_id, Code::NotFound).map_err(|it| refused(&it))?;
        let id = disk.resource();
        let document = self.azure.get(AzureRequest::Disk, id, Class::Refresh).await?;
        let document = document.ok_or_else(|| refused(&Refusal::DiskNotFound(id.clone())))?;
        let context = VolumeContext::parse(&entries(request.volume_context.clone()), false);
        let context = context.map_err(|it| refused(&it))?;
        let shares = ObservedDisk(&document).max_shares().max(context.max_shares.unwrap_or(1));
        let capabilities: Vec<_> = request.volume_capabilities.iter().map(capability).collect();
        Ok(match access::check(&capabilities, shares) {
            Ok(()) => ValidateVolumeCapabilitiesResponse {
                confirmed: Some(Confirmed {
                    volume_context: request.volume_context,
                    volume_capabilities: request.volume_capabilities,
                    parameters: request.parameters,
                    mutable_parameters: request.mutable_parameters,
                }),
                message: String::new(),
            },
            Err(refusal) => {
                ValidateVolumeCapabilitiesResponse { confirmed: None, message: refusal.to_string() }
            }
        })
    }
}
