//! The machines as this history created them, and what is allowed for their Nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long a former truth may still be acted upon: a list of 10 s ago, a slow answer, and the minute for which a proof
/// is kept if Kubernetes refuses the deletion.
const MAX_AGE_OF_TRUTH: Duration = Duration::from_secs(100);

/// One machine, by its id.
#[derive(Debug, Clone)]
struct Machine {
    is_there: bool,
    is_running: bool,
    /// When it was last known not to exist.
    absent: Option<Instant>,
    /// When it was last known not to run.
    stopped: Option<Instant>,
}

/// All machines that ever existed, by ID in lower case.
#[derive(Debug, Default)]
pub(super) struct Truth(BTreeMap<String, Machine>);

impl Truth {
    /// Records which machines exist now, and whether they run. Nothing changes between two calls: up to the first
    /// change of this moment, the last recorded state held.
    pub(super) fn update(&mut self, machines: &BTreeMap<String, bool>) {
        let now = Instant::now();
        for (id, machine) in &mut self.0 {
            let running = machines.get(id);
            if !machine.is_there || running.is_none() {
                machine.absent = Some(now);
            }
            if !machine.is_running || running != Some(&true) {
                machine.stopped = Some(now);
            }
            machine.is_there = running.is_some();
            machine.is_running = running == Some(&true);
        }
        for (id, is_running) in machines {
            self.0.entry(id.clone()).or_insert_with(|| Machine {
                is_there: true,
                is_running: *is_running,
                absent: Some(now),
                stopped: Some(now),
            });
        }
    }

    /// Whether this machine has existed for so long that no acceptable answer can deny it.
    pub(super) fn lives(&self, id: &str) -> bool {
        let recently = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < MAX_AGE_OF_TRUTH);
        self.0.get(id).is_some_and(|machine| machine.is_there && !recently(machine.absent))
    }

    /// Whether this machine has run for so long that no acceptable answer can deny it.
    pub(super) fn runs(&self, id: &str) -> bool {
        let recently = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < MAX_AGE_OF_TRUTH);
        self.lives(id)
            && self.0.get(id).is_some_and(|machine| machine.is_running && !recently(machine.stopped))
    }
}
