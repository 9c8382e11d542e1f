//! ARM's token buckets (`spec/arm-wire.md`, 8.3).

use std::collections::HashMap;

use tokio::time::Instant;

use crate::options::Budgets;

/// The classes in which ARM counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Reads,
    Writes,
    Deletes,
}

impl Class {
    pub(crate) fn of(method: &str) -> Self {
        match method {
            "GET" | "HEAD" => Self::Reads,
            "DELETE" => Self::Deletes,
            _ => Self::Writes,
        }
    }

    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Reads => "x-ms-ratelimit-remaining-subscription-reads",
            Self::Writes => "x-ms-ratelimit-remaining-subscription-writes",
            Self::Deletes => "x-ms-ratelimit-remaining-subscription-deletes",
        }
    }

    pub(crate) fn global_header(self) -> &'static str {
        match self {
            Self::Reads => "x-ms-ratelimit-remaining-subscription-global-reads",
            Self::Writes => "x-ms-ratelimit-remaining-subscription-global-writes",
            Self::Deletes => "x-ms-ratelimit-remaining-subscription-global-deletes",
        }
    }

    fn limits(self, budgets: &Budgets) -> (f64, f64) {
        match self {
            Self::Reads => (budgets.reads, budgets.reads_per_second),
            Self::Writes => (budgets.writes, budgets.writes_per_second),
            Self::Deletes => (budgets.deletes, budgets.deletes_per_second),
        }
    }
}

struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn refill(&mut self, size: f64, per_second: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * per_second).min(size);
        self.filled = now;
    }
}

/// What is left after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remaining {
    pub(crate) own: u64,
    pub(crate) global: u64,
}

/// All buckets: per subscription, principal and class; an empty principal is the whole subscription.
#[derive(Default)]
pub(crate) struct Buckets {
    buckets: HashMap<(String, String, Class), Bucket>,
}

impl Buckets {
    /// Takes a token; when a bucket is empty, the seconds until it has one again.
    pub(crate) fn take(
        &mut self,
        budgets: &Budgets,
        subscription: &str,
        principal: &str,
        class: Class,
        now: Instant,
    ) -> Result<Remaining, u32> {
        let (size, per_second) = class.limits(budgets);
        let mut left = [0.0; 2];
        let sides = [(principal, 1.0), ("", budgets.global_factor)];
        for (left, (side, factor)) in left.iter_mut().zip(sides) {
            let bucket = self
                .buckets
                .entry((subscription.to_ascii_lowercase(), side.into(), class))
                .or_insert(Bucket { tokens: size * factor, filled: now });
            bucket.refill(size * factor, per_second * factor, now);
            if bucket.tokens < 1.0 {
                let wait = (1.0 - bucket.tokens) / (per_second * factor).max(f64::MIN_POSITIVE);
                return Err(wait.ceil().clamp(1.0, 3_600.0) as u32);
            }
            *left = bucket.tokens - 1.0;
        }
        for (side, _) in sides {
            if let Some(bucket) =
                self.buckets.get_mut(&(subscription.to_ascii_lowercase(), side.into(), class))
            {
                bucket.tokens -= 1.0;
            }
        }
        let [own, global] = left.map(|tokens| tokens.floor() as u64);
        Ok(Remaining { own, global })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_refills() {
        let (budgets, mut buckets) = (Budgets::default(), Buckets::default());
        let mut take = || buckets.take(&budgets, "s", "p", Class::Writes, Instant::now());
        assert_eq!(take(), Ok(Remaining { own: 199, global: 2999 }));
        for _ in 1..200 {
            assert!(take().is_ok());
        }
        assert_eq!(take(), Err(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..20).filter(|_| take().is_ok()).count(), 10);
    }
}
