//! Growth of a volume on its machine: the device is read again, its size verified, and the file system grown.

use std::path::Path;
use std::time::Duration;

use csi::status::refused;
use csi::v1::{NodeExpandVolumeRequest, NodeExpandVolumeResponse};
use tokio::time::Instant;
use tonic::Status;
use volume_planner::Refusal;
use volumes_node::devices::Device;
use volumes_node::filesystems::FileSystem;
use volumes_node::system::FileKind;

use super::service::{NodeService, path};
use super::status::{of_device, of_file_system, of_mount};

/// How long a device may take to have its new size after it was read again: the kernel reads it within a second. What takes
/// longer has not grown in Azure, and the kubelet tries again.
const GROWTH_LIMIT: Duration = Duration::from_secs(30);

impl NodeService {
    pub(super) async fn expand(
        &self,
        request: NodeExpandVolumeRequest,
        deadline: Instant,
    ) -> Result<NodeExpandVolumeResponse, Status> {
        let _held = self.hold(&request.volume_id)?;
        let volume = path("volume path", &request.volume_path)?;
        let wanted = request.capacity_range.unwrap_or_default().required_bytes;
        let wanted = u64::try_from(wanted).map_err(|_| refused(&Refusal::InvalidCapacity(wanted)))?;
        let deadline = deadline.min(Instant::now() + GROWTH_LIMIT);
        let bytes = match self.mounts.kind(&volume).await.map_err(of_mount)? {
            FileKind::BlockDevice(number) => {
                let device = self.devices.of_number(number, &volume).await;
                self.rescanned(&device, wanted, deadline).await?
            }
            FileKind::Folder | FileKind::File => self.expand_file_system(&volume, wanted, deadline).await?,
        };
        Ok(NodeExpandVolumeResponse { capacity_bytes: i64::try_from(bytes).unwrap_or(i64::MAX) })
    }

    async fn expand_file_system(&self, volume: &Path, wanted: u64, deadline: Instant) -> Result<u64, Status> {
        let entry = self.mounts.at(volume).await.map_err(of_mount)?.ok_or_else(|| not_mounted(volume))?;
        let device = match self.devices.at(&entry.source).await {
            Ok(device) => device,
            Err(_) => return Err(not_mounted(volume)),
        };
        let bytes = self.rescanned(&device, wanted, deadline).await?;
        let kind = entry.file_system.parse::<FileSystem>().map_err(|error| {
            Status::internal(format!("the volume at {} cannot grow: {error}", volume.display()))
        })?;
        // A file system that nothing may write does not grow either; its next mount for writing makes it grow.
        if !entry.super_options.iter().any(|option| option == "ro") {
            self.file_systems.grow(&device.node, &entry.mount_point, kind).await.map_err(of_file_system)?;
        }
        Ok(bytes)
    }

    /// Reads the size of this one device again until it is the wanted one. A machine may have announced the growth, so that a
    /// rescan that is refused is an error only where the device is too small.
    async fn rescanned(&self, device: &Device, wanted: u64, deadline: Instant) -> Result<u64, Status> {
        let rescanned = self.devices.rescan(device).await;
        let bytes = self.devices.size(device).await.map_err(of_device)?;
        if bytes >= wanted {
            return Ok(bytes);
        }
        rescanned.map_err(of_device)?;
        self.devices.wait_for_size(device, wanted, deadline).await.map_err(of_device)
    }
}

fn not_mounted(volume: &Path) -> Status {
    Status::not_found(format!(
        "no device is mounted at {}; stage or publish the volume first",
        volume.display()
    ))
}
