//! Generated histories: Services are created, changed and deleted, nodes come and go, Azure throttles, refuses and
//! loses answers, others write between a read and a write, and the controllers are killed. Whatever happens, it ends
//! well:
//!
//! * every Service finally has what its last manifest asks for, or an event says why not, and a Service that cannot be
//!   served harms no other (convergence);
//! * a Service that cannot be served does not delay others, including those that are created meanwhile (no starvation);
//! * restarted controllers then write nothing (idempotence);
//! * foreign resources are unchanged, including what was written between a read and a write, and nothing of ours is
//!   left after all Services are deleted.
//!
//! A history is determined by its seed. A failure is shrunk to the fewest acts and features, and printed as JSON for
//! `tests/corpus/histories`: former failures are tested again, even if the meaning of seeds changes.

use std::collections::BTreeMap;

use azure_simulator::{LatencyProfile, typical_latency};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use testkit::World;

use crate::features::{self, FACTORS, Row};
use crate::property::Trial;
use crate::stage::{InitialResource, Stage};
use crate::trial;

mod act;
mod cluster;
mod inventory;
mod marks;
mod play;
mod witness;

use act::{AFFLICTIONS, KINDS, MISTAKES, NODE_LABELS, SHARED, TROUBLES};
pub use act::{Act, Mistake, NodeLabel, Shared, Trouble};
use cluster::{ASKED, CLUSTERS, ENTRIES};
pub use cluster::{Cluster, Entries};
use inventory::Inventory;
use play::{Play, THEIR_ADDRESSES};

/// The maximum number of Services of a history.
const MAX_SERVICES: usize = 6;

/// The share of factors with a value other than the default.
const UNUSUAL: f64 = 0.15;

/// Factors that changes keep, or draw evenly: with only defaults, hardly any Service would keep two families.
const SELDOM_CHANGED: [&str; 2] = ["node-ports", "families"];

/// How often a change keeps the value.
const STAYS: f64 = 0.7;

/// A history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct History {
    /// The seed of everything random.
    pub seed: u64,
    /// Whether Azure has typical latencies.
    #[serde(default)]
    pub typical_latency: bool,
    /// Whether replicas of the controllers elect a leader.
    #[serde(default)]
    pub replicas: bool,
    /// The cluster of the history.
    #[serde(default)]
    pub cluster: Cluster,
    /// The acts.
    pub acts: Vec<Act>,
}

impl Trial for History {
    const NAME: &'static str = "services";

