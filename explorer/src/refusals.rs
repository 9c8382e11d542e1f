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

use crate::property::Trial;
use crate::service_option::{self, ServiceOption};

mod case;
mod play;
mod refuser;

pub use case::{Bad, Mistake, Refusal, Refusals};

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

/// The options of good Services: nothing that another may have.
const GOOD: [ServiceOption; 6] = [
    ServiceOption::Internal,
    ServiceOption::Ranges,
    ServiceOption::DenyOthers,
    ServiceOption::Local,
    ServiceOption::NodeAddress,
    ServiceOption::KeptGroup,
];

impl Trial for Refusals {
    const NAME: &'static str = "refusals";
    const LISTS: &'static [&'static str] = &["/bad", "/good", "/good/*"];
    const PLAINER: &'static [(&'static str, &'static str)] =
        &[(r#"{"slow": false}"#, ""), (r#"{"badFirst": false}"#, "")];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let good = (0..random.random_range(1..=3))
            .map(|_| {
                let options =
                    (0..random.random_range(0..=1)).map(|_| GOOD[random.random_range(0..GOOD.len())]);
                service_option::consistent(&options.collect::<Vec<_>>())
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

    fn is_possible(&self) -> bool {
        !self.good.is_empty()
    }

    async fn run(&self) -> Vec<String> {
        play::run(self).await
    }
}
