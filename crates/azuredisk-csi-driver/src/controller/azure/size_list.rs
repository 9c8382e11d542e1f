//! The sizes that were read last, and when they are read again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use volume_planner::attach::published_sizes::PublishedSizes;

/// Sizes change when Azure brings new ones.
const READ_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// Pause after the list could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(600);

/// Azure's list of sizes, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct SizeList {
    published: Arc<PublishedSizes>,
    /// When they are read next; absent until they were read once.
    next: Option<Instant>,
    is_being_read: bool,
}

impl SizeList {
    pub(super) fn published(&self) -> Arc<PublishedSizes> {
        Arc::clone(&self.published)
    }

    /// Whether the caller has to read the list now. It then has to [take](Self::take) what it read.
    pub(super) fn begin_if_due(&mut self) -> bool {
        let is_due = self.next.is_none_or(|next| next <= Instant::now());
        let begins = is_due && !self.is_being_read;
        self.is_being_read |= begins;
        begins
    }

    /// Takes what was read; `None` if that failed: the former list counts on.
    pub(super) fn take(&mut self, read: Option<PublishedSizes>) {
        self.is_being_read = false;
        self.next = Some(Instant::now() + if read.is_some() { READ_INTERVAL } else { RETRY_INTERVAL });
        if let Some(read) = read {
            self.published = Arc::new(read);
        }
    }
}