    const FOLDER: &'static str = "histories";
    const LISTS: &'static [&'static str] = &["/acts", "/acts/*/apply/row"];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let cluster = CLUSTERS[random.random_range(0..CLUSTERS.len())];
        let replicas = random.random_bool(0.3);
        let services = random.random_range(1..=MAX_SERVICES);
        let several = cluster == Cluster::Several;
        let shared =
            |random: &mut SmallRng| SHARED[random.random_range(0..if several { SHARED.len() } else { 3 })];
        let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
        let mut acts = Vec::new();
        if several && random.random() {
            acts.push(Act::Configure(ENTRIES[random.random_range(0..ENTRIES.len())]));
        }
        for _ in 0..random.random_range(4..=20) {
            let service = random.random_range(0..services);
            acts.push(match random.random_range(0..if several { 154 } else { 122 }) {
                0..45 => {
                    let row = row(&mut random, rows.get(&service), cluster);
                    rows.insert(service, row.clone());
                    Act::Apply { service, row }
                }
                45..53 => {
                    rows.remove(&service);
                    Act::Delete { service }
                }
                53..58 => Act::Scale(random.random_range(1..=5)),
                58..78 => Act::Trouble {
                    kind: KINDS[random.random_range(0..KINDS.len())].to_owned(),
                    method: ["PUT", "PUT", "GET", "DELETE"][random.random_range(0..4)].to_owned(),
                    what: TROUBLES[random.random_range(0..TROUBLES.len())],
                    // Occasionally there is a storm.
                    times: if random.random_bool(0.15) { 15 } else { random.random_range(1..=3) },
                },
                78..80 => {
                    Act::ForeignTag { shared: shared(&mut random), value: random.random_range(0..1000) }
                }
                80 => Act::ForeignAddressTag(random.random_range(0..1000)),
                81..83 => {
                    Act::ForeignPart { shared: shared(&mut random), number: random.random_range(0..100) }
                }
                83 => {
                    let balancers = SHARED.into_iter().filter(|one| *one != Shared::SecurityGroup);
                    let balancers: Vec<Shared> = balancers.take(if several { 4 } else { 2 }).collect();
                    Act::ForeignFrontend {
                        shared: balancers[random.random_range(0..balancers.len())],
                        number: random.random_range(0..THEIR_ADDRESSES),
                    }
                }
                84..86 => Act::Spoil { shared: shared(&mut random) },
                86..90 if replicas && random.random_bool(0.7) => Act::CutOff,
                86..90 => Act::Kill,
                90..100 => Act::Wait([1, 3, 10, 60, 400][random.random_range(0..5)]),
                100..103 => {
                    let label = NODE_LABELS[random.random_range(0..2)];
                    Act::Node { number: random.random_range(0..8), label }
                }
                103..106 => {
                    Act::Machine { number: random.random_range(0..3), comes: random.random_bool(0.6) }
                }
                106..110 => Act::Pods { service, nodes: random.random_range(1..=2) },
                110..114 => {
                    let what = AFFLICTIONS[random.random_range(0..AFFLICTIONS.len())];
                    Act::Afflict { service, what }
                }
                114..116 => Act::ForeignInterfaceTag {
                    number: random.random_range(0..8),
                    value: random.random_range(0..1000),
                },
                116..118 => Act::ForeignMember {
                    number: random.random_range(0..8),
                    pool: random.random_range(0..100),
                },
                118..122 => Act::Mistake { service, what: MISTAKES[random.random_range(0..MISTAKES.len())] },
                122..128 => {
                    Act::Ask { service, names: ASKED[random.random_range(0..ASKED.len())].to_owned() }
                }
                128..135 => Act::Label { service, on: random.random_bool(0.7) },
                135..138 => Act::LabelNamespace(random.random()),
                138..148 => Act::Configure(ENTRIES[random.random_range(0..ENTRIES.len())]),
                _ => {
                    let label = NODE_LABELS[random.random_range(2..4)];
                    Act::Node { number: random.random_range(0..8), label }
                }
            });
        }
        Self { seed, typical_latency: random.random_bool(0.3), replicas, cluster, acts }
    }

    /// Whether Kubernetes allows all of this, and its result is defined.
    fn is_possible(&self) -> bool {
        let is_said = |row: &Row| self.cluster != Cluster::Several || row[place_of("balancer-names")] == 0;
        let mut rows: BTreeMap<usize, &Row> = BTreeMap::new();
        self.acts.iter().all(|act| match act {
            Act::Apply { service, row } => {
                is_said(row)
                    && features::is_possible(row)
                    && !features::is_known(row)
                    && rows.insert(*service, row).is_none_or(|before| may_become(before, row))
            }
            Act::Delete { service } => {
                rows.remove(service);
                true
            }
            _ => true,
        })
    }

    async fn run(&self) -> Vec<String> {
        let theirs = play::addresses_of_others(self.cluster);
        let resources: Vec<InitialResource> =
            (0..MAX_SERVICES).flat_map(Self::kept_for).chain(theirs).collect();
        let latency = if self.typical_latency { typical_latency() } else { LatencyProfile::instant() };
        let builder = self.cluster.set_up(World::builder().seed(self.seed).latency(latency));
        let builder = if self.replicas { builder.replicas() } else { builder };
        let mut stage = Stage::set_in(builder, &resources).await;
        let before = Inventory::of(&stage.world);
        let mut play = Play::of(self.cluster);
        for act in &self.acts {
            play.act(&mut stage, act).await;
        }
        stage.world.azure.clear_faults();
        play.calm(&stage.world);
        let mut complaints = play.starved(&stage).await;
        stage.world.azure.clear_faults();
        play.mend_mistakes(&stage);
        stage.world.come_to_rest().await;
        complaints.extend(play.wrong_places(&stage.world));
        let mut expect = play.expect.clone();
        trial::fill_in(&stage, &mut expect);
        complaints.extend(trial::judge(&stage, &expect));
        complaints.extend(findings(&stage.world).await);
        complaints.extend(play.marks.lost(&stage.world));

        stage.world.azure.clear_journal();
        stage.world.restart().await;
        stage.world.come_to_rest().await;
        // Refused writes are retried.
        let again = stage
            .world
            .changes()
            .into_iter()
            .filter(|change| change.ends_with(" 200") || change.ends_with(" 201"));
        let again: Vec<String> = again.collect();
        if !again.is_empty() {
            complaints.push(format!("controllers that start anew write: {again:#?}"));
        }

        for key in expect.keys() {
            stage.world.delete(key);
        }
        stage.world.come_to_rest().await;
        for key in expect.keys().filter(|key| !stage.world.service(key).is_null()) {
            complaints.push(format!("{key} cannot be deleted: {:#?}", stage.world.events(key)));
        }
        let when_gone = |text: String| format!("when all are gone: {text}");
        complaints.extend(findings(&stage.world).await.into_iter().map(when_gone));
        complaints.extend(play.marks.lost(&stage.world).into_iter().map(when_gone));
        complaints
            .extend(before.differences(&stage.world, &play.shared_with_others).into_iter().map(when_gone));
        complaints
    }
}

