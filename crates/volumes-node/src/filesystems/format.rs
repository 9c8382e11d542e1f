//! Making of a file system, not too many at a time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::error::FileSystemError;
use super::kind::FileSystem;
use crate::system::{Command, System};

/// How long it may take to make a file system: discarding the blocks of the largest disks takes minutes.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// How many file systems are made at a time: each of them writes and discards as fast as the machine may.
#[derive(Debug, Clone)]
pub struct FormatLimits {
    slots: Option<Arc<Semaphore>>,
    slot_limit: Duration,
}

impl FormatLimits {
    /// So many at a time, 0 for as many as there are. One that takes longer than `slot_limit` goes on without its slot, so that
    /// a slow disk does not hold the others up.
    pub fn new(most: usize, slot_limit: Duration) -> Self {
        Self { slots: (most > 0).then(|| Arc::new(Semaphore::new(most))), slot_limit }
    }

    /// Makes a file system on a device that was proven empty.
    pub(super) async fn format(
        &self,
        system: &dyn System,
        device: &Path,
        kind: FileSystem,
    ) -> Result<(), FileSystemError> {
        let slot = match &self.slots {
            Some(slots) => Arc::clone(slots).acquire_owned().await.ok(),
            None => None,
        };
        let command =
            Command::new(format!("mkfs.{kind}"), LIMIT).arguments(kind.arguments()).argument(device);
        tracing::info!(path = %device.display(), kind = kind.name(), "formatting an empty disk");
        let mut running = std::pin::pin!(system.run(&command));
        let output = tokio::select! {
            output = &mut running => output,
            () = sleep(self.slot_limit) => {
                drop(slot);
                running.await
            }
        }?;
        if output.has_code(0) {
            return Ok(());
        }
        Err(FileSystemError::program("formatting", &command, &output))
    }
}
