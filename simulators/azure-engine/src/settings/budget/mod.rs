//! Request budgets: Resource Manager's own, and those of providers ("Understand how Azure Resource Manager throttles
//! requests").
//!
//! A request draws on one bucket of its principal and on one of the whole subscription, then on each bucket of the
//! provider whose policy matches it. A request that ARM admits has cost its tokens, whatever the provider answers.

mod figures;
pub mod policy;
mod state;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

pub use self::figures::{Budgets, PolicyFigures};
use self::figures::{Figures, Refill};
use self::policy::{Counted, Per, Policy};
pub use self::state::{BudgetScope, BudgetState};
use crate::settings::time_left::distance;

/// ARM's classes of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// GET and HEAD.
    Reads,
    /// PUT, PATCH and POST.
    Writes,
    /// DELETE.
    Deletes,
}

impl Class {
    /// The class of a method.
    pub fn of(method: &str) -> Self {
        match method {
            "GET" | "HEAD" => Self::Reads,
            "DELETE" => Self::Deletes,
            _ => Self::Writes,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Deletes => "deletes",
        }
    }

    /// The headers that show what is left: for the principal, and for the whole subscription. Requests about no
    /// subscription count for the tenant.
    pub fn headers(self, tenant: bool) -> [String; 2] {
        let (scope, class) = (if tenant { "tenant" } else { "subscription" }, self.as_str());
        ["", "global-"].map(|whose| format!("x-ms-ratelimit-remaining-{scope}-{whose}{class}"))
    }

    fn limits(self, budgets: &Budgets) -> (f64, f64) {
        match self {
            Self::Reads => (budgets.reads, budgets.reads_per_second),
            Self::Writes => (budgets.writes, budgets.writes_per_second),
            Self::Deletes => (budgets.deletes, budgets.deletes_per_second),
        }
    }
}

/// The key of a bucket. Ordered, so that a list of all buckets is stable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// `reads` and the like, or `{namespace}/{policy}`.
    pub policy: String,
    /// The subscription; empty for requests about none.
    pub subscription: String,
    /// The region.
    pub region: String,
    /// The scope of the counted requests.
    pub subject: BudgetScope,
}

/// What is left of one budget.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    tokens: f64,
    filled: Instant,
    figures: Figures,
    /// Requests since `since`, refused ones included.
    measured: u64,
    since: Instant,
    refused: u64,
}

impl Bucket {
    fn new(figures: Figures, now: Instant) -> Self {
        Self { tokens: figures.size, filled: now, figures, measured: 0, since: now, refused: 0 }
    }

    fn refill(&mut self, now: Instant) {
        let Figures { size, refill } = self.figures;
        let passed = now.saturating_duration_since(self.filled);
        match refill {
            Refill::Steady(per_second) => {
                self.tokens = (self.tokens + passed.as_secs_f64() * per_second).min(size);
                self.filled = now;
            }
            Refill::Window(window) if passed >= window => {
                self.tokens = size;
                self.filled = now;
            }
            Refill::Window(_) => {}
        }
        if now.saturating_duration_since(self.since) >= refill.window() {
            self.since = now;
            self.measured = 0;
        }
    }

    /// Seconds until a token is available, at least one.
    fn wait(&self, now: Instant) -> u32 {
        let seconds = match self.figures.refill {
            Refill::Steady(per_second) => (1.0 - self.tokens) / per_second.max(f64::MIN_POSITIVE),
            Refill::Window(window) => {
                window.saturating_sub(now.saturating_duration_since(self.filled)).as_secs_f64()
            }
        };
        seconds.ceil().clamp(1.0, 3_600.0) as u32
    }
}

/// A bucket as it is saved; ages are in nanoseconds.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedBucket {
    key: Key,
    figures: Figures,
    tokens: f64,
    filled_ago: u64,
    measured: u64,
    measured_ago: u64,
    refused: u64,
}

/// What is left after a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remaining {
    /// The principal's.
    pub own: u64,
    /// The subscription's.
    pub global: u64,
    /// Whether it is about no subscription.
    pub tenant: bool,
    /// Of the policies that show it in a header: `{namespace}/{policy}` and what is left.
    pub policies: Vec<(String, u64)>,
}

/// A budget that is used up.
#[derive(Debug, Clone)]
pub struct Exhausted {
    /// The values for headers.
    pub remaining: Remaining,
    /// Seconds until a request is admitted.
    pub wait: u32,
    /// The provider's policy; `None` for ARM's own budget.
    pub policy: Option<&'static Policy>,
    /// Tokens in a full bucket.
    pub size: f64,
    /// Requests in the present window, this one included.
    pub measured: u64,
    /// How long ago the window began.
    pub window_age: std::time::Duration,
}

/// The origin of a request: subscription, principal, region.
pub struct Requester<'a> {
    /// The subscription; empty for requests about none.
    pub subscription: &'a str,
    /// The principal that asks.
    pub principal: &'a str,
    /// The region that answers.
    pub region: &'a str,
    /// The request, as providers' policies see it.
    pub counted: &'a Counted<'a>,
    /// The namespace, with its policies.
    pub provider: Option<(&'static str, Vec<&'static Policy>)>,
}

