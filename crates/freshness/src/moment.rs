//! When a question was asked.

use logical_time::LogicalTime;
use tokio::time::Instant;

/// A point in time: on the clock, for ages, and in the order of events, which is exact where the clock is too coarse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// On tokio's clock.
    pub at: Instant,
    /// Among all events of this process.
    pub order: LogicalTime,
}

impl Moment {
    /// The present moment.
    pub fn now() -> Self {
        Self { at: Instant::now(), order: LogicalTime::now() }
    }
}
