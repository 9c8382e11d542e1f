//! The accepted age of an answer, in seconds, for periodic requests.
//!
//! An event requires data read after it. A request that is repeated every minute has no such event: any recent answer
//! suffices, and concurrent requests share it. Without this, two hundred dead nodes would cost two hundred lists a
//! minute.

use std::collections::VecDeque;
use std::time::Duration;

use logical_time::LogicalTime;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest accepted age; older points are dropped.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Recent points in logical time at which a request was made.
#[derive(Debug, Default)]
pub struct AgeLimits(Mutex<VecDeque<(Instant, LogicalTime)>>);

impl AgeLimits {
    /// The point in logical time after which an answer must have been read to be at most `age` old (and at most a
    /// minute). All callers get the oldest point that fits, so that they share answers.
    pub fn within(&self, age: Duration) -> LogicalTime {
        let now = Instant::now();
        let mut points = self.0.lock();
        while points.front().is_some_and(|(at, _)| now.duration_since(*at) > MAX_AGE) {
            points.pop_front();
        }
        if let Some((_, time)) = points.iter().find(|(at, _)| now.duration_since(*at) <= age) {
            return *time;
        }
        let time = LogicalTime::now();
        points.push_back((now, time));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_are_shared_within_the_accepted_age_and_no_longer() {
        let limits = AgeLimits::default();
        let (ten, minute) = (Duration::from_secs(10), Duration::from_secs(60));
        let first = limits.within(ten);
        tokio::time::sleep(ten).await;
        assert_eq!(limits.within(ten), first);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let second = limits.within(ten);
        assert!(second > first);
        assert_eq!(
            limits.within(minute),
            first,
            "a caller that accepts older answers gets the oldest that fits"
        );
        tokio::time::sleep(minute).await;
        assert!(limits.within(minute) > first);
    }
}
