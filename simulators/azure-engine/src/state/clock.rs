//! The simulated time.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::provider::AzureState;

/// The resolution of Azure's clocks in nanoseconds: its documents show seven digits.
const TICK: i128 = 100;

impl AzureState {
    /// The time on tokio's clock; while something overdue is being done, the time when it was due.
    pub fn instant(&self) -> Instant {
        self.moment.unwrap_or_else(Instant::now)
    }

    /// The simulated wall-clock time.
    pub fn now(&mut self) -> Timestamp {
        // The origin is the first read of the clock, so that a state can be created outside a runtime.
        if self.origin.is_none() {
            self.origin = Some(self.instant());
        }
        self.time()
    }

    /// The simulated wall-clock time, for readers.
    pub fn time(&self) -> Timestamp {
        let now = self.instant();
        let passed = self.origin.map(|origin| now.saturating_duration_since(origin)).unwrap_or_default();
        let passed = jiff::SignedDuration::try_from(passed).unwrap_or_default();
        let time = self.start.checked_add(passed).unwrap_or(Timestamp::MAX);
        let ticks = time.as_nanosecond() - time.as_nanosecond().rem_euclid(TICK);
        Timestamp::from_nanosecond(ticks).unwrap_or(time)
    }

    /// The instant at which the simulated clock shows a time.
    pub(crate) fn instant_of(&mut self, time: Timestamp) -> Option<Instant> {
        let origin = *self.origin.get_or_insert_with(Instant::now);
        let ahead = Duration::try_from(time.duration_since(self.start)).unwrap_or_default();
        origin.checked_add(ahead)
    }

    /// Sets the simulated wall clock, which goes on from there.
    pub fn set_time(&mut self, time: Timestamp) {
        self.start = time;
        self.origin = Some(Instant::now());
    }
}
