//! The end of a mount.

use std::path::Path;

use super::error::MountError;
use super::mounter::Mounts;

impl Mounts {
    /// Unmounts all that is mounted at a path, and removes the path: an empty folder or a file. What is not there needs
    /// nothing. Contents of a folder are never removed.
    ///
    /// # Errors
    /// A program uses the mount, or the folder is not empty.
    pub async fn release(&self, path: &Path) -> Result<(), MountError> {
        while self.at(path).await?.is_some() {
            self.system.unmount(path).await.map_err(MountError::step("unmount", path))?;
        }
        self.system.remove(path).await.map_err(MountError::step("remove", path))
    }
}
