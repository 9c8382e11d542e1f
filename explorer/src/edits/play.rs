//! A run of edits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use testkit::{Call, Reply, Tap};
use tokio::time::sleep;

use super::case::{Edit, Edits, How, When};
use super::edit;
use crate::ledger::{Hand, Ledger};
use crate::single::{Single, keyed};

/// The resync interval, plus the time of a repair.
const INTERVAL: Duration = Duration::from_secs(6 * 60);

/// Everything is at rest after this time without activity.
const QUIET: Duration = Duration::from_secs(8);

/// The Service that is created while a third party edits.
const NEWCOMER: &str = "extra/newcomer";

/// The maximum number of writes in the second hour of a fight.
const MAX_WRITES: u64 = 12;

/// The target of an edit.
#[derive(Debug, Clone)]
struct Target {
    id: ResourceId,
    place: String,
    how: How,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.id.type_and_name_pairs().last().map_or("group", |(kind, _)| *kind).to_owned();
        match self.how {
            How::Delete => write!(f, "Delete {kind}/{}", self.id.name()),
            how => write!(f, "{how:?} {} of {kind}/{}", self.place, self.id.name()),
        }
    }
}

impl Target {
    /// The targets of a trial's edits, among what the controllers have stated so far.
    fn of(edits: &[Edit], ledger: &Ledger) -> Vec<Self> {
        let stated: Vec<_> =
            ledger.by(Hand::Cluster(0)).into_iter().filter(|(_, _, leaf)| leaf.stated).collect();
        if stated.is_empty() {
            return Vec::new();
        }
        let target = |edit: &Edit| {
            let (id, place, _) = &stated[edit.number % stated.len()];
            // A machine is not ours, although its membership in pools is.
            if edit.how == How::Delete && ledger.maker(id) != Some(Hand::Cluster(0)) {
                return None;
            }
            Some(Self { id: ResourceId::parse(id).ok()?, place: place.clone(), how: edit.how })
        };
        edits.iter().filter_map(target).collect()
    }

    /// Applies the edit. Returns whether there was something to edit, and Azure accepted it.
    fn apply(&self, azure: &Azure) -> bool {
        if self.how == How::Delete {
            return azure.delete(&self.id).is_ok();
        }
        let mut found = false;
        let taken =
            azure.edit(&self.id, |document| found = edit::edit(document, &self.place, self.how)).is_ok();
        found && taken
    }
}

/// Edits just before a write arrives.
#[derive(Debug, Default)]
struct Ambush {
    work: Mutex<Option<(Azure, Vec<Target>, u64)>>,
    seen: AtomicU64,
    done: AtomicBool,
}

impl Tap for Ambush {
    fn before(&self, call: &Call) -> Option<Reply> {
        let mut work = self.work.lock();
        let (azure, targets, number) = work.as_ref().filter(|_| call.is_write())?;
        if self.seen.fetch_add(1, Ordering::Relaxed) == *number {
            for target in targets {
                if target.apply(azure) {
                    self.done.store(true, Ordering::Relaxed);
                }
            }
            *work = None;
        }
        None
    }
}

