//! Logical time: which of two things happened first.
//!
//! Reads name the cause that they must be newer than, such as the event that started a reconcile. Clocks are too coarse
//! for that: two events may happen at one instant, and always do on paused time. A counter is exact.

use std::sync::atomic::{AtomicU64, Ordering};

/// A point in the order of this process's events. Later points are greater.
///
/// A request passes a point as `newer_than`: only data read after it is a valid answer.
///
/// ```
/// use logical_time::LogicalTime;
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
    /// Before everything: any known data is fresh enough.
    pub const BEGINNING: Self = Self(0);

    /// A point after every point taken so far.
    pub fn now() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
