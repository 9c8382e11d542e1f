//! The wall clock, as a value that tests own: the one place that reads the machine's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The wall clock. It is needed for times that outlive the process or that others read: times of leases and events, ages
/// of objects, HTTP dates, the validity of an assertion. Waiting is measured with tokio's clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the seam that the ban asks for")]
        let now = Timestamp::now;
        Self(Arc::new(now))
    }

    /// A clock that shows this time since 1970 now, and follows tokio's time, which tests may pause.
    pub fn following_tokio(since_1970: Duration) -> Self {
        let origin = Instant::now();
        Self(Arc::new(move || {
            let shown = SignedDuration::try_from(since_1970.saturating_add(origin.elapsed()));
            shown.ok().and_then(|shown| Timestamp::from_duration(shown).ok()).unwrap_or(Timestamp::MAX)
        }))
    }

    /// The time on the wall.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The time since 1970, as tokens and HTTP dates count it.
    pub fn since_1970(&self) -> Duration {
        Duration::try_from(self.now().as_duration()).unwrap_or_default()
    }

    /// The time since an event; zero if it is unknown or in the future.
    pub fn age(&self, since: Option<Timestamp>) -> Duration {
        since
            .map(|since| self.now().duration_since(since))
            .and_then(|age| Duration::try_from(age).ok())
            .unwrap_or_default()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_follows_tokios_time() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let clock = Clock::following_tokio(Duration::from_secs(1_000));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), at(1_005));
        assert_eq!(clock.since_1970(), Duration::from_secs(1_005));
        assert_eq!(clock.age(Some(at(1_002))), Duration::from_secs(3));
        assert_eq!(clock.age(Some(at(2_000))), Duration::ZERO, "in the future");
        assert_eq!(clock.age(None), Duration::ZERO);
    }
}
