//! Generated lives of machines: they stop, fail, are deleted and are created again under the same name, whole scale
//! sets are deleted, kubelets fall silent, Azure lags, throttles, refuses and answers 404 for what exists, and the
//! controllers are killed. Whatever happens:
//!
//! * no Node is deleted while its machine exists, and none is tainted as shut down while its machine runs;
//! * finally every machine is an initialised node, and every node has a machine;
//! * the node of a deleted machine is deleted within a minute, with at most two reads of the machine itself.
//!
//! The judgement compares the set of Nodes with the machines that this history itself created and deleted.
//!
//! Azure may answer 404 for an existing machine either in lists of machines or in reads of the machine itself, never in
//! both at a time: such a lie could not be detected at all.
//!
//! A life is determined by its seed. `tests/corpus/machines` contains lives that failed before.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use testkit::{NodePool, World, WorldBuilder};

use crate::property::Trial;

mod act;
mod judge;
mod layout;
mod play;

pub use act::{Act, Lie, Trouble};
use act::{LIES, POWER, TROUBLES};
use layout::{FLEXIBLE, UNIFORM, standalone};
use play::Play;

/// The life of a cluster's machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Life {
    /// The seed of everything random.
    pub seed: u64,
    /// Whether replicas of the controllers elect a leader.
    #[serde(default)]
    pub replicas: bool,
    /// The acts.
    pub acts: Vec<Act>,
}

impl Trial for Life {
    const NAME: &'static str = "machines";
    const LISTS: &'static [&'static str] = &["/acts"];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let replicas = random.random_bool(0.2);
        let mut acts = Vec::new();
        for _ in 0..random.random_range(4..=20) {
            let machine = random.random_range(0..16);
            acts.push(match random.random_range(0..100) {
                0..10 => Act::Power { machine, state: POWER[random.random_range(0..POWER.len())].to_owned() },
                10..25 => Act::Remove { machine },
                25..33 => Act::Return,
                33..38 => Act::Scale { set: random.random_range(0..3), machines: random.random_range(0..=3) },
                38..41 => Act::RemoveSet { set: random.random_range(0..2) },
                41..47 => Act::Silence { machine },
                47..51 => Act::Speak { machine },
                51..54 => Act::DeleteNode { machine },
                54..66 => Act::Trouble {
                    kind: TROUBLES[random.random_range(0..TROUBLES.len())],
                    // Occasionally there is a storm.
                    times: if random.random_bool(0.15) { 30 } else { random.random_range(1..=3) },
                },
                66..74 => Act::Lie {
                    about: LIES[random.random_range(0..LIES.len())],
                    times: random.random_range(1..=5),
                },
                74..77 => Act::Lag { seconds: [5, 20, 60][random.random_range(0..3)] },
                77..82 if replicas && random.random_bool(0.6) => Act::CutOff,
                77..82 => Act::Kill,
                82..84 => Act::Calm,
                _ => Act::Wait { seconds: [1, 3, 10, 30, 70, 200][random.random_range(0..6)] },
            });
        }
        Self { seed, replicas, acts }
    }

    async fn run(&self) -> Vec<String> {
        let mut play = Play::begin(self.world()).await;
        for act in &self.acts {
            play.act(act).await;
        }
        play.end(self.seed).await;
        play.complaints()
    }
}

impl Life {
    fn world(&self) -> WorldBuilder {
        let [(first, prefix), (second, longer)] = UNIFORM;
        let builder = World::builder().seed(self.seed).no_pools();
        let builder = builder.pool(NodePool::new(first, prefix, 2)).pool(NodePool::new(second, longer, 2));
        let builder = builder.pool(NodePool::new(FLEXIBLE.0, FLEXIBLE.1, 2).flexible());
        let builder = standalone().into_iter().fold(builder, WorldBuilder::machine);
        if self.replicas { builder.replicas() } else { builder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_read_as_it_is_printed() {
        for seed in 0..50 {
            let life = Life::of(seed);
            let text = serde_json::to_string(&life).unwrap();
            assert_eq!(serde_json::from_str::<Life>(&text).unwrap(), life);
        }
    }
}