pub(super) async fn run(trial: &Edits) -> Vec<String> {
    let ambush = Arc::new(Ambush::default());
    let mut single = Single::build(trial.seed, false, trial.by_address, Some(ambush.clone()));
    single.world_mut().start();
    for (key, options) in keyed(&trial.services) {
        single.create(key, options, &[]);
    }
    single.rest(QUIET).await;
    let refused_before = refused(&single, trial);
    // If two Services share an internal address, one may deny what the other's clients need.
    let lost_before: Vec<_> =
        keyed(&trial.services).flat_map(|(key, options)| single.unserved(key, options)).collect();
    let before = single.world().azure_state();
    let targets = Target::of(&trial.edits, &single.ledger);
    let text = targets.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if trial.when == When::Always {
        return fight(&single, trial, &targets).await;
    }
    let mut edited = false;
    if let When::BeforeWrite(number) = trial.when {
        *ambush.work.lock() = Some((single.azure.clone(), targets, number));
        single.create(NEWCOMER, &[], &[]);
        single.rest(QUIET).await;
        edited = ambush.done.load(Ordering::Relaxed);
        *ambush.work.lock() = None;
    } else {
        for target in &targets {
            edited |= target.apply(&single.azure);
        }
    }
    if !edited {
        return Vec::new();
    }
    look(&mut single).await;
    if trial.when != When::AtRest {
        single.world().delete(NEWCOMER);
        single.rest(QUIET).await;
    }
    let mut complaints = Vec::new();
    let refused_now = refused(&single, trial);
    let is_told = refused_now.iter().any(|key| !refused_before.contains(key));
    let after = single.world().azure_state();
    let left = but_for_choices(before.differences(&after));
    // Resources that may belong to another cluster stay, and the owner of the Service next to them is informed.
    let is_strange = keyed(&trial.services).any(|(key, _)| {
        single.world().events(key).iter().any(|event| event.contains(" SharedWithUnknown: "))
    });
    if !left.is_empty() && !is_told && !is_strange {
        complaints.push(format!("not as it was, and no event says why:\n{}\nafter {text}", left.join("\n")));
    }
    for (key, options) in keyed(&trial.services).filter(|(key, _)| !refused_before.contains(key) && !is_told)
    {
        let lost = single.unserved(key, options).into_iter().filter(|lost| !lost_before.contains(lost));
        complaints.extend(lost.map(|lost| format!("after {text}: {lost}")));
    }
    let writes = single.ledger.writes(Hand::Cluster(0));
    sleep(INTERVAL * 2).await;
    let more = single.ledger.writes(Hand::Cluster(0)) - writes;
    if more > 0 && !is_told {
        complaints.push(format!("after {text}, {more} writes follow when all is repaired"));
    }
    complaints
}

/// The differences, except for values that may be chosen anew: a security rule that is created again gets a free
/// priority, and an instance may have another version of the same model. A private link service that is created again
/// gets another alias and other interfaces from Azure. A private address that no Service requests may be Azure's
/// choice, or one that was published before: it is the same address.
fn but_for_choices(mut lines: Vec<String>) -> Vec<String> {
    let chosen = [
        "\"priority\": ",
        "\"latestModelApplied\": ",
        "\"alias\": ",
        ".nic.",
        "\"privateIPAllocationMethod\": ",
    ];
    lines.retain(|line| !chosen.iter().any(|word| line.contains(word)));
    let is_header = |line: &String| line.starts_with('~');
    let mut kept = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if !is_header(line) || lines.get(number + 1).is_some_and(|next| next.starts_with(' ')) {
            kept.push(line.clone());
        }
    }
    kept
}

/// Waits until the controllers' next resync with Azure.
async fn look(single: &mut Single) {
    sleep(INTERVAL).await;
    single.rest(QUIET).await;
}

/// Services that cannot be served.
fn refused(single: &Single, trial: &Edits) -> Vec<&'static str> {
    keyed(&trial.services).map(|(key, _)| key).filter(|key| single.is_refused(key)).collect()
}

/// A third party repeats its edit whenever it is undone, for two hours.
async fn fight(single: &Single, trial: &Edits, targets: &[Target]) -> Vec<String> {
    let mut hours = Vec::new();
    let mut rounds = 0;
    let mut edited: Option<Vec<Option<serde_json::Value>>> = None;
    let documents = || -> Vec<_> {
        targets
            .iter()
            .map(|target| single.azure.document(&target.id).map(|mut document| document["properties"].take()))
            .collect()
    };
    for _ in 0..2 {
        let writes = single.ledger.writes(Hand::Cluster(0));
        for _ in 0..3_600 / 20 {
            if edited.as_ref() != Some(&documents()) {
                let taken = targets.iter().filter(|target| target.apply(&single.azure)).count();
                rounds += u64::from(taken > 0);
                edited = Some(documents());
            }
            sleep(Duration::from_secs(20)).await;
        }
        hours.push(single.ledger.writes(Hand::Cluster(0)) - writes);
    }
    let mut complaints = Vec::new();
    let text = targets.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if hours[1] > MAX_WRITES {
        complaints.push(format!("{text}, again and again: {hours:?} writes in two hours"));
    }
    let warned = keyed(&trial.services)
        .any(|(key, _)| single.world().events(key).iter().any(|event| event.starts_with("Warning ")));
    if rounds > 4 && !warned {
        complaints.push(format!("{text}, {rounds} times: no event says so"));
    }
    complaints
}
