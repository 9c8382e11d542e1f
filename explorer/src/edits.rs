//! A third party edits our resources: each resource, each item of a list, each member that our controllers wrote, at
//! rest or between a read and a write, once or repeatedly. The possible edits are derived from the documents themselves
//! ([`crate::ledger`] records what the controllers stated), so that nothing is left out. Then:
//!
//! * at the next resync with Azure everything is as before, or an event says why not;
//! * writes end: a repair that is undone repeatedly causes an event, and the controllers back off.
//!
//! A run is determined by its seed; `tests/corpus/edits` contains runs that failed before.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::property::Trial;
use crate::service_option::{self, SERVICE_OPTIONS};

mod case;
mod edit;
mod play;

pub use case::{Edit, Edits, How, When};

const HOWS: [How; 8] = [
    How::Change,
    How::Change,
    How::Change,
    How::Remove,
    How::RemoveItem,
    How::RemoveItem,
    How::RemoveAll,
    How::Delete,
];

impl Trial for Edits {
    const NAME: &'static str = "edits";
    const LISTS: &'static [&'static str] = &["/edits", "/services", "/services/*"];
    const PLAINER: &'static [(&'static str, &'static str)] =
        &[(r#"{"byAddress": false}"#, ""), (r#"{"when": "atRest"}"#, "")];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let services = (0..random.random_range(1..=3))
            .map(|_| {
                let options = (0..random.random_range(0..=2))
                    .map(|_| SERVICE_OPTIONS[random.random_range(0..SERVICE_OPTIONS.len())]);
                service_option::consistent(&options.collect::<Vec<_>>())
            })
            .collect();
        let when = match random.random_range(0..10) {
            0..6 => When::AtRest,
            6..9 => When::BeforeWrite(random.random_range(0..5)),
            _ => When::Always,
        };
        let count = if when == When::Always { 1 } else { random.random_range(1..=4) };
        let edits = (0..count)
            .map(|_| Edit {
                number: random.random_range(0..10_000),
                how: HOWS[random.random_range(0..HOWS.len())],
            })
            .collect();
        Self { seed, by_address: random.random_bool(0.3), services, when, edits }
    }

    async fn run(&self) -> Vec<String> {
        play::run(self).await
    }
}
