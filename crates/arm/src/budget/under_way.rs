//! Permitted calls, and the meaning of Azure's figures while others are under way.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// A permitted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Its number among all permitted calls, from 1.
    number: u64,
    at: Instant,
}

/// The calls of one budget.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// The number of permitted calls.
    sent: u64,
    /// Calls without an answer.
    open: BTreeMap<u64, Instant>,
    /// The latest call whose answer had a figure.
    newest: u64,
}

impl UnderWay {
    /// Adds a call.
    pub(super) fn go(&mut self, now: Instant) -> Sent {
        self.sent += 1;
        self.open.insert(self.sent, now);
        Sent { number: self.sent, at: now }
    }

    /// Ends a call.
    pub(super) fn end(&mut self, sent: Sent) {
        self.open.remove(&sent.number);
    }

    /// The number of calls without an answer.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// The tokens left now, given those left when Azure counted this call. Azure counts at the arrival of a call, not
    /// at its answer: all calls that were sent later are missing from the figure, answered or not, and earlier ones may
    /// be. `None` if the answer to a later call is already known.
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
