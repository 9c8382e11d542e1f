//! Trials of entries: each from its manifest to packets, again after a restart, and back to nothing.

use azure_simulator::RequestKind;
use serde_json::Value;
use testkit::World;
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS};

use crate::corpus::{Entry, Expectations};
use crate::expectation::{Expectation, Writes};
use crate::judge::Moment;
use crate::preview;
use crate::stage::Stage;

/// The result of an entry.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The differences from the expected result.
    pub complaints: Vec<String>,
    /// The differences between the preview and the writes.
    pub preview: Vec<String>,
}

/// Tries an entry on a stage, which is as before if there are no complaints.
pub async fn try_entry(stage: &mut Stage, entry: &Entry) -> Outcome {
    let mut outcome = Outcome::default();
    let mut expect = entry.expect.clone();
    fill_in(stage, &mut expect);

    // The controllers are stopped while the manifest is applied, so that a preview sees the same state as they will.
    stage.world.stop().await;
    if let Err(error) = stage.apply(&entry.objects).await {
        outcome.complaints.push(format!("the API refuses the manifest: {error}"));
        stage.world.start();
        return outcome;
    }
    let planned = preview::planned(&stage.world).await;
    stage.world.azure.clear_journal();
    stage.world.start();
    stage.rest(&expect).await;
    outcome.preview.extend(preview::differences(&planned, &stage.world));
    outcome.complaints.extend(judge(stage, &expect));
    outcome.complaints.extend(judge_writes(&stage.world, &expect));

    for (number, change) in entry.then.iter().enumerate() {
        stage.world.stop().await;
        for (key, patch) in &change.patches {
            stage.world.change(key, patch);
        }
        for key in &change.delete {
            // A patch may have removed its last finalizer.
            if !stage.world.service(key).is_null() {
                stage.world.delete(key);
            }
            expect.remove(key);
        }
        let mut more = change.expect.clone();
        fill_in(stage, &mut more);
        expect.extend(more);
        let planned = preview::planned(&stage.world).await;
        stage.world.azure.clear_journal();
        stage.world.start();
        stage.rest(&expect).await;
        let after = |text: String| format!("after change {}: {text}", number + 1);
        outcome.preview.extend(preview::differences(&planned, &stage.world).into_iter().map(after));
        outcome.complaints.extend(judge(stage, &expect).into_iter().map(after));
    }

    stage.world.azure.clear_journal();
    stage.world.restart().await;
    stage.rest(&expect).await;
    outcome.complaints.extend(judge_second_pass(&stage.world, &expect));
    let (left, planned) = stage.clear(&entry.objects, &entry.stays_changed).await;
    outcome.complaints.extend(left);
    let differences = preview::differences(&planned, &stage.world);
    outcome.preview.extend(differences.into_iter().map(|text| format!("at the end: {text}")));
    outcome
}

/// Replaces placeholders by their values on this stage.
pub fn fill_in(stage: &Stage, expect: &mut Expectations) {
    for expectation in expect.values_mut() {
        match expectation {
            Expectation::Served(served) => {
                for text in &mut served.addresses {
                    *text = stage.fill_in(text);
                }
                let pattern = stage.fill_in(&served.public_ip.to_string());
                served.public_ip = serde_json::from_str(&pattern).unwrap_or(Value::Null);
            }
            Expectation::Refused { texts, .. } => {
                for text in texts {
                    *text = stage.fill_in(text);
                }
            }
            Expectation::KeptAsItWas | Expectation::Untouched | Expectation::Released => {}
        }
    }
}

/// The problems of all Services.
pub fn judge(stage: &Stage, expect: &Expectations) -> Vec<String> {
    let moment = Moment::of(&stage.world);
    let of = |(key, expectation): (&String, &Expectation)| {
        let key = key.clone();
        let complaints = moment.judge(&key, expectation);
        complaints.into_iter().map(move |complaint| format!("{key}: {complaint}"))
    };
    expect.iter().flat_map(of).collect()
}

/// Nothing is written again; only refused writes may be retried.
pub fn judge_second_pass(world: &World, expect: &Expectations) -> Vec<String> {
    let mut again = world.changes();
    if expect.values().any(is_refused_by_azure) {
        again.retain(|change| !change.rsplit(' ').next().is_some_and(|status| status.starts_with('4')));
    }
    if again.is_empty() { Vec::new() } else { vec![format!("a second pass writes: {again:#?}")] }
}

fn is_refused_by_azure(expectation: &Expectation) -> bool {
    matches!(expectation, Expectation::Refused { by_azure: true, .. })
}

/// Compares the accepted writes since the journal was cleared with the expected ones.
fn judge_writes(world: &World, expect: &Expectations) -> Vec<String> {
    let mut wanted = Writes::default();
    for expectation in expect.values() {
        if let Expectation::Served(served) = expectation {
            wanted.public_ip += served.writes.public_ip;
            // Services that are created together share the writes of shared resources.
            wanted.load_balancer = wanted.load_balancer.max(served.writes.load_balancer);
            wanted.security_group = wanted.security_group.max(served.writes.security_group);
        }
    }
    let kinds = expect.values().filter_map(|one| match one {
        Expectation::Served(served) => Some(served.internal),
        _ => None,
    });
    let mut kinds: Vec<bool> = kinds.collect();
    kinds.sort_unstable();
    kinds.dedup();
    // One load balancer per flavor.
    wanted.load_balancer *= kinds.len();
    let found = Writes {
        public_ip: world.writes(PUBLIC_IPS),
        load_balancer: world.writes(LOAD_BALANCERS),
        security_group: world.writes(SECURITY_GROUPS),
    };
    if expect.values().any(is_refused_by_azure) {
        return Vec::new();
    }
    let journal = world.azure.journal();
    let refused = journal.entries.iter().filter(|entry| {
        matches!(entry.kind, RequestKind::Write | RequestKind::Delete) && entry.status >= 400
    });
    let mut complaints: Vec<String> =
        refused.map(|e| format!("Azure refused {} {}: {:?}", e.method, e.path, e.message)).collect();
    if found != wanted {
        complaints.push(format!("it took {found:?} instead of {wanted:?}: {:#?}", world.changes()));
    }
    complaints
}
