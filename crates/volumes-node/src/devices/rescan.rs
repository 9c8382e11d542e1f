//! Growth of a device: its size is read again and verified.

use tokio::time::Instant;

use super::device::Device;
use super::error::DeviceError;
use super::finder::Devices;
use super::tree::name_of;
use super::waiting::{subscribe, wait};
use super::{nvme, scsi};

impl Devices {
    /// Reads the size of this one device again, or that of the disk of which it is a partition. Devices that announce their
    /// growth themselves are left alone.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn rescan(&self, device: &Device) -> Result<(), DeviceError> {
        let refused = |source| DeviceError::Rescan { device: device.to_string(), source };
        let name = self.disk_name(device).await;
        if !scsi::rescan(&self.tree, &name).await.map_err(refused)? {
            nvme::rescan(&self.tree, &name).await.map_err(refused)?;
        }
        Ok(())
    }

    /// The name of the disk in sysfs: for a partition, of the disk that has it.
    pub(super) async fn disk_name(&self, device: &Device) -> String {
        let name = name_of(&device.node).unwrap_or_default();
        let folder = self.tree.block(&name);
        if self.tree.text(folder.join("partition")).await.is_none() {
            return name;
        }
        let place = self.tree.system.canonical(&folder).await.ok();
        place.as_deref().and_then(std::path::Path::parent).and_then(name_of).unwrap_or(name)
    }

    /// The size of a device in bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn size(&self, device: &Device) -> Result<u64, DeviceError> {
        let failed = |source| DeviceError::Size { device: device.to_string(), source };
        device.size(&*self.tree.system).await.map_err(failed)
    }

    /// Waits until a device has at least so many bytes, and returns how many it has.
    ///
    /// # Errors
    /// It has fewer at the deadline, or its size cannot be read.
    pub async fn wait_for_size(
        &self,
        device: &Device,
        wants: u64,
        deadline: Instant,
    ) -> Result<u64, DeviceError> {
        loop {
            let changes = subscribe(&self.tree).await;
            let has = self.size(device).await?;
            if has >= wants {
                return Ok(has);
            }
            if !wait(changes, deadline).await {
                return Err(DeviceError::TooSmall { device: device.to_string(), has, wants });
            }
        }
    }
}
