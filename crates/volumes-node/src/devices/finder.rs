//! The devices of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::device::{Device, Partition};
use super::error::DeviceError;
use super::excluded::Excluded;
use super::lun::Lun;
use super::tree::Tree;
use super::waiting::{subscribe, wait};
use super::{links, nvme, scsi};
use crate::system::{DeviceNumber, System};

/// How often hosts are asked to look for new devices: they announce most of them without being asked.
const SCAN_INTERVAL: Duration = Duration::from_secs(10);

/// The devices of this machine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Devices {
    pub(super) tree: Tree,
}

impl Devices {
    /// Those in `/dev` and `/sys` below a folder; for the machine itself that is `/`.
    pub fn new(system: Arc<dyn System>, root: impl Into<PathBuf>) -> Self {
        Self { tree: Tree::new(system, root.into()) }
    }

    /// The data disk with a LUN, or one of its partitions. Waits for its device by the kernel's events until the deadline.
    ///
    /// Links of udev go first, then SCSI disks of Azure, then NVMe namespaces. The disks of the operating system and local
    /// disks are none.
    ///
    /// # Errors
    /// No device has it at the deadline.
    pub async fn find(
        &self,
        lun: Lun,
        partition: Option<Partition>,
        deadline: Instant,
    ) -> Result<Device, DeviceError> {
        let begun = Instant::now();
        let mut scanned: Option<Instant> = None;
        loop {
            let changes = subscribe(&self.tree).await;
            let mut looked = self.look(lun, partition).await;
            if looked.is_err() && scanned.is_none_or(|last| last.elapsed() >= SCAN_INTERVAL) {
                scanned = Some(Instant::now());
                scsi::scan(&self.tree).await;
                nvme::scan(&self.tree).await;
                // A scan answers when its devices are there.
                looked = self.look(lun, partition).await;
            }
            match looked {
                Ok(device) => return Ok(device),
                Err(_) if wait(changes, deadline).await => {}
                Err(reasons) => return Err(DeviceError::NotFound { lun, waited: begun.elapsed(), reasons }),
            }
        }
    }

    async fn look(&self, lun: Lun, partition: Option<Partition>) -> Result<Device, String> {
        let device = self.look_for_disk(lun).await?;
        let Some(partition) = partition else { return Ok(device) };
        for path in device.partition_paths(partition) {
            if let Some(node) = self.tree.block_device(&path).await {
                return Ok(Device::at(node));
            }
        }
        Err(format!("{device} has no partition {}", partition.0))
    }

    async fn look_for_disk(&self, lun: Lun) -> Result<Device, String> {
        let excluded = Excluded::read(&self.tree).await;
        let mut reasons = Vec::new();
        match links::find(&self.tree, lun, &excluded).await {
            Ok(device) => return Ok(device),
            Err(reason) => reasons.push(reason),
        }
        match scsi::find(&self.tree, lun, &excluded).await {
            Ok(device) => return Ok(device),
            Err(reason) => reasons.push(reason),
        }
        match nvme::find(&self.tree, lun, &excluded).await {
            Ok(device) => return Ok(device),
            Err(reason) => reasons.push(reason),
        }
        Err(reasons.join("; "))
    }

    /// The device at a path, such as the source of a mount.
    ///
    /// # Errors
    /// No block device is there.
    pub async fn at(&self, path: &Path) -> Result<Device, DeviceError> {
        let node = self.tree.block_device(path).await;
        node.map(Device::at).ok_or_else(|| DeviceError::NoDevice(path.to_owned()))
    }

    /// The device of this number, which is at a path such as the target of a raw volume. Its own name is that of sysfs; where
    /// sysfs does not know it, the path serves.
    pub async fn of_number(&self, number: DeviceNumber, path: &Path) -> Device {
        let number = format!("{}:{}", number.major, number.minor);
        for name in self.tree.entries(&self.tree.path("/sys/class/block")).await {
            if self.tree.text(self.tree.block(&name).join("dev")).await.as_ref() == Some(&number)
                && let Some(node) = self.tree.block_device(&self.tree.path("/dev").join(&name)).await
            {
                return Device::at(node);
            }
        }
        Device::at(path.to_owned())
    }
}

#[cfg(test)]
#[path = "finder_tests.rs"]
mod tests;
