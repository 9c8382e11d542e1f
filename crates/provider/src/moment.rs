//! Logical time: which of two things happened first.
//!
//! Freshness is asked for by cause ("no older than the event that woke me", design rule 4). Clocks are too
//! coarse for that: two things may happen at one instant, always so on paused time. A counter is exact.

use std::sync::atomic::{AtomicU64, Ordering};

/// A point in the order of this process's events. Later moments are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Moment {
    /// Before everything: whatever is known is fresh enough.
    pub(crate) const ANY: Self = Self(0);

    /// A moment after every moment taken so far.
    pub(crate) fn now() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
