//! A device becomes ready to be mounted: formatted if it is proven empty, else checked.

use std::path::Path;
use std::sync::Arc;

use super::check;
use super::error::FileSystemError;
use super::existing::{Existing, examine};
use super::format::FormatLimits;
use super::kind::FileSystem;
use crate::system::System;

/// The file systems of this machine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileSystems {
    pub(super) system: Arc<dyn System>,
    limits: FormatLimits,
}

/// What was done to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// It was empty and has a file system now.
    Formatted,
    /// It had the file system, which was checked unless it is to be read only.
    Existing,
}

impl FileSystems {
    /// File systems, made within these limits.
    pub fn new(system: Arc<dyn System>, limits: FormatLimits) -> Self {
        Self { system, limits }
    }

    /// Prepares a device for a mount of this file system. A device with any other content is never changed.
    ///
    /// # Errors
    /// The device has other content, a check fails, or it is empty and to be read only.
    pub async fn prepare(
        &self,
        device: &Path,
        wanted: FileSystem,
        is_read_only: bool,
    ) -> Result<Prepared, FileSystemError> {
        let system = &*self.system;
        match examine(system, device, wanted).await? {
            Existing::Empty if is_read_only => Err(FileSystemError::EmptyReadOnly(device.to_owned())),
            Existing::Empty => {
                self.limits.format(system, device, wanted).await?;
                check::repair(system, device).await?;
                Ok(Prepared::Formatted)
            }
            Existing::Wanted => {
                if !is_read_only {
                    check::repair(system, device).await?;
                }
                Ok(Prepared::Existing)
            }
        }
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
