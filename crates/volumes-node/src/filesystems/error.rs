//! What may fail with file systems.

use std::io;
use std::path::PathBuf;

use super::kind::FileSystem;
use crate::system::{Command, Output, RunError};

/// A file system cannot be had on a device.
#[derive(Debug, thiserror::Error)]
pub enum FileSystemError {
    /// A program does not run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A program fails.
    #[error("{check} failed ({command}): {output}")]
    Program {
        /// What it was run for.
        check: &'static str,
        /// The command.
        command: String,
        /// How it ended and what it printed.
        output: String,
    },
    /// A device cannot be read.
    #[error("cannot read {}: {source}; it is not formatted", device.display())]
    Unreadable {
        /// The device.
        device: PathBuf,
        /// The kernel's words.
        source: io::Error,
    },
    /// A device contains something else than is wanted.
    #[error(
        "{} contains {content} (found by {check}), and {wanted} is wanted; it is not formatted: ask for what it contains, or \
         save the data and wipe the disk (blkdiscard -z)",
        device.display()
    )]
    OtherContent {
        /// The device.
        device: PathBuf,
        /// What is wanted.
        wanted: FileSystem,
        /// The program that found the content.
        check: &'static str,
        /// What it found.
        content: String,
    },
    /// A volume that can only be read is empty.
    #[error("{} is not formatted, and the volume is to be read only; mount it once for writing", .0.display())]
    EmptyReadOnly(PathBuf),
    /// A file system has errors that need decisions.
    #[error(
        "the file system on {} has errors that fsck does not correct by itself ({output}); repair it by hand",
        device.display()
    )]
    Damaged {
        /// The device.
        device: PathBuf,
        /// What `fsck` says.
        output: String,
    },
    /// A file system of this kind cannot grow while it is mounted.
    #[error("{kind} on {} cannot grow; copy the data to a volume with ext4 or xfs", device.display())]
    CannotGrow {
        /// The device.
        device: PathBuf,
        /// The file system.
        kind: FileSystem,
    },
}

impl FileSystemError {
    pub(super) fn program(check: &'static str, command: &Command, output: &Output) -> Self {
        Self::Program { check, command: command.to_string(), output: output.summary() }
    }
}
