//! A third party changes what a cluster created.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::LatencyProfile;
use azure_types::ResourceId;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::KillSwitch;
use tokio::time::Instant;

use super::edit::Edit;
use super::ledger::steady;
use super::member::Member;
use super::stage::{Stage, reasons};
use crate::property::Trial;

/// The sync period, plus the time of the writes.
const PATIENCE: Duration = Duration::from_secs(600 + 120);
/// How long a third party undoes the repairs.
const FIGHT: Duration = Duration::from_secs(3 * 3600);
/// The maximum number of repairs of a document in that time: recurring changes are repaired ever more rarely.
const MAX_REPAIRS: usize = 14;

/// One cluster, and a third party's changes to its resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Drift {
    /// The seed of everything random.
    pub seed: u64,
    /// The cluster.
    pub cluster: Member,
    /// The changes: each number selects one of all possible changes of all documents.
    pub edits: Vec<u64>,
    /// Whether the cluster is changed by its user at the same time.
    #[serde(default)]
    pub at_work: bool,
    /// Whether the manager is restarted at the same time.
    #[serde(default)]
    pub restart: bool,
    /// Whether the third party undoes the repairs.
    #[serde(default)]
    pub fights: bool,
}

impl Trial for Drift {
    const NAME: &'static str = "cluster-edits";
    const LISTS: &'static [&'static str] = &["/edits"];
    const PLAINER: &'static [(&'static str, &'static str)] =
        &[(r#"{"atWork": false}"#, ""), (r#"{"restart": false}"#, ""), (r#"{"fights": false}"#, "")];

    fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut cluster = Member::draw(&mut random, &[]);
        cluster.management = 0;
        cluster.machines = random.random_range(1..=2);
        cluster.pool = random.random_bool(0.4);
        let fights = random.random_bool(0.15);
        let edits =
            (0..if fights { 1 } else { random.random_range(1..=3) }).map(|_| random.random_range(0..100_000));
        Self {
            seed,
            cluster,
            edits: edits.collect(),
            at_work: random.random_bool(0.3),
            restart: random.random_bool(0.2),
            fights,
        }
    }

    async fn run(&self) -> Vec<String> {
        let latency = if self.at_work { Duration::from_secs(3) } else { Duration::ZERO };
        let latency = LatencyProfile::instant().with("*", "*", latency);
        let mut stage = Stage::new(self.seed, std::slice::from_ref(&self.cluster), false, 1, latency);
        stage.create(0);
        if !stage.until(PATIENCE, |stage| stage.is_ready(0)).await {
            return vec![format!("the cluster does not come: {:#?} {:#?}", said(&stage), stage.warnings(0))];
        }
        stage.pass(Duration::from_secs(30)).await;
        // Child resources such as inbound NAT rules are part of another document, and are not in lists of documents.
        let asked = stage.ledger.asked_by(0).into_iter().map(|(id, _)| id);
        let before: BTreeMap<ResourceId, Option<Value>> =
            asked.map(|id| (id.clone(), stage.azure.document(&id).map(steady))).collect();
        if self.at_work {
            stage.tag(0, &json!("1"));
            stage.pass(Duration::from_secs(1)).await;
        }
        let heard = stage.warnings(0).len();
        let edits: Vec<_> = self.edits.iter().filter_map(|choice| stage.interfere(0, *choice)).collect();
        if self.restart {
            stage.restart(0, KillSwitch::never()).await;
        }
        if self.fights {
            return fight(&mut stage, &edits).await;
        }
        stage.pass(PATIENCE).await;
        let mut complaints = stage.ledger.harm();
        let is_told = !said(&stage).is_empty() || stage.warnings(0).len() > heard;
        for (id, edit) in &edits {
            let was = before.get(id).cloned().flatten();
            let is = stage.azure.document(id).map(steady);
            let unchanged = match (&was, &is) {
                (Some(was), Some(is)) => without_tag(was) == without_tag(is),
                (None, None) => true,
                _ => false,
            };
            if !unchanged && !is_told {
                let difference = differences(was.as_ref(), is.as_ref());
                complaints.push(format!(
                    "a third party {}: it is not repaired within {PATIENCE:?}, and its owner says nothing: {difference}",
                    edit.words(id)
                ));
            }
        }
        if let Err(unrest) = stage.rest().await {
            complaints.push(unrest);
        }
        complaints
    }
}

/// Conditions with the reason of a failure.
fn said(stage: &Stage) -> Vec<String> {
    stage.speakers(0).iter().flat_map(|(_, object)| reasons(object)).collect()
}

/// A document without the tag that the user changes meanwhile.
fn without_tag(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(tags) = document["tags"].as_object_mut() {
        tags.remove("cost");
    }
    document
}

fn differences(was: Option<&Value>, is: Option<&Value>) -> String {
    match (was, is) {
        (Some(was), Some(is)) => {
            let (was, is) = (format!("{was:#}"), format!("{is:#}"));
            let pairs = was.lines().zip(is.lines()).filter(|(was, is)| was != is).take(3);
            pairs.map(|(was, is)| format!("{} → {}", was.trim(), is.trim())).collect::<Vec<_>>().join("; ")
        }
        (Some(_), None) => "it is gone".to_owned(),
        (None, _) => "it was not there".to_owned(),
    }
}

/// The third party repeats its changes whenever they are repaired.
async fn fight(stage: &mut Stage, edits: &[(ResourceId, Edit)]) -> Vec<String> {
    let Some((id, edit)) = edits.first() else { return Vec::new() };
    let begin = Instant::now();
    let mut repairs = 0;
    while begin.elapsed() < FIGHT {
        let edited = stage.azure.document(id).map(steady);
        stage.pass(Duration::from_secs(20)).await;
        if stage.azure.document(id).map(steady) != edited {
            repairs += 1;
            stage.do_edit(id, edit);
        }
    }
    let mut complaints = stage.ledger.harm();
    if repairs > MAX_REPAIRS {
        complaints.push(format!(
            "a third party {} again and again: it was repaired {repairs} times in {FIGHT:?}",
            edit.words(id)
        ));
    }
    if repairs > 3 && said(stage).is_empty() && stage.warnings(0).is_empty() {
        complaints
            .push(format!("a third party {} again and again, and the owner says nothing", edit.words(id)));
    }
    complaints
}