/// Number of buckets above which full ones are dropped. That changes no answer, for a new bucket is full. Thousands of
/// resources with budgets of their own stay below it.
const MAX_BUCKETS: usize = 20_000;

/// All buckets.
#[derive(Default)]
pub struct Buckets {
    buckets: BTreeMap<Key, Bucket>,
    /// How many buckets were left by the last sweep.
    kept: usize,
}

impl Buckets {
    /// Takes a token from every bucket that the request draws on.
    pub fn take(
        &mut self,
        budgets: &Budgets,
        requester: &Requester<'_>,
        now: Instant,
    ) -> Result<Remaining, Exhausted> {
        let drawn = drawn(budgets, requester);
        let mut left = Vec::with_capacity(drawn.len());
        let arm = drawn.iter().filter(|(_, _, policy)| policy.is_none()).count();
        let (own, providers) = drawn.split_at(arm);
        for side in [own, providers] {
            self.take_side(side, now, &mut left).map_err(|exhausted| Exhausted {
                remaining: remaining(requester, &drawn, &left),
                ..exhausted
            })?;
        }
        // A sweep reads all buckets: it waits until as many new ones have come as the last sweep left.
        if self.buckets.len() > MAX_BUCKETS.max(self.kept * 2) {
            self.buckets.retain(|_, bucket| {
                bucket.refill(now);
                bucket.tokens < bucket.figures.size
            });
            self.kept = self.buckets.len();
        }
        Ok(remaining(requester, &drawn, &left))
    }

    /// Takes a token from each of the buckets, or from none if any is empty; adds what is left in each.
    fn take_side(&mut self, side: &[Drawn], now: Instant, left: &mut Vec<u64>) -> Result<(), Exhausted> {
        let mut exhausted = None;
        let first = left.len();
        for (key, figures, policy) in side {
            let bucket = self.buckets.entry(key.clone()).or_insert_with(|| Bucket::new(*figures, now));
            bucket.refill(now);
            bucket.measured += 1;
            left.push(bucket.tokens.floor() as u64);
            if bucket.tokens < 1.0 && exhausted.is_none() {
                bucket.refused += 1;
                exhausted = Some(Exhausted {
                    remaining: Remaining::default(),
                    wait: bucket.wait(now),
                    policy: *policy,
                    size: figures.size,
                    measured: bucket.measured,
                    window_age: now.saturating_duration_since(bucket.since),
                });
            }
        }
        if let Some(exhausted) = exhausted {
            return Err(exhausted);
        }
        for (key, ..) in side {
            if let Some(bucket) = self.buckets.get_mut(key) {
                bucket.tokens -= 1.0;
            }
        }
        left.iter_mut().skip(first).for_each(|left| *left -= 1);
        Ok(())
    }

    /// What would be left after a request if there were no other requests: shown where nothing is counted.
    pub fn full(budgets: &Budgets, requester: &Requester<'_>) -> Remaining {
        let drawn = drawn(budgets, requester);
        let left: Vec<u64> = drawn.iter().map(|(_, figures, _)| (figures.size - 1.0) as u64).collect();
        remaining(requester, &drawn, &left)
    }

    /// The present state of every used bucket.
    pub fn states(&self, now: Instant) -> Vec<BudgetState> {
        self.buckets
            .iter()
            .map(|(key, bucket)| {
                let mut bucket = *bucket;
                bucket.refill(now);
                BudgetState {
                    policy: key.policy.clone(),
                    subscription: key.subscription.clone(),
                    region: key.region.clone(),
                    scope: key.subject.clone(),
                    tokens: bucket.tokens,
                    size: bucket.figures.size,
                    refill_per_second: match bucket.figures.refill {
                        Refill::Steady(per_second) => per_second,
                        Refill::Window(window) => bucket.figures.size / window.as_secs_f64().max(1.0),
                    },
                    window_seconds: match bucket.figures.refill {
                        Refill::Steady(_) => None,
                        Refill::Window(window) => Some(window.as_secs()),
                    },
                    refused: bucket.refused,
                }
            })
            .collect()
    }

    /// Their saved form.
    pub fn save(&self, now: Instant) -> Vec<SavedBucket> {
        self.buckets
            .iter()
            .map(|(key, bucket)| SavedBucket {
                key: key.clone(),
                figures: bucket.figures,
                tokens: bucket.tokens,
                filled_ago: distance(bucket.filled, now),
                measured: bucket.measured,
                measured_ago: distance(bucket.since, now),
                refused: bucket.refused,
            })
            .collect()
    }

    /// Restores the saved form.
    pub fn restore(&mut self, saved: Vec<SavedBucket>, now: Instant) {
        let before = |age| now.checked_sub(std::time::Duration::from_nanos(age)).unwrap_or(now);
        let bucket = |saved: SavedBucket| {
            let bucket = Bucket {
                tokens: saved.tokens,
                filled: before(saved.filled_ago),
                figures: saved.figures,
                measured: saved.measured,
                since: before(saved.measured_ago),
                refused: saved.refused,
            };
            (saved.key, bucket)
        };
        self.buckets = saved.into_iter().map(bucket).collect();
    }

