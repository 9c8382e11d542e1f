//! Good Services next to bad ones: Azure refuses the bad ones in every possible way, in writes of their own or in
//! writes that they share with the good ones, and some cannot be served at all. Then:
//!
//! * the good ones are done in the time that they take alone, plus one batch;
//! * there are no more writes for them than the bad ones cause, and refused writes are not retried without end;
//! * every bad one has an event with the reason.
//!
//! A run is determined by its seed; `tests/corpus/refusals` contains runs that failed before.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use crate::property::{Known, Trial};
use crate::shrink;
use crate::wish::{self, Wish};

mod play;
mod refuser;

/// Good and bad Services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Refusals {
    /// The seed of everything random.
    pub seed: u64,
    /// Whether Azure has typical latencies.
    #[serde(default)]
    pub slow: bool,
    /// The intents of the good ones.
    pub good: Vec<Vec<Wish>>,
    /// Why the bad ones are bad.
    pub bad: Vec<Bad>,
    /// Whether the bad ones are created first.
    #[serde(default)]
    pub bad_first: bool,
}

/// Why a Service is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Bad {
    /// Every write of its public IP is refused.
    Address(Refusal),
    /// Every write of the load balancer with its frontend is refused.
    Balancer {
        /// The refusal.
        refusal: Refusal,
        /// Whether the error text names it.
        named: bool,
    },
    /// Every write of the security group with its address is refused.
    Guard {
        /// The refusal.
        refusal: Refusal,
        /// Whether the error text names it.
        named: bool,
    },
    /// It asks for something impossible.
    Mistake(Mistake),
}

/// A refusal by Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// With this status.
    Status(u16),
    /// 403 that names the permission on a linked resource.
    Linked,
    /// Its operation fails later.
    Later,
}

/// Impossible requests of Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mistake {
    /// An unknown service tag.
    UnknownTag,
    /// A missing public IP.
    MissingAddress,
    /// A missing subnet.
    MissingSubnet,
    /// A private address outside of the subnet.
    OutsideOfSubnet,
    /// An invalid value.
    BadValue,
    /// A DNS label that Azure does not allow.
    BadLabel,
}

/// Refusals of its own writes, and of shared ones. Throttling and lost races concern no single Service, so no shared
/// write is refused for one Service with 412 or 429.
const OWN: [Refusal; 11] = [
    Refusal::Status(400),
    Refusal::Status(403),
    Refusal::Linked,
    Refusal::Status(404),
    Refusal::Status(409),
    Refusal::Status(412),
    Refusal::Status(429),
    Refusal::Status(500),
    Refusal::Status(503),
    Refusal::Later,
    Refusal::Later,
];

const SHARED: [Refusal; 7] = [
    Refusal::Status(400),
    Refusal::Status(403),
    Refusal::Linked,
    Refusal::Status(404),
    Refusal::Status(409),
    Refusal::Status(500),
    Refusal::Later,
];

const MISTAKES: [Mistake; 6] = [
    Mistake::UnknownTag,
    Mistake::MissingAddress,
    Mistake::MissingSubnet,
    Mistake::OutsideOfSubnet,
    Mistake::BadValue,
    Mistake::BadLabel,
];

/// The wishes of good Services: nothing that another may have.
const GOOD: [Wish; 6] =
    [Wish::Internal, Wish::Ranges, Wish::DenyOthers, Wish::Local, Wish::NodeAddress, Wish::KeptGroup];

impl Trial for Refusals {
    const NAME: &'static str = "refusals";

    const KNOWN: &'static [Known] = &[];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let good = (0..random.random_range(1..=3))
            .map(|_| {
                let wishes =
                    (0..random.random_range(0..=1)).map(|_| GOOD[random.random_range(0..GOOD.len())]);
                wish::consistent(&wishes.collect::<Vec<_>>())
            })
            .collect();
        let bad = (0..random.random_range(1..=2))
            .map(|_| {
                let named = random.random();
                match random.random_range(0..10) {
                    0..3 => Bad::Address(OWN[random.random_range(0..OWN.len())]),
                    3..5 => Bad::Balancer { refusal: SHARED[random.random_range(0..SHARED.len())], named },
                    5..7 => Bad::Guard { refusal: SHARED[random.random_range(0..SHARED.len())], named },
                    _ => Bad::Mistake(MISTAKES[random.random_range(0..MISTAKES.len())]),
                }
            })
            .collect();
        Self { seed, slow: random.random_bool(0.5), good, bad, bad_first: random.random() }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    async fn run(&self) -> Vec<String> {
        play::run(self).await
    }

    fn shrink(&self, fails: &dyn Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        least.bad = shrink::fewest(&least.bad, |bad| fails(&Self { bad: bad.to_vec(), ..least.clone() }));
        least.good = shrink::fewest(&least.good, |good| {
            !good.is_empty() && fails(&Self { good: good.to_vec(), ..least.clone() })
        });
        for place in 0..least.good.len() {
            let with = |wishes: &[Wish]| {
                let mut trial = least.clone();
                trial.good[place] = wishes.to_vec();
                trial
            };
            let fewest = shrink::fewest(&least.good[place], |fewer| fails(&with(fewer)));
            least = with(&fewest);
        }
        for simpler in [Self { slow: false, ..least.clone() }, Self { bad_first: false, ..least.clone() }] {
            if simpler != least && fails(&simpler) {
                least = simpler;
            }
        }
        least
    }
}
