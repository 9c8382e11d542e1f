//! Intents that are written together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Span;

use super::resource::{Answer, Resource};
use super::suspects::Search;

/// The pending or accepted intent of one owner.
pub(super) struct Entry<R: Resource> {
    pub(super) intent: R::Intent,
    pub(super) newer_than: LogicalTime,
    /// Empty if the entry only maintains an accepted intent.
    pub(super) waiters: Vec<oneshot::Sender<Answer<R>>>,
    /// Whether it is an accepted intent without waiting tasks.
    pub(super) is_maintained: bool,
    /// The span of the latest task that waits for it.
    pub(super) span: Span,
}

impl<R: Resource> Entry<R> {
    pub(super) fn replace_by(&mut self, later: Self) {
        self.intent = later.intent;
        self.newer_than = self.newer_than.max(later.newer_than);
        self.waiters.extend(later.waiters);
        self.is_maintained &= later.is_maintained;
        self.span = later.span;
    }

    pub(super) fn answer(self, answer: Answer<R>) {
        for waiter in self.waiters {
            // A task that no longer waits needs no answer.
            let _ = waiter.send(answer.clone());
        }
    }
}

/// Adds an owner's intent, in place of its earlier one.
pub(super) fn put<R: Resource>(batch: &mut BTreeMap<R::Key, Entry<R>>, key: R::Key, entry: Entry<R>) {
    match batch.get_mut(&key) {
        Some(earlier) => earlier.replace_by(entry),
        None => {
            batch.insert(key, entry);
        }
    }
}

/// Intents that are written together.
pub(super) struct Group<R: Resource> {
    pub(super) entries: BTreeMap<R::Key, Entry<R>>,
    pub(super) newer_than: LogicalTime,
    /// Whether new intents may join; not during a search for culprits.
    pub(super) open: bool,
    /// The earliest time of its next write.
    pub(super) not_before: Instant,
    /// Consecutive lost races, and consecutive answers that Azure is busy.
    pub(super) conflicts: u32,
    pub(super) busy: u32,
    /// Fingerprints of the writes made for the current intents.
    pub(super) written: BTreeSet<u64>,
    /// Fingerprints of the preparations made for writes.
    pub(super) prepared: BTreeSet<u64>,
    /// The search for culprits that it is a part of.
    pub(super) search: Option<Arc<Mutex<Search<R::Key>>>>,
    /// Whether such a search found no culprit.
    pub(super) searched: bool,
    /// Whether it is the half that is written first.
    pub(super) is_first_half: bool,
    /// Whether it has one owner, which may be the cause of its latest failure.
    pub(super) is_doubtful: bool,
}

impl<R: Resource> Group<R> {
    pub(super) fn new(entries: BTreeMap<R::Key, Entry<R>>, newer_than: LogicalTime, open: bool) -> Self {
        let (written, prepared) = (BTreeSet::new(), BTreeSet::new());
        let (not_before, search) = (Instant::now(), None);
        let searched = false;
        Self {
            entries,
            newer_than,
            open,
            not_before,
            conflicts: 0,
            busy: 0,
            written,
            prepared,
            search,
            searched,
            is_first_half: false,
            is_doubtful: false,
        }
    }

    pub(super) fn closed(entries: BTreeMap<R::Key, Entry<R>>) -> Self {
        Self::new(entries, LogicalTime::now(), false)
    }

    /// Splits the group in two, every other owner: similar owners, such as those of one namespace, are spread over
    /// both.
    pub(super) fn halve(self) -> [Self; 2] {
        let Self { entries, busy, conflicts, search, searched, .. } = self;
        let (mut upper, mut lower) = (BTreeMap::new(), BTreeMap::new());
        for (at, (key, entry)) in entries.into_iter().enumerate() {
            let half = if at % 2 == 0 { &mut lower } else { &mut upper };
            half.insert(key, entry);
        }
        let part =
            |entries| Self { busy, conflicts, search: search.clone(), searched, ..Self::closed(entries) };
        [part(upper), Self { is_first_half: true, ..part(lower) }]
    }

    /// Merges two groups; the result is due when both are.
    pub(super) fn join(mut self, other: Self) -> Self {
        self.newer_than = self.newer_than.max(other.newer_than);
        self.not_before = self.not_before.max(other.not_before);
        self.busy = self.busy.max(other.busy);
        self.conflicts = self.conflicts.max(other.conflicts);
        self.written.extend(other.written);
        self.prepared.extend(other.prepared);
        for (key, entry) in other.entries {
            put(&mut self.entries, key, entry);
        }
        self
    }

    pub(super) fn batch(&self) -> Vec<(R::Key, R::Intent)> {
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.intent.clone())).collect()
    }

    /// Whether it may be written now.
    pub(super) fn is_due(&self) -> bool {
        self.not_before <= Instant::now()
    }

    /// Its owner, if there is exactly one.
    pub(super) fn only(&self) -> Option<&R::Key> {
        self.entries.keys().next().filter(|_| self.entries.len() == 1)
    }

    pub(super) fn take(&mut self, key: &R::Key) -> Option<Entry<R>> {
        self.entries.remove(key)
    }

    pub(super) fn answer_others(
        &mut self,
        mut done: impl FnMut(R::Key, Entry<R>, Answer<R>),
        waiting: &BTreeSet<R::Key>,
        answer: impl Fn(&R::Key) -> Answer<R>,
    ) {
        let all = std::mem::take(&mut self.entries).into_iter();
        let (waiting, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(key, _)| waiting.contains(key));
        self.entries = waiting;
        for (key, entry) in others {
            let answer = answer(&key);
            done(key, entry, answer);
        }
    }

    pub(super) fn answer_all(
        self,
        mut done: impl FnMut(R::Key, Entry<R>, Answer<R>),
        answer: impl Fn(&R::Key) -> Answer<R>,
    ) {
        for (key, entry) in self.entries {
            let answer = answer(&key);
            done(key, entry, answer);
        }
    }

    /// The owners among these without a pending intent.
    pub(super) fn maintained(&self, keys: Vec<R::Key>) -> Vec<R::Key> {
        let is_maintained = |key: &R::Key| self.entries.get(key).is_some_and(|entry| entry.is_maintained);
        keys.into_iter().filter(is_maintained).collect()
    }
}
