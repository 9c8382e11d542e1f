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

use crate::property::Trial;
use crate::service_option::{self, SERVICE_OPTIONS, SERVICES, ServiceOption};

mod case;
mod play;
pub(crate) mod sharing;
pub(crate) mod traffic;

pub use case::{Act, Foreign, Neighbours};
use play::Play;
pub use sharing::Sharing;

const FOREIGN: [Foreign; 4] = [Foreign::Rule, Foreign::LikeOurs, Foreign::Tag, Foreign::Pool];

impl Trial for Neighbours {
    const NAME: &'static str = "neighbours";
    const LISTS: &'static [&'static str] = &["/acts", "/acts/*/apply/options"];
    const PLAINER: &'static [(&'static str, &'static str)] = &[
        (r#"{"byAddress": false}"#, "/sharing"),
        (r#"{"routes": false}"#, "/sharing"),
        (r#"{"balancers": false}"#, "/sharing"),
        (r#"{"hosts": false}"#, "/sharing"),
        (r#"{"name": false}"#, "/sharing"),
        (r#"{"group": false}"#, "/sharing"),
        (r#"{"subnet": false, "routes": false}"#, "/sharing"),
        (r#"{"subnet": false, "routes": false, "network": false}"#, "/sharing"),
        (r#"{"subnet": false, "routes": false, "guard": false}"#, "/sharing"),
        (r#"{"clusters": 2}"#, ""),
        (r#"{"slow": false}"#, ""),
    ];

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
                    let drawn: Vec<ServiceOption> = (0..random.random_range(0..=2))
                        .map(|_| SERVICE_OPTIONS[random.random_range(0..SERVICE_OPTIONS.len())])
                        .collect();
                    Act::Apply { cluster, service, options: service_option::consistent(&drawn) }
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

    async fn run(&self) -> Vec<String> {
        let mut play = Play::begin(self).await;
        for act in &self.acts {
            play.act(act).await;
        }
        play.end().await
    }
}
