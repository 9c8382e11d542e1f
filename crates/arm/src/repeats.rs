//! A loop that repeats itself stops and says so.
//!
//! The latest write of each resource is remembered. Finding the same difference once more may be an accident, and is
//! repaired. Finding it again after that means that two programs (or we and Azure) disagree: writing stops for a pause
//! that doubles each time.

use std::time::Duration;

use tokio::time::Instant;

/// How many times the same write may be made in a row: the write, and one repair after a possible accident. After that
/// users are informed of the difference.
const MAX_REPEATS: u32 = 2;
/// The first pause: a disagreement costs at most one write a minute, of the hundreds that Azure permits.
const MIN_PAUSE_INTERVAL: Duration = Duration::from_secs(60);
/// The longest pause: within an hour after the other program is gone, the resource is as desired.
const MAX_PAUSE_INTERVAL: Duration = Duration::from_secs(3600);
/// After this time a repeated write is a new event. Twice the longest pause, so that an ongoing disagreement does not
/// count as a new one.
const FORGET_TIMEOUT: Duration = Duration::from_secs(2 * 3600);

/// The record of the writes of one resource, or of one writer.
#[derive(Debug, Default)]
pub struct Repeats {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    print: u64,
    count: u32,
    at: Instant,
}

/// Whether to write.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write now.
    Write,
    /// Write after this time.
    Wait(Duration),
}

impl Repeats {
    /// Whether a write with this fingerprint may be made now.
    pub fn judge(&self, print: u64, now: Instant) -> Verdict {
        let Some(last) = self.last.as_ref().filter(|last| last.print == print) else { return Verdict::Write };
        let left = (last.at + pause(last.count)).saturating_duration_since(now);
        if left.is_zero() { Verdict::Write } else { Verdict::Wait(left) }
    }

    /// Records a successful write.
    pub fn written(&mut self, print: u64, now: Instant) {
        let count = match &self.last {
            Some(last) if last.print == print && now < last.at + FORGET_TIMEOUT => last.count + 1,
            _ => 1,
        };
        self.last = Some(Last { print, count, at: now });
    }

    /// Whether the latest write is so old that it no longer counts.
    pub fn is_past(&self, now: Instant) -> bool {
        self.last.as_ref().is_none_or(|last| now >= last.at + FORGET_TIMEOUT)
    }

    /// Records that the write had no effect: the difference is still there. Returns the time to wait.
    pub fn stuck(&mut self, print: u64, now: Instant) -> Duration {
        let count = self.last.as_ref().map_or(MAX_REPEATS, |last| last.count.max(MAX_REPEATS));
        self.last = Some(Last { print, count, at: now });
        pause(count)
    }
}

fn pause(count: u32) -> Duration {
    match count.checked_sub(MAX_REPEATS) {
        None => Duration::ZERO,
        Some(doublings) => MIN_PAUSE_INTERVAL.saturating_mul(1 << doublings.min(10)).min(MAX_PAUSE_INTERVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_repair_is_free_then_pauses_double() {
        let mut repeats = Repeats::default();
        let start = Instant::now();
        repeats.written(7, start);
        assert_eq!(repeats.judge(7, start), Verdict::Write);
        repeats.written(7, start);
        assert_eq!(repeats.judge(7, start), Verdict::Wait(Duration::from_secs(60)));
        assert_eq!(repeats.judge(8, start), Verdict::Write);
        let later = start + Duration::from_secs(60);
        assert_eq!(repeats.judge(7, later), Verdict::Write);
        repeats.written(7, later);
        assert_eq!(repeats.judge(7, later), Verdict::Wait(Duration::from_secs(120)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_useless_write_pauses_at_once() {
        let mut repeats = Repeats::default();
        let now = Instant::now();
        repeats.written(7, now);
        assert_eq!(repeats.stuck(7, now), Duration::from_secs(60));
        assert_eq!(repeats.judge(7, now), Verdict::Wait(Duration::from_secs(60)));
    }
}
