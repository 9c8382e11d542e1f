//! Limits warnings about repeated failures: each is logged once, and again after an interval.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// After how long the same warning is logged again, for readers of only the latest part of a log.
const REPEAT_INTERVAL: Duration = Duration::from_secs(15 * 60);

/// The latest warnings and their times, by subject.
#[derive(Debug, Default)]
pub(crate) struct RepeatedWarnings(Mutex<BTreeMap<String, (String, Instant)>>);

impl RepeatedWarnings {
    /// Whether to log this warning now: it is new, or the last time is long ago.
    pub fn is_due(&self, subject: &str, text: &str) -> bool {
        let mut known = self.0.lock();
        let is_known =
            known.get(subject).is_some_and(|(last, when)| last == text && when.elapsed() < REPEAT_INTERVAL);
        if !is_known {
            known.insert(subject.to_owned(), (text.to_owned(), Instant::now()));
        }
        !is_known
    }

    /// Records that the subject is in order again, or deleted: the next warning is new.
    pub fn forget(&self, subject: &str) {
        self.0.lock().remove(subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_warning_is_due_once_and_long_after_that_again() {
        let warnings = RepeatedWarnings::default();
        let mut lines = 0;
        for _ in 0..60 {
            lines += usize::from(warnings.is_due("a", "no machine"));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(lines, 4, "one each quarter of an hour");
        assert!(warnings.is_due("b", "no machine") && !warnings.is_due("b", "no machine"));
        assert!(warnings.is_due("b", "no address"), "another cause is news");
        warnings.forget("b");
        assert!(warnings.is_due("b", "no address"));
    }
}
