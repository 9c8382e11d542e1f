//! New mounts, and what is mounted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::MountError;
use super::options::MountOptions;
use super::table::{MountEntry, MountTable};
use crate::system::{FileKind, MOUNT_TABLE, MountCall, MountFlags, Statistics, System};

/// The mounts that this process sees. Nothing is remembered: the kernel's table is the state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Mounts {
    pub(super) system: Arc<dyn System>,
}

impl Mounts {
    /// The mounts of this system.
    pub fn new(system: Arc<dyn System>) -> Self {
        Self { system }
    }

    /// The table of mounts.
    ///
    /// # Errors
    /// The kernel does not show it.
    pub async fn table(&self) -> Result<MountTable, MountError> {
        let table = Path::new(MOUNT_TABLE);
        let text = self.system.read(table).await.map_err(MountError::step("read", table))?;
        Ok(MountTable::parse(&text))
    }

    /// A path as the table has it: with links in the folders above it followed. What is mounted there is not asked, as it may
    /// not answer.
    pub async fn resolved(&self, path: &Path) -> PathBuf {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
        self.system.canonical(parent).await.map_or_else(|_| path.to_owned(), |parent| parent.join(name))
    }

    /// The topmost mount at a path.
    ///
    /// # Errors
    /// The kernel does not show its table.
    pub async fn at(&self, path: &Path) -> Result<Option<MountEntry>, MountError> {
        Ok(self.table().await?.at(&self.resolved(path).await).cloned())
    }

    /// Makes a folder ready to be mounted over: creates it if it is missing. If something is mounted there that answers, returns
    /// it; what does not answer is unmounted.
    ///
    /// # Errors
    /// The kernel refuses a step.
    pub async fn prepare_folder(&self, path: &Path) -> Result<Option<MountEntry>, MountError> {
        while let Some(entry) = self.at(path).await? {
            match self.system.entries(path, 1).await {
                Ok(_) => return Ok(Some(entry)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a mount does not answer and is made again");
                    self.system.unmount(path).await.map_err(MountError::step("unmount", path))?;
                }
            }
        }
        self.system.create_folder(path).await.map_err(MountError::step("create folder", path))?;
        Ok(None)
    }

    /// Makes a file ready to be mounted over by a device. If something is mounted there, returns it.
    ///
    /// # Errors
    /// The kernel refuses a step.
    pub async fn prepare_file(&self, path: &Path) -> Result<Option<MountEntry>, MountError> {
        if let Some(entry) = self.at(path).await? {
            return Ok(Some(entry));
        }
        if let Some(parent) = path.parent() {
            self.system.create_folder(parent).await.map_err(MountError::step("create folder", parent))?;
        }
        self.system.create_file(path).await.map_err(MountError::step("create file", path))?;
        Ok(None)
    }

    /// Mounts a device at a folder.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn mount(
        &self,
        device: &Path,
        target: &Path,
        file_system: &str,
        options: &MountOptions,
    ) -> Result<(), MountError> {
        let call = MountCall {
            source: device.to_owned(),
            target: target.to_owned(),
            file_system: file_system.to_owned(),
            flags: options.flags,
            data: options.data.join(","),
        };
        self.system.mount(&call).await.map_err(|source| MountError::Mount {
            device: device.to_owned(),
            target: target.to_owned(),
            kind: file_system.to_owned(),
            options: options.words(),
            source,
        })
    }

    /// Shows a folder or a device at a second path.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn bind(&self, source: &Path, target: &Path) -> Result<(), MountError> {
        self.system.bind(source, target).await.map_err(|error| MountError::Mount {
            device: source.to_owned(),
            target: target.to_owned(),
            kind: "what is there".to_owned(),
            options: "option bind".to_owned(),
            source: error,
        })
    }

    /// Makes a mount read only; its other flags stay.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn make_read_only(&self, entry: &MountEntry) -> Result<(), MountError> {
        let flags = MountOptions::flags_of(&entry.options) | MountFlags::RDONLY;
        let target = &entry.mount_point;
        self.system.remount_bind(target, flags).await.map_err(MountError::step("make read only", target))
    }

    /// What is at a path.
    ///
    /// # Errors
    /// Nothing is there, or it does not answer.
    pub async fn kind(&self, path: &Path) -> Result<FileKind, MountError> {
        self.system.kind(path).await.map_err(|error| missing_or("look at", path, error))
    }

    /// Space and inodes of the file system at a path.
    ///
    /// # Errors
    /// Nothing is there, or it does not answer.
    pub async fn statistics(&self, path: &Path) -> Result<Statistics, MountError> {
        self.system.statistics(path).await.map_err(|error| missing_or("get statistics of", path, error))
    }
}

fn missing_or(step: &'static str, path: &Path, error: io::Error) -> MountError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => MountError::NotFound(path.to_owned()),
        _ => MountError::step(step, path)(error),
    }
}

#[cfg(test)]
#[path = "mounter_tests.rs"]
mod tests;
