//! Calls that were let through, and what Azure's figures mean while others are under way.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// A call that was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Its number among all that were let through, from 1.
    number: u64,
    at: Instant,
}

/// The calls of one budget.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// How many were let through.
    sent: u64,
    /// Those that are not answered.
    open: BTreeMap<u64, Instant>,
    /// The latest call whose answer had a figure.
    newest: u64,
}

impl UnderWay {
    /// One more goes.
    pub(super) fn go(&mut self, now: Instant) -> Sent {
        self.sent += 1;
        self.open.insert(self.sent, now);
        Sent { number: self.sent, at: now }
    }

    /// One is over.
    pub(super) fn end(&mut self, sent: Sent) {
        self.open.remove(&sent.number);
    }

    /// How many are not answered.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// What is left now, given what was left of a bucket when Azure counted this call. Azure counts when a call comes, not
    /// when it answers: all that went later is missing from the figure, answered or not, and what went before may be.
    /// `None` where an answer to a later call has told more.
    pub(super) fn left(
        &mut self,
        sent: Sent,
        remaining: f64,
        capacity: f64,
        rate: f64,
        now: Instant,
    ) -> Option<f64> {
        if sent.number < self.newest {
            return None;
        }
        self.newest = sent.number;
        let refilled = remaining + now.saturating_duration_since(sent.at).as_secs_f64() * rate;
        let later = self.sent - sent.number;
        let earlier = self.open.range(..sent.number).count();
        Some(refilled.min(capacity) - later as f64 - earlier as f64)
    }
}
