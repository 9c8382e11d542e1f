//! Growth of a mounted file system to the size of its device.

use std::path::Path;
use std::time::Duration;

use super::error::FileSystemError;
use super::kind::FileSystem;
use super::prepare::FileSystems;
use crate::system::Command;

/// How long it may take: growth writes the tables of new groups.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

impl FileSystems {
    /// Grows the file system that is mounted from a device. Nothing is done if it has the device's size.
    ///
    /// # Errors
    /// It is one that cannot grow, or the program fails.
    pub async fn grow(&self, device: &Path, mount: &Path, kind: FileSystem) -> Result<(), FileSystemError> {
        let command = match kind {
            FileSystem::Ext2 => return Err(FileSystemError::CannotGrow { device: device.to_owned(), kind }),
            FileSystem::Ext3 | FileSystem::Ext4 => Command::new("resize2fs", LIMIT).argument(device),
            FileSystem::Xfs => Command::new("xfs_growfs", LIMIT).argument("-d").argument(mount),
            FileSystem::Btrfs => {
                Command::new("btrfs", LIMIT).arguments(["filesystem", "resize", "max"]).argument(mount)
            }
        };
        let output = self.system.run(&command).await?;
        if output.has_code(0) {
            return Ok(());
        }
        Err(FileSystemError::program("growth of the file system", &command, &output))
    }
}
