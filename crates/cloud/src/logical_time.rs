//! Logical time: which of two things happened first.
//!
//! Freshness is asked for by cause: "no older than the event that woke me". Clocks are too coarse for
//! that: two things may happen at one instant, always so on paused time. A counter is exact.

use std::sync::atomic::{AtomicU64, Ordering};

/// A point in the order of this process's events. Later points are greater.
///
/// Who asks for something passes a point as `newer_than`: only what was read after it counts as an answer.
///
/// ```
/// use cloud::LogicalTime;
///
/// let event = LogicalTime::now();
/// let reading = LogicalTime::now();
/// assert!(reading > event);
/// assert!(event > LogicalTime::BEGINNING);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogicalTime(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

impl LogicalTime {
    /// Before everything: whatever is known is fresh enough.
    pub const BEGINNING: Self = Self(0);

    /// A point after every point taken so far.
    pub fn now() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
