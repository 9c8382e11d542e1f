//! The program's one look at the wall clock.

/// The time of day: simulators start with it and then follow tokio's time.
#[allow(clippy::disallowed_methods, reason = "the program's one seam to the wall clock")]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
