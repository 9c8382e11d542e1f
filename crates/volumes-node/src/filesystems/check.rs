//! Checks and repairs by `fsck`.

use std::path::Path;
use std::time::Duration;

use super::error::FileSystemError;
use crate::system::{Command, System};

/// How long `fsck` may take: to replay a journal takes seconds, a whole check of a large ext4 up to hours.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// `fsck`: errors were corrected.
const CORRECTED: i32 = 1;
/// `fsck`: errors were not corrected. Lesser codes ask for a new start of the machine at most.
const UNCORRECTED: i32 = 4;
/// `fsck`: it could not work.
const OPERATIONAL: i32 = 8;

/// What `fsck` says of a device without any superblock, not even a spare one.
const NO_SUPERBLOCK: &str = "superblock could not be read or does not describe a valid ext2/ext3/ext4";

/// Whether `fsck`, which changes nothing here, finds a file system: by a spare superblock, where the first one is gone.
pub(super) async fn finds_file_system(system: &dyn System, device: &Path) -> Result<bool, FileSystemError> {
    let command = Command::new("fsck", LIMIT).argument("-n").argument(device);
    let output = system.run(&command).await?;
    let text = [output.stdout.as_str(), output.stderr.as_str()].join("\n");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    match output.code {
        Some(0..OPERATIONAL) => Ok(true),
        Some(OPERATIONAL) if text.contains(NO_SUPERBLOCK) => Ok(false),
        _ => Err(FileSystemError::program("the check for spare superblocks by fsck -n", &command, &output)),
    }
}

/// Checks a file system before it is mounted, and repairs what can be repaired without questions.
pub(super) async fn repair(system: &dyn System, device: &Path) -> Result<(), FileSystemError> {
    let command = Command::new("fsck", LIMIT).argument("-a").argument(device);
    let output = system.run(&command).await?;
    match output.code {
        Some(0) => Ok(()),
        Some(CORRECTED..UNCORRECTED) => {
            tracing::warn!(path = %device.display(), answer = output.summary(), "errors of a file system were repaired");
            Ok(())
        }
        Some(UNCORRECTED) => {
            Err(FileSystemError::Damaged { device: device.to_owned(), output: output.summary() })
        }
        _ => Err(FileSystemError::program("the check of the file system by fsck -a", &command, &output)),
    }
}
