//! Two or three clusters in one Azure, each with its own Kubernetes and controllers. They share what clusters usually
//! share (group, network, subnet, security group, host names, names of Services, sometimes their own name), and a third
//! party edits. Services are created, changed and deleted, nodes come and go, controllers are killed, clusters are torn
//! down. Whatever happens:
//!
//! * no cluster's controllers change or remove what another cluster's or a third party wrote ([`crate::ledger`]), and
//!   they add no machine of another cluster to their pools;
//! * a Service that is not changed stays reachable, at the nodes of its own cluster;
//! * every Service finally has an address, or an event says why not; a Service that asks for nothing contested is
//!   served;
//! * restarted controllers write nothing;
//! * after a cluster is torn down nothing is left that its controllers wrote.
//!
//! A run is determined by its seed; `tests/corpus/neighbours` contains runs that failed before.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use crate::property::{Known, Trial};
use crate::shrink;
use crate::wish::{self, SERVICES, WISHES, Wish};

mod play;
pub(crate) mod sharing;
pub(crate) mod traffic;

use play::Play;
pub use sharing::Sharing;

/// Clusters that share an Azure, and the acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Neighbours {
    /// The seed of everything random.
    pub seed: u64,
    /// The number of clusters.
    pub clusters: usize,
    /// The shared resources.
    pub sharing: Sharing,
    /// Whether Azure has typical latencies.
    #[serde(default)]
    pub slow: bool,
    /// The acts.
    pub acts: Vec<Act>,
}

/// An act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// A Service is created, or changed.
    Apply {
        /// Its cluster.
        cluster: usize,
        /// The Service.
        service: usize,
        /// What it asks for.
        wishes: Vec<Wish>,
    },
    /// A Service is deleted.
    Delete {
        /// Its cluster.
        cluster: usize,
        /// The Service.
        service: usize,
    },
    /// A scale set is scaled.
    Scale {
        /// Its cluster.
        cluster: usize,
        /// Its new number of machines.
        nodes: u64,
    },
    /// Controllers are killed and restarted.
    Kill {
        /// Their cluster.
        cluster: usize,
    },
    /// All Services of a cluster are deleted.
    TearDown {
        /// The cluster.
        cluster: usize,
    },
    /// A third party adds a resource or part of its own.
    Foreign {
        /// The addition.
        what: Foreign,
        /// The suffix of its name; also selects its position.
        number: u64,
    },
    /// Time passes.
    Wait {
        /// The duration.
        seconds: u64,
    },
    /// Nothing happens until everything has come to rest.
    Rest,
}

/// An addition by a third party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Foreign {
    /// A rule of a security group.
    Rule,
    /// A rule whose name begins like those of the controllers.
    LikeOurs,
    /// A tag of a load balancer, a public IP or a security group.
    Tag,
    /// A pool of a load balancer.
    Pool,
}

const FOREIGN: [Foreign; 4] = [Foreign::Rule, Foreign::LikeOurs, Foreign::Tag, Foreign::Pool];

impl Trial for Neighbours {
    const NAME: &'static str = "neighbours";

    const KNOWN: &'static [Known] = &[];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let clusters = if random.random_bool(0.2) { 3 } else { 2 };
        let sharing = Sharing::draw(&mut random);
        let mut acts = Vec::new();
        for _ in 0..random.random_range(3..=9) {
            let cluster = random.random_range(0..clusters);
            let service = random.random_range(0..SERVICES.len());
            acts.push(match random.random_range(0..100) {
                0..52 => {
                    let drawn: Vec<Wish> = (0..random.random_range(0..=2))
                        .map(|_| WISHES[random.random_range(0..WISHES.len())])
                        .collect();
                    Act::Apply { cluster, service, wishes: wish::consistent(&drawn) }
                }
                52..64 => Act::Delete { cluster, service },
                64..70 => Act::Scale { cluster, nodes: random.random_range(1..=2) },
                70..76 => Act::Kill { cluster },
                76..80 => Act::TearDown { cluster },
                80..90 => Act::Foreign {
                    what: FOREIGN[random.random_range(0..FOREIGN.len())],
                    number: random.random_range(0..50),
                },
                90..94 => Act::Wait { seconds: [1, 3, 20][random.random_range(0..3)] },
                _ => Act::Rest,
            });
        }
        Self { seed, clusters, sharing, slow: random.random_bool(0.2), acts }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    async fn run(&self) -> Vec<String> {
        let mut play = Play::begin(self).await;
        for act in &self.acts {
            play.act(act).await;
        }
        play.end().await
    }

    fn shrink(&self, fails: &dyn Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        let acts = shrink::fewest(&least.acts, |acts| fails(&Self { acts: acts.to_vec(), ..least.clone() }));
        least.acts = acts;
        for place in 0..least.acts.len() {
            let Act::Apply { cluster, service, wishes } = least.acts[place].clone() else { continue };
            let with = |wishes: &[Wish]| {
                let mut trial = least.clone();
                trial.acts[place] = Act::Apply { cluster, service, wishes: wishes.to_vec() };
                trial
            };
            let fewest = shrink::fewest(&wishes, |fewer| fails(&with(fewer)));
            least = with(&fewest);
        }
        let simpler = least.sharing.simpler().into_iter().map(|sharing| Self { sharing, ..least.clone() });
        let fewer = [Self { clusters: 2, ..least.clone() }, Self { slow: false, ..least.clone() }];
        for trial in simpler.chain(fewer).collect::<Vec<_>>() {
            let merged = Self {
                sharing: least.sharing.or_simpler(&trial.sharing),
                clusters: trial.clusters.min(least.clusters),
                slow: trial.slow && least.slow,
                ..least.clone()
            };
            if merged != least && fails(&merged) {
                least = merged;
            }
        }
        least
    }
}
