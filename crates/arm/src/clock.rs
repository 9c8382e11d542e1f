//! The wall clock, as a value that tests own.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Tells the time since 1970. Needed where a moment outlives the process or comes from elsewhere:
/// when an operation began, HTTP dates, the validity of an assertion. Waiting never uses it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        #[allow(clippy::disallowed_methods)] // the one place that reads it for this crate
        Self(Arc::new(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()))
    }

    /// A clock that starts at `start` since 1970 and follows tokio's time, paused or not.
    pub fn following_tokio(start: Duration) -> Self {
        let origin = Instant::now();
        Self(Arc::new(move || start.saturating_add(origin.elapsed())))
    }

    /// The time since 1970.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}
