//! What happens by itself some time after a write: dependents are collected, namespaces are emptied, events expire.
//! The state notes what is due and when; one task of the server wakes up for it ([`Kubernetes::keep_house`]).

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng as _;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{State, Write};
use crate::kubernetes::Kubernetes;
use crate::object::Object;
use crate::registry::Kind;

/// When what an owner or a namespace leaves behind is collected, which kube-controller-manager does in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collection {
    /// Never, as with a kube-apiserver alone.
    Off,
    /// In the same step; the contents of a namespace that was deleted over HTTP stay a second.
    #[default]
    Prompt,
    /// After a time that is drawn from the seed, this at most.
    Within(Duration),
}

/// Shelf of the objects that expire.
const EVENTS: &str = "events";

/// How long the contents of a deleted namespace stay where all else is collected at once and the deletion came over
/// HTTP, so that clients that delete a namespace and then its contents find these, as they do in a cluster.
const LINGER: Duration = Duration::from_secs(1);

/// Something to be done later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Chore {
    /// Look whether the object with this uid still has owners.
    Collect(String),
    /// Delete what is in a namespace.
    EmptyNamespace(String),
    /// Remove an event that nobody has written again.
    Expire {
        /// Its place among the events.
        key: String,
        /// The version of the last write.
        version: u64,
    },
}

/// Something to be done later, in a saved state: nobody knows when that is taken up.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedChore {
    due_in_ms: u64,
    chore: Chore,
}

/// What is to be done, by time and in the order of planning.
#[derive(Debug, Default)]
pub(super) struct Chores {
    due: BTreeMap<(Instant, u64), Chore>,
    planned: u64,
    /// Whether a task waits for the next one.
    pub(super) attended: bool,
}

impl State {
    pub(super) fn plan(&mut self, delay: Duration, chore: Chore) {
        // A time that no clock reaches is never.
        let Some(due) = Instant::now().checked_add(delay) else { return };
        self.chores.planned += 1;
        self.chores.due.insert((due, self.chores.planned), chore);
    }

    pub(super) fn collection_delay(&mut self) -> Duration {
        match self.collection {
            Collection::Within(longest) => {
                let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
                Duration::from_millis(self.random.random_range(0..=longest))
            }
            Collection::Off | Collection::Prompt => Duration::ZERO,
        }
    }

    /// Plans to empty a namespace that is being deleted; `at_once` where nobody could want to see it full.
    pub(crate) fn plan_emptying(&mut self, name: &str, at_once: bool, write: &Write<'_>) {
        match self.collection {
            Collection::Off => {}
            Collection::Prompt if at_once => self.empty_namespace(name, write),
            Collection::Prompt => self.plan(LINGER, Chore::EmptyNamespace(name.to_owned())),
            Collection::Within(_) => {
                let delay = self.collection_delay();
                self.plan(delay, Chore::EmptyNamespace(name.to_owned()));
            }
        }
    }

    /// Notes when an event expires that was just written.
    pub(super) fn plan_expiry(&mut self, kind: &Kind, key: &str, object: &Object) {
        if let (EVENTS, Some(ttl)) = (&*kind.shelf, self.event_ttl) {
            self.plan(ttl, Chore::Expire { key: key.to_owned(), version: object.version() });
        }
    }

    pub(crate) fn save_chores(&self) -> Vec<SavedChore> {
        let now = Instant::now();
        let saved = |((due, _), chore): (&(Instant, u64), &Chore)| {
            let left = due.saturating_duration_since(now).as_millis();
            SavedChore { due_in_ms: u64::try_from(left).unwrap_or(u64::MAX), chore: chore.clone() }
        };
        self.chores.due.iter().map(saved).collect()
    }

    pub(crate) fn restore_chores(&mut self, saved: Vec<SavedChore>) {
        self.chores.due.clear();
        for SavedChore { due_in_ms, chore } in saved {
            self.plan(Duration::from_millis(due_in_ms), chore);
        }
    }

    /// Does what is due. Answers when the next chore is; without one nobody attends to them any more.
    fn do_chores(&mut self, write: &Write<'_>) -> Option<Instant> {
        loop {
            let Some(entry) = self.chores.due.first_entry() else {
                self.chores.attended = false;
                return None;
            };
            let (due, _) = *entry.key();
            if due > Instant::now() {
                return Some(due);
            }
            match entry.remove() {
                Chore::Collect(uid) => self.collect(&uid, write),
                Chore::EmptyNamespace(name) => self.empty_namespace(&name, write),
                Chore::Expire { key, version } => {
                    let newest = self.store.get(EVENTS, &key).map(|event| event.version());
                    if let (true, Some(kind)) = (newest == Some(version), self.registry.by_shelf(EVENTS)) {
                        self.remove(&kind, &key, write);
                    }
                }
            }
            self.tend(write);
        }
    }
}

impl Kubernetes {
    /// Sees to it that what is planned gets done. Outside of a runtime there is no later.
    pub(crate) fn keep_house(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        {
            let mut state = self.shared.state.lock();
            if state.chores.due.is_empty() {
                return;
            }
            if state.chores.attended {
                self.shared.chores_changed.notify_one();
                return;
            }
            state.chores.attended = true;
        }
        let this = self.clone();
        runtime.spawn(async move {
            loop {
                let next = this.shared.state.lock().do_chores(&this.housekeeper());
                let Some(next) = next else { return };
                tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = this.shared.chores_changed.notified() => {}
                }
            }
        });
    }
}
