//! What one provider's part of Azure lets through: closed after a 429, and what it takes in a window, learned from when it
//! refused.
//!
//! Beside Resource Manager some providers count a subscription's calls in windows of five minutes, with no header that says
//! how many are left (Network: 1,000 writes). Who has run into such a limit once knows it: so many had passed. From then on
//! the rest of a window waits instead of being refused.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// The window of providers' limits, and a moment more: theirs begins when the first call has reached them.
const WINDOW: Duration = Duration::from_secs(300 + 3);
/// No limit of a window that Azure publishes for all calls of a provider is smaller. Where fewer had passed, it was a limit of
/// something else: of one resource, or of a short time.
const SMALLEST_LIMIT: u32 = 500;
/// How long a limit that was learned counts. It may have been raised, or others may have used the same.
const KNOWN: Duration = Duration::from_secs(3600);
/// Calls within this time are counted together.
const SLOT: Duration = Duration::from_secs(5);

/// One provider, as one budget knows it.
#[derive(Debug, Default)]
pub(super) struct Provider {
    closed: Option<Instant>,
    /// When calls were let through, and how many, for a window.
    passed: VecDeque<(Instant, u32)>,
    limit: Option<Limit>,
}

/// A limit that was learned.
#[derive(Debug)]
struct Limit {
    /// How many calls pass within a window.
    calls: u32,
    learned: Instant,
    /// When the present window began, or will.
    begins: Instant,
    used: u32,
}

impl Provider {
    /// Lets time pass.
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

    /// When a call may go that leaves so many for others, if it may not now.
    pub(super) fn opens(&self, floor: f64) -> Option<Instant> {
        let spent =
            self.limit.as_ref().filter(|limit| f64::from(limit.calls - limit.used.min(limit.calls)) < floor);
        self.closed.max(spent.map(|limit| limit.begins + WINDOW))
    }

    /// A call goes.
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

    /// A call was refused, and all are until then.
    pub(super) fn refuse(&mut self, now: Instant, until: Instant) {
        if let Some((_, count)) = self.passed.back_mut() {
            *count = count.saturating_sub(1);
        }
        if self.closed.is_none() {
            let calls = self.passed.iter().map(|(_, count)| *count).sum();
            self.limit =
                (calls >= SMALLEST_LIMIT).then_some(Limit { calls, learned: now, begins: until, used: 0 });
        } else if let Some(limit) = &mut self.limit {
            // It was under way when the first one was refused, and has not passed.
            limit.calls = limit.calls.saturating_sub(1).max(SMALLEST_LIMIT);
            limit.begins = limit.begins.max(until);
        }
        self.closed = self.closed.max(Some(until));
    }
}
