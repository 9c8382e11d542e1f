//! Waiting by events, with another look now and then in case an event was lost.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::tree::Tree;
use crate::system::Changes;

/// How long events may fail to come until the next look.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The same where events cannot be had.
const LOOK_WITHOUT_EVENTS: Duration = Duration::from_secs(1);

/// Folders in which links, nodes and devices appear. Links below folders that do not exist yet are announced by the folders
/// above them, and by the kernel's events of their devices.
const FOLDERS: [&str; 9] = [
    "/dev",
    "/dev/disk",
    "/dev/disk/azure",
    "/dev/disk/azure/scsi1",
    "/dev/disk/azure/data",
    "/dev/disk/azure/data/by-lun",
    "/dev/disk/by-id",
    "/sys/bus/scsi/devices",
    "/sys/class/block",
];

/// Subscribes to changes; what is looked at afterwards is as new as the changes that are waited for.
pub(super) async fn subscribe(tree: &Tree) -> Option<Box<dyn Changes>> {
    let folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| tree.path(folder)).collect();
    match tree.system.changes(&folders).await {
        Ok(changes) => Some(changes),
        Err(error) => {
            tracing::warn!(%error, "the kernel's events cannot be had, and devices are looked for every second");
            None
        }
    }
}

/// Waits for a change, or for the next look. Whether the deadline has not passed.
pub(super) async fn wait(changes: Option<Box<dyn Changes>>, deadline: Instant) -> bool {
    let now = Instant::now();
    if now >= deadline {
        return false;
    }
    let pause = if changes.is_some() { LOOK_AGAIN } else { LOOK_WITHOUT_EVENTS };
    let next = async {
        if let Some(mut changes) = changes
            && changes.next().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    };
    let _ = timeout_at(deadline.min(now + pause), next).await;
    true
}
