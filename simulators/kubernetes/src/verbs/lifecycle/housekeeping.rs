//! Work that is due some time after a write: garbage collection, deletion of namespaces' contents, expiry of events.
//! The state records the work and its time; one task of the server performs it ([`crate::server::housekeeper`]).

use std::time::Duration;

use rand::Rng as _;
use tokio::time::Instant;

use crate::object::Object;
use crate::registry::Kind;
use crate::server::options::Collection;
use crate::verbs::lifecycle::chores::{Chore, SavedChore};
use crate::verbs::shelves::EVENTS;
use crate::verbs::state::{State, Write};

/// How long the contents of a namespace that was deleted over HTTP stay if everything else is collected at once.
/// Clients that delete a namespace and then its contents still find the contents, as they do in a cluster.
const LINGER: Duration = Duration::from_secs(1);

impl State {
    pub(crate) fn plan(&mut self, delay: Duration, chore: Chore) {
        // A time beyond the clock's range never comes.
        let Some(due) = Instant::now().checked_add(delay) else { return };
        self.chores.planned += 1;
        self.chores.due.insert((due, self.chores.planned), chore);
    }

    pub(crate) fn collection_delay(&mut self) -> Duration {
        match self.collection {
            Collection::Within(longest) => {
                let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
                Duration::from_millis(self.random.random_range(0..=longest))
            }
            Collection::Off | Collection::Prompt => Duration::ZERO,
        }
    }

    /// Plans the deletion of a terminating namespace's contents; `at_once` if no client can expect to see them.
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

    /// Plans the expiry of an event that was just written.
    pub(crate) fn plan_expiry(&mut self, kind: &Kind, key: &str, object: &Object) {
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

    /// Whether a task must be started for planned chores; if one waits already, `changed` is called.
    pub(crate) fn needs_housekeeper(&mut self, changed: impl FnOnce()) -> bool {
        if self.chores.due.is_empty() {
            return false;
        }
        if self.chores.attended {
            changed();
            return false;
        }
        self.chores.attended = true;
        true
    }

    /// Performs the chores that are due. Returns the time of the next one; `None` also ends the task that waits for
    /// chores.
    pub(crate) fn do_chores(&mut self, write: &Write<'_>) -> Option<Instant> {
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