impl History {
    /// The resources in Azure that Service `number` may request.
    fn kept_for(number: usize) -> Vec<InitialResource> {
        let row = features::with_features(["public-ip=named", "prefix=yes"]);
        features::initial_resources(&row.unwrap_or_else(|_| features::usual()), number)
    }
}

async fn findings(world: &World) -> Vec<String> {
    world.check().await.iter().map(ToString::to_string).collect()
}

/// A row that a Service may have, or may change to from another.
fn row(random: &mut SmallRng, before: Option<&Row>, cluster: Cluster) -> Row {
    loop {
        let mut row = features::usual();
        for (place, factor) in FACTORS.iter().enumerate() {
            if random.random_bool(UNUSUAL) {
                row[place] = random.random_range(0..factor.values.len());
            }
        }
        if cluster == Cluster::Several {
            // Other acts set the load balancers that a Service names.
            set(&mut row, "balancer-names", 0);
        }
        // Its reserved resources are in the cluster's group.
        if features::value(&row, "public-ip") != "own" {
            set(&mut row, "resource-group", 0);
        }
        for (before, factor) in before.into_iter().flat_map(|row| SELDOM_CHANGED.map(|factor| (row, factor)))
        {
            let place = place_of(factor);
            row[place] = if random.random_bool(STAYS) {
                before[place]
            } else {
                random.random_range(0..FACTORS[place].values.len())
            };
        }
        let mistakes = row.iter().enumerate().filter(|(f, v)| features::is_mistake(*f, **v)).count();
        let may_be = mistakes <= 1 && features::is_possible(&row) && !features::is_known(&row);
        if may_be && before.is_none_or(|before| may_become(before, &row)) {
            return row;
        }
    }
}

