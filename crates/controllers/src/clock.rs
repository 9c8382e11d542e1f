//! The wall clock, through one seam.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s::Time;
use tokio::time::Instant;

/// What time it is on the wall. Durations are measured with tokio's clock instead; this one is only for
/// what other programs read: lease times, event times, ages of objects.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the seam that the ban asks for")]
        let now = Timestamp::now;
        Self(Arc::new(now))
    }

    /// A clock that shows `start` now and follows tokio's time, which tests may pause.
    pub fn following_tokio(start: Timestamp) -> Self {
        let origin = Instant::now();
        Self(Arc::new(move || {
            let elapsed = SignedDuration::try_from(origin.elapsed()).unwrap_or_default();
            start.checked_add(elapsed).unwrap_or(start)
        }))
    }

    /// The time on the wall.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// How long ago an object was created; zero where that is unknown or lies in the future.
    pub fn age(&self, created: Option<&Time>) -> std::time::Duration {
        created
            .map(|created| self.now().duration_since(created.0))
            .and_then(|age| std::time::Duration::try_from(age).ok())
            .unwrap_or_default()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
