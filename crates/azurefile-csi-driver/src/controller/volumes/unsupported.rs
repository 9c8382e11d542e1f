//! What the driver does not do yet. It says so before it writes anything.

use csi::v1::CreateVolumeRequest;
use tonic::Status;
use volume_planner::parameters::share::{Reach, ShareParameters};

/// Refuses what would be made otherwise than the class says.
pub(super) fn check(request: &CreateVolumeRequest, parameters: &ShareParameters) -> Result<(), Status> {
    let problem = if request.volume_content_source.is_some() {
        "copies of volumes and snapshots are not supported yet: create an empty volume"
    } else if parameters.disk_file_system.is_some() {
        "disks on shares are not supported yet: remove fsType, or use the driver for disks"
    } else if matches!(parameters.account.reach, Reach::Private { .. }) {
        "private endpoints are not made yet: make account and endpoint, and name it with storageAccount and server"
    } else if matches!(parameters.account.reach, Reach::Subnets(_)) {
        "accounts for subnets (NFS, networkEndpointType serviceEndpoint) are not made yet: make the account and name it with \
         storageAccount"
    } else if !request.secrets.is_empty() {
        "secrets of requests are not used yet: name the account with storageAccount, and let the driver's identity work on it"
    } else {
        return Ok(());
    };
    Err(Status::invalid_argument(problem))
}
