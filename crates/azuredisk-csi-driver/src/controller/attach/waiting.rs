//! Waits for Azure's work on a machine, which a forced detach ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Forced detaches that wait for a machine. Azure takes them while another operation works on the machine.
#[derive(Debug, Default)]
pub(crate) struct Urgency {
    waiting: AtomicUsize,
    came: Notify,
}

/// A forced detach, until it is dropped.
pub(super) struct Urgent<'a>(&'a Urgency);

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Urgency {
    /// Announces a forced detach.
    pub(super) fn announce(&self) -> Urgent<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.came.notify_waiters();
        Urgent(self)
    }

    /// Whether one waits.
    pub(super) fn is_announced(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Waits for the next one that is announced.
    async fn next(&self) {
        self.came.notified().await;
    }

    /// Does some waiting, unless a forced detach is announced meanwhile: then there is no result.
    pub(super) async fn unless_urgent<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            result = work => Some(result),
            () = self.next() => None,
        }
    }
}
