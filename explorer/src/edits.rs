//! A third party edits anything of ours: each resource, each item of a list, each member that our controllers wrote, at rest or
//! between a read and a write, once or again and again. What can be edited is read from the documents themselves
//! ([`crate::ledger`] knows what the controllers stated), so that nothing is forgotten. Then:
//!
//! * at the next look at Azure everything is as it was, or an event says why not;
//! * nothing is written for ever: a repair that is undone again and again raises an event, and the controllers back off.
//!
//! A run is decided by its seed; `tests/corpus/edits` has those that failed once.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use crate::property::{Known, Trial};
use crate::shrink;
use crate::wish::{self, WISHES, Wish};

mod edit;
mod play;

/// Services at rest, and what a third party does to what was made for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Edits {
    /// What everything random is drawn from.
    pub seed: u64,
    /// Whether pools hold addresses.
    #[serde(default)]
    pub by_address: bool,
    /// What the Services ask for.
    pub services: Vec<Vec<Wish>>,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub edits: Vec<Edit>,
}

/// When a third party edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// While nothing else happens.
    AtRest,
    /// Just before the controllers' write of this number arrives, when one more Service comes.
    BeforeWrite(u64),
    /// Whenever it is undone.
    Always,
}

/// An edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// Which of all members that the controllers stated, in the order of their resources and places.
    pub number: usize,
    /// What is done there.
    pub how: How,
}

/// What is done to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It gets another value.
    Change,
    /// It is removed.
    Remove,
    /// The item of a list that it lies in is removed.
    RemoveItem,
    /// The list that it lies in is emptied.
    RemoveAll,
    /// Its resource is deleted.
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
