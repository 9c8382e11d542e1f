//! The limit of one provider: closed after a 429, and a limit for a window, learned from its refusals.
//!
//! Besides Resource Manager some providers count a subscription's calls in windows of five minutes, without a header
//! for the remaining ones (Network: 1,000 writes). A refusal shows the limit: the number of calls that had passed. From
//! then on calls beyond it wait for the next window instead of being refused.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The window of providers' limits, with a margin: theirs begins when the first call has reached them.
const WINDOW: Duration = Duration::from_secs(300 + 3);
/// The smallest limit that Azure publishes for all calls of a provider in a window. If fewer calls had passed, the
/// limit was a different one: of one resource, or of a short time.
const SMALLEST_LIMIT: u32 = 500;
/// How long a learned limit is valid. It may have been raised, or others may have used it up.
const KNOWN: Duration = Duration::from_secs(3600);
/// Calls within this time are counted together.
const SLOT: Duration = Duration::from_secs(5);

/// The limits of one provider within one budget.
#[derive(Debug, Default)]
pub(super) struct Provider {
    closed: Option<Instant>,
    /// Times and numbers of the permitted calls, within a window.
    passed: VecDeque<(Instant, u32)>,
    limit: Option<Limit>,
}

/// A learned limit.
#[derive(Debug)]
struct Limit {
    /// The number of calls in a window.
    calls: u32,
    learned: Instant,
    /// When the present window began, or will begin.
    begins: Instant,
    used: u32,
}

impl Provider {
    /// Advances the time.
    pub(super) fn advance(&mut self, now: Instant) {
        self.closed = self.closed.filter(|until| *until > now);
        self.limit.take_if(|limit| now.saturating_duration_since(limit.learned) >= KNOWN);
        if let Some(limit) = &mut self.limit
            && now.saturating_duration_since(limit.begins) >= WINDOW
        {
            limit.used = 0;
        }
        while self.passed.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= WINDOW) {
            self.passed.pop_front();
        }
    }

    /// Until when Azure refuses all calls, if it does.
    pub(super) fn closed(&self) -> Option<Instant> {
        self.closed
    }

    /// When a call may go that leaves `floor` calls for others; `None` if it may go now.
    pub(super) fn opens(&self, floor: f64) -> Option<Instant> {
        let spent =
            self.limit.as_ref().filter(|limit| f64::from(limit.calls - limit.used.min(limit.calls)) < floor);
        self.closed.max(spent.map(|limit| limit.begins + WINDOW))
    }

    /// Counts a call.
    pub(super) fn pass(&mut self, now: Instant) {
        if let Some(limit) = &mut self.limit {
            if limit.used == 0 {
                limit.begins = now;
            }
            limit.used += 1;
        }
        match self.passed.back_mut() {
            Some((at, count)) if now.saturating_duration_since(*at) < SLOT => *count += 1,
            _ => self.passed.push_back((now, 1)),
        }
    }

    /// Records a refusal: all calls are refused until then.
    pub(super) fn refuse(&mut self, now: Instant, until: Instant) {
        if let Some((_, count)) = self.passed.back_mut() {
            *count = count.saturating_sub(1);
        }
        if self.closed.is_none() {
            let calls = self.passed.iter().map(|(_, count)| *count).sum();
            self.limit =
                (calls >= SMALLEST_LIMIT).then_some(Limit { calls, learned: now, begins: until, used: 0 });
        } else if let Some(limit) = &mut self.limit {
            // It was under way at the first refusal, and has not passed.
            limit.calls = limit.calls.saturating_sub(1).max(SMALLEST_LIMIT);
            limit.begins = limit.begins.max(until);
        }
        self.closed = self.closed.max(Some(until));
    }
}
