//! Application of a profile.

use std::io;

use tonic::Status;
use volumes_node::devices::{Device, DeviceError};

use super::basic;
use super::profile::Profile;
use crate::node::service::NodeService;
use crate::node::status::of_device;

const GIB: u64 = 1024 * 1024 * 1024;

impl NodeService {
    /// Writes the settings of a profile. Given ones must be possible; of those that are computed, what the device has not got is
    /// left out, and a disk whose performance is unknown keeps its settings.
    pub(in crate::node) async fn apply(&self, profile: &Profile, device: &Device) -> Result<(), Status> {
        let disk = match profile {
            Profile::Advanced(settings) => {
                return self.devices.set(device, settings).await.map_err(of_device);
            }
            Profile::Basic(disk) => disk,
        };
        let bytes = self.devices.size(device).await.map_err(of_device)?;
        let Some(settings) = basic::settings(disk, bytes.div_ceil(GIB)) else {
            tracing::warn!(path = %device, "perfProfile basic changes nothing: the performance of the disk is unknown");
            return Ok(());
        };
        for setting in settings {
            match self.devices.set(device, std::slice::from_ref(&setting)).await {
                Err(DeviceError::Setting { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    tracing::warn!(path = %device, value = setting.0, "the device has no such setting");
                }
                applied => applied.map_err(of_device)?,
            }
        }
        Ok(())
    }
}
