//! The time in objects.

use std::sync::Arc;

use jiff::Timestamp;

/// The current time, for timestamps in objects. Waiting follows tokio's clock.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