    /// Fills them all.
    pub fn clear(&mut self) {
        self.buckets.clear();
    }
}

type Drawn = (Key, Figures, Option<&'static Policy>);

/// The buckets that a request draws on: ARM's two first.
fn drawn(budgets: &Budgets, requester: &Requester<'_>) -> Vec<Drawn> {
    let class = Class::of(requester.counted.method);
    let (size, per_second) = class.limits(budgets);
    let key = |policy: String, subject| Key {
        policy,
        subscription: requester.subscription.to_ascii_lowercase(),
        region: requester.region.to_owned(),
        subject,
    };
    let side = |subject, factor: f64| {
        let figures = Figures { size: size * factor, refill: Refill::Steady(per_second * factor) };
        (key(class.as_str().to_owned(), subject), figures, None)
    };
    let mut drawn = vec![
        side(BudgetScope::Principal(requester.principal.to_owned()), 1.0),
        side(BudgetScope::Subscription, budgets.global_factor),
    ];
    if let Some((namespace, policies)) = requester.provider.as_ref().filter(|_| budgets.providers) {
        for policy in policies.iter().copied().filter(|policy| policy.fits(requester.counted)) {
            let name = policy.full_name(namespace);
            let Some(figures) = policy.figures(budgets, &name) else { continue };
            let subject = match policy.per {
                Per::Subscription => BudgetScope::Subscription,
                Per::Resource => BudgetScope::Resource(requester.counted.resource.to_ascii_lowercase()),
            };
            drawn.push((key(name, subject), figures, Some(policy)));
        }
    }
    drawn
}

fn remaining(requester: &Requester<'_>, drawn: &[Drawn], left: &[u64]) -> Remaining {
    let policies = drawn
        .iter()
        .zip(left)
        .filter(|((_, _, policy), _)| {
            policy.is_some_and(|policy| policy.wording == policy::Wording::Provider)
        })
        .map(|((key, ..), left)| (key.policy.clone(), *left))
        .collect();
    let at = |index: usize| left.get(index).copied().unwrap_or_default();
    Remaining { own: at(0), global: at(1), tenant: requester.subscription.is_empty(), policies }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::policy::Wording;
    use super::*;

    static POLICIES: [Policy; 2] = [
        Policy {
            name: "PutThingResource",
            per: Per::Resource,
            on: &[("PUT", "N/things")],
            size: 12,
            refill: 4,
            window: Duration::from_secs(60),
            steady: true,
            wording: Wording::Provider,
        },
        Policy {
            name: "Writes",
            per: Per::Subscription,
            on: &[("PUT", "N/*")],
            size: 20,
            refill: 20,
            window: Duration::from_secs(300),
            steady: false,
            wording: Wording::Gateway,
        },
    ];

    fn requester<'a>(counted: &'a Counted<'a>) -> Requester<'a> {
        Requester {
            subscription: "s",
            principal: "p",
            region: "r",
            counted,
            provider: Some(("N", POLICIES.iter().collect())),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_refills() {
        let (budgets, mut buckets) = (Budgets::default(), Buckets::default());
        let put = Counted { method: "PUT", resource_type: "M/things", list: false, resource: "x" };
        let mut take = || buckets.take(&budgets, &requester(&put), Instant::now());
        assert_eq!(take().unwrap(), Remaining { own: 199, global: 2999, ..Remaining::default() });
        for _ in 1..200 {
            assert!(take().is_ok());
        }
        assert_eq!(take().unwrap_err().wait, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..20).filter(|_| take().is_ok()).count(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn providers_count_by_resource_and_by_subscription() {
        let (mut budgets, mut buckets) = (Budgets::default(), Buckets::default());
        let mut put = |budgets: &Budgets, name: &str| {
            let put = Counted { method: "PUT", resource_type: "N/things", list: false, resource: name };
            buckets.take(budgets, &requester(&put), Instant::now())
        };
        assert_eq!(put(&budgets, "a").unwrap().policies, [("N/PutThingResource".to_owned(), 11)]);
        assert_eq!((0..20).filter(|_| put(&budgets, "A").is_ok()).count(), 11);
        // Steady: one token every 15 seconds. The window of the subscription has 8 left.
        let refused = put(&budgets, "a").unwrap_err();
        assert_eq!((refused.policy.unwrap().name, refused.wait), ("PutThingResource", 15));
        assert_eq!((0..20).filter(|_| put(&budgets, "b").is_ok()).count(), 8);
        tokio::time::advance(Duration::from_secs(200)).await;
        let refused = put(&budgets, "c").unwrap_err();
        assert_eq!((refused.policy.unwrap().name, refused.wait), ("Writes", 100));
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(put(&budgets, "c").is_ok());
        // Each is overridden, or turned off, by name.
        budgets.policies.insert("N/Writes".into(), None);
        assert_eq!((0..40).filter(|n| put(&budgets, &n.to_string()).is_ok()).count(), 40);
    }
}
