//! Whether a device is empty, has the wanted file system, or must not be touched: four checks, of which each one can forbid.

use std::path::Path;

use super::content::Content;
use super::error::FileSystemError;
use super::kind::FileSystem;
use super::{check, content};
use crate::system::System;

/// What is done with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// No check finds anything: it may be formatted.
    Empty,
    /// It has the wanted file system.
    Wanted,
}

/// Looks at a device by all checks.
///
/// # Errors
/// It has anything else than the wanted file system, or a check fails: what is unknown is not empty.
pub(super) async fn examine(
    system: &dyn System,
    device: &Path,
    wanted: FileSystem,
) -> Result<Existing, FileSystemError> {
    let other = |check, what: String| FileSystemError::OtherContent {
        device: device.to_owned(),
        wanted,
        check,
        content: what,
    };
    // A device that cannot be read would be blank to the programs.
    let starts_with_zeros = content::starts_with_zeros(system, device).await?;
    match content::read(system, device).await? {
        Content::FileSystem(kind) if kind.eq_ignore_ascii_case(wanted.name()) => return Ok(Existing::Wanted),
        Content::FileSystem(kind) => return Err(other("blkid", kind)),
        Content::PartitionTable(table) => {
            return Err(other("blkid", format!("unknown data: a partition table of type {table}")));
        }
        Content::Blank => {}
    }
    if check::finds_file_system(system, device).await? {
        return Err(other("fsck -n", "a file system whose first superblock is destroyed".to_owned()));
    }
    if let Some(signature) = content::hidden_signature(system, device).await? {
        return Err(other("wipefs", signature));
    }
    if !starts_with_zeros {
        return Err(other(
            "a read of its first MiB",
            "unknown data: bytes other than zero, without a signature".to_owned(),
        ));
    }
    Ok(Existing::Empty)
}
