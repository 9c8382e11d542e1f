//! Whether a volume serves a use.

use arm::Class;
use csi::messages::{capability, required};
use csi::status::refused;
use csi::v1::validate_volume_capabilities_response::Confirmed;
use csi::v1::{ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse};
use tonic::Status;
use volume_planner::shares::capability as uses;
use volume_planner::{Code, Refusal};

use super::volume_calls::Volumes;

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
        self.share(&request.volume_id, Code::NotFound, Class::Refresh).await?;
        let capabilities: Vec<_> = request.volume_capabilities.iter().map(capability).collect();
        Ok(match uses::check(&capabilities) {
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
