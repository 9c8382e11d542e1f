//! The mount of a file system, as mount(2) takes it.

use std::path::PathBuf;

use rustix::mount::MountFlags;

/// What mount(2) is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountCall {
    /// The device.
    pub source: PathBuf,
    /// An existing folder.
    pub target: PathBuf,
    /// The type of the file system.
    pub file_system: String,
    /// Options that are flags.
    pub flags: MountFlags,
    /// Options for the file system, separated by commas.
    pub data: String,
}
