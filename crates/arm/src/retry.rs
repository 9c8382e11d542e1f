//! When a failed attempt is retried.

use std::time::Duration;

use clock::Clock;
use http::HeaderMap;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The longest wait that is accepted from an answer: Azure's buckets refill within the hour, and a figure beyond a day
/// is a mistake that should not be used to compute a time.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// How many times and after which pauses passing failures (no answer, 408, 5xx) are retried.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Retries after the first attempt.
    pub retries: u32,
    /// The pause before retry n is (2ⁿ − 1) times this: 5, 15, 35 s.
    pub base: Duration,
    /// The longest pause. An answer that asks for more ends the call at once: its caller can plan better than a
    /// sleeping request.
    pub longest: Duration,
    /// The pause is multiplied by a random figure from this range, so that many callers spread out.
    pub jitter: (f64, f64),
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 3,
            base: Duration::from_secs(5),
            longest: Duration::from_secs(60),
            jitter: (0.8, 1.3),
        }
    }
}

impl RetryPolicy {
    /// The policy of a configuration: its own figures if `cloudProviderBackoff` is on, otherwise the defaults.
    pub fn from_config(config: &cloud_config::CloudConfig) -> Self {
        let backoff = &config.backoff;
        if backoff.enabled {
            Self { retries: backoff.retries, base: backoff.duration, ..Self::default() }
        } else {
            Self::default()
        }
    }

    /// The pause before retry `retry` (from 1), or `None` if the call should give up.
    pub(crate) fn pause(&self, retry: u32, asked: Option<Duration>, rng: &mut SmallRng) -> Option<Duration> {
        if retry > self.retries {
            return None;
        }
        match asked.filter(|asked| !asked.is_zero()) {
            Some(asked) => (asked <= self.longest).then_some(asked),
            None => {
                let steps = 2u32.saturating_pow(retry).saturating_sub(1);
                let (low, high) = self.jitter;
                let factor = if low < high { rng.random_range(low..high) } else { low };
                let seconds = self.base.saturating_mul(steps).as_secs_f64() * factor.max(0.0);
                let pause = Duration::try_from_secs_f64(seconds).unwrap_or(self.longest);
                Some(pause.min(self.longest))
            }
        }
    }
}

pub(crate) fn seeded(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// The wait that an answer asks for: milliseconds first, then seconds or an HTTP date, which is measured against the
/// answer's own `Date` and only without one against our clock. Never more than a day.
pub(crate) fn retry_after(headers: &HeaderMap, clock: &Clock) -> Option<Duration> {
    asked(headers, clock).map(|asked| asked.min(MAX_RETRY_AFTER))
}

fn asked(headers: &HeaderMap, clock: &Clock) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        if let Some(ms) = text(name).and_then(|text| text.parse().ok()) {
            return Some(Duration::from_millis(ms));
        }
    }
    let text_value = text("retry-after")?;
    if let Ok(seconds) = text_value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let unix = |text: &str| azure_core::time::parse_rfc7231(text).ok().map(|date| date.unix_timestamp());
    let until = unix(text_value)?;
    let now = text("date")
        .and_then(unix)
        .unwrap_or_else(|| i64::try_from(clock.since_1970().as_secs()).unwrap_or(i64::MAX));
    Some(Duration::from_secs(u64::try_from(until.saturating_sub(now)).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_in_the_jitter_range() {
        let policy = RetryPolicy::default();
        for seed in 0..200 {
            let mut rng = seeded(seed);
            for (retry, base) in [(1, 5.0), (2, 15.0), (3, 35.0)] {
                let pause = policy.pause(retry, None, &mut rng).unwrap().as_secs_f64();
                assert!(pause >= base * 0.8 && pause <= (base * 1.3).min(60.0), "{retry}: {pause}");
            }
            assert_eq!(policy.pause(4, None, &mut rng), None);
        }
    }

    #[test]
    fn the_largest_figures_of_a_configuration_do_not_overflow() {
        let policy = RetryPolicy { retries: u32::MAX, base: Duration::MAX, ..RetryPolicy::default() };
        let mut rng = seeded(1);
        for retry in [1, 40, u32::MAX] {
            assert_eq!(policy.pause(retry, None, &mut rng), Some(policy.longest));
        }
    }

    #[test]
    fn what_azure_asks_for_is_preferred_and_too_much_ends_the_call() {
        let policy = RetryPolicy::default();
        let mut rng = seeded(1);
        let seconds = Duration::from_secs;
        assert_eq!(policy.pause(1, Some(seconds(7)), &mut rng), Some(seconds(7)));
        assert_eq!(policy.pause(3, Some(seconds(60)), &mut rng), Some(seconds(60)));
        assert_eq!(policy.pause(1, Some(seconds(61)), &mut rng), None);
        assert!(policy.pause(1, Some(Duration::ZERO), &mut rng).unwrap() >= seconds(4));
    }

    /// NODE-147, the parsing of the header.
    #[test]
    fn retry_after_in_all_its_forms() {
        let clock = Clock::following_tokio(Duration::from_secs(784_111_777)); // Sun, 06 Nov 1994 08:49:37 GMT
        let read = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            retry_after(&headers, &clock)
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("retry-after", "10")]), Some(Duration::from_secs(10)));
        assert_eq!(read(&[("retry-after", "soon")]), None);
        for (name, value) in [
            ("retry-after", "18446744073709551615"),
            ("retry-after-ms", "18446744073709551615"),
            ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(read(&[(name, value)]), Some(MAX_RETRY_AFTER), "{name}: {value}");
        }
        assert_eq!(
            read(&[("retry-after-ms", "250"), ("retry-after", "9")]),
            Some(Duration::from_millis(250))
        );
        assert_eq!(read(&[("x-ms-retry-after-ms", "1500")]), Some(Duration::from_millis(1500)));
        let date = ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(read(&[date]), Some(Duration::from_secs(30)));
        assert_eq!(read(&[date, ("date", "Sun, 06 Nov 1994 08:50:00 GMT")]), Some(Duration::from_secs(7)));
        assert_eq!(read(&[date, ("date", "Sun, 06 Nov 1994 09:50:00 GMT")]), Some(Duration::ZERO));
    }
}
