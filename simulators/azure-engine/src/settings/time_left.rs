//! Times as distances from a moment, for the saved state.

use tokio::time::Instant;

/// Nanoseconds from `now` to a later time; 0 where it is past.
pub(crate) fn distance(now: Instant, then: Instant) -> u64 {
    u64::try_from(then.saturating_duration_since(now).as_nanos()).unwrap_or(u64::MAX)
}

/// The time that many nanoseconds after `now`, bounded by the latest representable one.
pub(crate) fn after(now: Instant, nanoseconds: u64) -> Instant {
    now.checked_add(std::time::Duration::from_nanos(nanoseconds)).unwrap_or(now)
}
