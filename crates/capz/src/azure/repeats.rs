//! Detects differences that come back after they were written, and resources that disappear after they were created:
//! another program, or a policy, disagrees. The record outlives a reconcile and is shared by all of them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use arm::{Repeats, Verdict};
use azure_types::ResourceId;
use capz_planner::{Action, Claimant, Goal, Step};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Numbers of machines, of a scale set and of a node pool: replaced machines, and users who scale, change them back and
/// forth without any dispute.
const NUMBERS: [&str; 2] = ["sku.capacity", "properties.count"];

/// Recent writes, by resource and writer. If two objects of one manager change the same resource in turn, each repeats
/// itself, although no two consecutive writes are equal.
#[derive(Default)]
pub struct RecentWrites(Mutex<HashMap<(Writer, ResourceId), Repeats>>);

/// The object that writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writer {
    kind: &'static str,
    namespace: String,
    name: String,
}

impl From<Claimant<'_>> for Writer {
    fn from(claimant: Claimant<'_>) -> Self {
        let Claimant { kind, namespace, name, .. } = claimant;
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl RecentWrites {
    /// Forgets the writes to a resource that the writer deletes itself: creating it again is no repetition.
    pub fn forget(&self, writer: &Writer, id: &ResourceId) {
        self.0.lock().remove(&(writer.clone(), id.clone()));
    }

    /// Records that a difference with this fingerprint was written.
    pub fn note(&self, writer: &Writer, id: &ResourceId, print: u64) {
        let now = Instant::now();
        let mut all = self.0.lock();
        all.retain(|_, repeats| !repeats.is_past(now));
        all.entry((writer.clone(), id.clone())).or_default().written(print, now);
    }

    /// Why a step is not taken for now: it was taken before, and its difference came back.
    pub fn objection(&self, writer: &Writer, goal: &Goal, step: &Step) -> Option<String> {
        let print = fingerprint(step)?;
        let key = (writer.clone(), step.target.clone());
        let verdict = self.0.lock().get(&key)?.judge(print, Instant::now());
        let Verdict::Wait(_) = verdict else { return None };
        let name = goal.name_for_people();
        // The message contains no wait time: events are aggregated if their messages are equal.
        if step.action == Action::Create {
            return Some(format!(
                "{name} is gone each time after it was made: look for another program, or a policy, that deletes it"
            ));
        }
        let changes: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
        Some(format!(
            "{name} does not keep what is written to it ({}): look for another program, or a policy, that changes it",
            changes.join("; ")
        ))
    }
}

/// The fingerprint is equal for steps that write the same difference, or that create the same resource. `None` for
/// steps whose repetition means nothing.
pub fn fingerprint(step: &Step) -> Option<u64> {
    let says_nothing = match step.action {
        Action::Create => false,
        Action::Update => step.changes.iter().any(|change| NUMBERS.contains(&change.at.as_str())),
        Action::Delete => true,
    };
    if says_nothing {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (step.action == Action::Create).hash(&mut hasher);
    if step.action == Action::Create {
        return Some(hasher.finish());
    }
    for change in &step.changes {
        change.at.hash(&mut hasher);
        for value in [&change.from, &change.to] {
            value.as_ref().map(ToString::to_string).hash(&mut hasher);
        }
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use capz_planner::Change;
    use serde_json::{Value, json};

    use super::*;

    fn step(action: Action, at: &str, to: u32) -> Step {
        let set = ResourceId::group("s", "g").resource("Microsoft.Compute", "virtualMachineScaleSets", "x");
        let change = Change { at: at.into(), from: Some(json!(1)), to: Some(json!(to)), secret: false };
        Step {
            action,
            target: set,
            if_match: None,
            document: Value::Null,
            partial: false,
            changes: vec![change],
            proof: None,
            forced: false,
        }
    }

    /// Rule 6: two objects of one manager each undo the other's writes.
    #[tokio::test(start_paused = true)]
    async fn two_writers_that_undo_each_other_both_stop() {
        let (written, service) = (RecentWrites::default(), &capz_planner::service::GROUP);
        let writers = ["a", "b"].map(|name| Writer::from(Claimant { name, ..Claimant::from("c") }));
        let steps = [1, 2].map(|to| step(Action::Update, "tags.owner", to));
        let goal = Goal::new(steps[0].target.clone(), service, Value::Null);
        let mut times = 0;
        for _ in 0..20 {
            for (writer, step) in writers.iter().zip(&steps) {
                if written.objection(writer, &goal, step).is_none() {
                    times += 1;
                    written.note(writer, &step.target, fingerprint(step).unwrap());
                }
            }
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        assert_eq!(times, 4, "one write each, and one repair");
        let words = written.objection(&writers[0], &goal, &steps[0]).unwrap();
        assert!(words.contains("does not keep what is written to it (tags.owner"), "{words}");
        // A deletion by one writer does not affect the other one.
        written.forget(&writers[0], &steps[0].target);
        assert!(written.objection(&writers[0], &goal, &steps[0]).is_none());
        assert!(written.objection(&writers[1], &goal, &steps[1]).is_some());
    }

    #[test]
    fn what_comes_back_is_known_by_what_changes() {
        let print = |at: &str, to: u32| fingerprint(&step(Action::Update, at, to));
        assert!(print("tags.a", 2).is_some());
        assert_eq!(print("tags.a", 2), print("tags.a", 2));
        assert_ne!(print("tags.a", 2), print("tags.a", 3));
        assert_ne!(print("tags.a", 2), print("tags.b", 2));
        assert_eq!(fingerprint(&step(Action::Create, "", 2)), fingerprint(&step(Action::Create, "", 3)));
        assert_eq!(fingerprint(&step(Action::Delete, "", 2)), None);
        assert_eq!(print("sku.capacity", 2), None, "machines that are replaced lower it each time");
    }
}
