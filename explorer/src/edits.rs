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
use serde::{Deserialize, Serialize};

use crate::property::{Known, Trial};
use crate::shrink;
use crate::wish::{self, WISHES, Wish};

mod edit;
mod play;

/// Services at rest, and a third party's edits of their resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Edits {
    /// The seed of everything random.
    pub seed: u64,
    /// Whether pools hold addresses.
    #[serde(default)]
    pub by_address: bool,
    /// What the Services ask for.
    pub services: Vec<Vec<Wish>>,
    /// The time of the edits.
    pub when: When,
    /// The edits.
    pub edits: Vec<Edit>,
}

/// The time of a third party's edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// While there is no other activity.
    AtRest,
    /// Just before this numbered write of the controllers arrives, while another Service is created.
    BeforeWrite(u64),
    /// Whenever it is undone.
    Always,
}

/// An edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The number of the member among all that the controllers stated, ordered by resource and path.
    pub number: usize,
    /// The kind of edit.
    pub how: How,
}

/// A kind of edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// The member gets another value.
    Change,
    /// The member is removed.
    Remove,
    /// The list item that contains the member is removed.
    RemoveItem,
    /// The list that contains the member is emptied.
    RemoveAll,
    /// The member's resource is deleted.
    Delete,
}

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

    const KNOWN: &'static [Known] = &[];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let services = (0..random.random_range(1..=3))
            .map(|_| {
                let wishes =
                    (0..random.random_range(0..=2)).map(|_| WISHES[random.random_range(0..WISHES.len())]);
                wish::consistent(&wishes.collect::<Vec<_>>())
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

    fn seed(&self) -> u64 {
        self.seed
    }

    async fn run(&self) -> Vec<String> {
        play::run(self).await
    }

    fn shrink(&self, fails: &dyn Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        least.edits =
            shrink::fewest(&least.edits, |edits| fails(&Self { edits: edits.to_vec(), ..least.clone() }));
        least.services = shrink::fewest(&least.services, |services| {
            fails(&Self { services: services.to_vec(), ..least.clone() })
        });
        for place in 0..least.services.len() {
            let with = |wishes: &[Wish]| {
                let mut trial = least.clone();
                trial.services[place] = wishes.to_vec();
                trial
            };
            let fewest = shrink::fewest(&least.services[place], |fewer| fails(&with(fewer)));
            least = with(&fewest);
        }
        for simpler in
            [Self { by_address: false, ..least.clone() }, Self { when: When::AtRest, ..least.clone() }]
        {
            if simpler != least && fails(&simpler) {
                least = simpler;
            }
        }
        least
    }
}