/// Whether Kubernetes allows this change of a Service: its first family stays, and so do allocated node ports and, as
/// long as it is used, the health check port.
fn may_become(before: &Row, after: &Row) -> bool {
    let value = features::value;
    let begins_with_v6 = |row| ["IPv6", "dual-IPv6-first"].contains(&value(row, "families"));
    let gives_up_ports = value(before, "node-ports") != "no" && value(after, "node-ports") == "no";
    let is_asked = |row| value(row, "policy") == "Local";
    let was_given = value(before, "health-check-port") == "none";
    let chooses_another =
        is_asked(before) && is_asked(after) && was_given && value(after, "health-check-port") != "none";
    begins_with_v6(before) == begins_with_v6(after) && !gives_up_ports && !chooses_another
}

fn place_of(factor: &str) -> usize {
    FACTORS.iter().position(|known| known.name == factor).unwrap_or_default()
}

fn set(row: &mut Row, factor: &str, value: usize) {
    row[place_of(factor)] = value;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::play::replacement;
    use super::*;
    use crate::property;

    #[test]
    fn a_seed_decides_a_history() {
        assert_eq!(History::of(7).acts, History::of(7).acts);
        assert_ne!(History::of(7).acts, History::of(8).acts);
    }

    #[test]
    fn a_history_is_read_back_from_what_is_printed() {
        for seed in 0..300 {
            let history = History::of(seed);
            assert_eq!(property::read::<History>(&property::write(&history)).unwrap(), history);
        }
    }

    #[test]
    fn an_act_or_a_feature_that_does_not_exist_is_named() {
        let problem = |act: &str| {
            let text = format!("# about\n{{\"seed\": 7,\n\"acts\": [{{\"wait\": 3}}, {act}]}}\n");
            property::read::<History>(&text).unwrap_err()
        };
        assert!(problem("\"dance\"").contains("`dance`"));
        let feature = r#"{"apply": {"service": 1, "row": ["floating-ip=sideways"]}}"#;
        assert!(problem(feature).contains("floating-ip=sideways"));
    }

    #[test]
    fn histories_change_families_and_node_ports_as_kubernetes_lets_them() {
        let wanted = [("IPv4", "dual"), ("dual", "IPv4"), ("IPv6", "dual-IPv6-first"), ("yes", "chosen")];
        let mut changes = BTreeMap::new();
        for seed in 0..3_000 {
            if seed >= 300 && wanted.iter().all(|change| changes.contains_key(change)) {
                break;
            }
            let history = History::of(seed);
            assert!(history.is_possible(), "seed {seed}");
            let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
            for act in history.acts {
                let (service, row) = match act {
                    Act::Apply { service, row } => (service, row),
                    Act::Delete { service } => {
                        rows.remove(&service);
                        continue;
                    }
                    _ => continue,
                };
                let Some(before) = rows.insert(service, row.clone()) else { continue };
                for factor in ["node-ports", "families", "health-check-port"] {
                    let values = (features::value(&before, factor), features::value(&row, factor));
                    *changes.entry(values).or_insert(0) += 1;
                }
            }
        }
        for change in wanted {
            assert!(changes.contains_key(&change), "{change:?} is never tried: {changes:?}");
        }
        let row = |features: &str| features::with_features(features.split(' ')).unwrap();
        assert!(!may_become(&row("families=IPv4"), &row("families=dual-IPv6-first")));
        assert!(!may_become(&row("node-ports=chosen"), &row("node-ports=no")));
        assert!(!may_become(&row("policy=Local"), &row("policy=Local health-check-port=chosen")));
    }

    #[test]
    fn what_a_manifest_no_longer_says_goes() {
        let before =
            json!({"metadata": {"annotations": {"a": "1", "b": "2"}}, "spec": {"loadBalancerIP": "x"}});
        let manifest = json!({"metadata": {"annotations": {"b": "3"}}, "spec": {"ports": []}});
        let patch = replacement(&before, &manifest);
        assert_eq!(patch["metadata"]["annotations"], json!({"a": null, "b": "3"}));
        assert_eq!(patch["spec"].get("loadBalancerIP"), Some(&Value::Null));
    }
}
