//! Intents that are written together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::resource::{Answer, Resource};
use super::suspects::Search;

/// What one owner waits for.
pub(super) struct Entry<R: Resource> {
    pub(super) intent: R::Intent,
    pub(super) newer_than: LogicalTime,
    /// Empty where what the owner was given before is only kept up.
    pub(super) waiters: Vec<oneshot::Sender<Answer<R>>>,
    /// Whether the owner does not ask.
    pub(super) stands: bool,
}

impl<R: Resource> Entry<R> {
    pub(super) fn replace_by(&mut self, later: Self) {
        self.intent = later.intent;
        self.newer_than = self.newer_than.max(later.newer_than);
        self.waiters.extend(later.waiters);
        self.stands &= later.stands;
    }

    pub(super) fn answer(self, answer: Answer<R>) {
        for waiter in self.waiters {
            // Who no longer waits needs no answer.
            let _ = waiter.send(answer.clone());
        }
    }
}

/// Hands in what an owner wants, in place of what it wanted before.
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
    /// Whether newcomers may join; not while culprits are looked for.
    pub(super) open: bool,
    /// Before this it is not written.
    pub(super) not_before: Instant,
    /// Races that were lost in a row, and answers that Azure is busy.
    pub(super) conflicts: u32,
    pub(super) busy: u32,
    /// What was written for the wishes as they are now.
    pub(super) written: BTreeSet<u64>,
    /// What was cleared out of the way of writes.
    pub(super) prepared: BTreeSet<u64>,
    /// The search for culprits that it is a part of.
    pub(super) search: Option<Arc<Mutex<Search<R::Key>>>>,
    /// Whether such a search was in vain.
    pub(super) searched: bool,
    /// Whether it is the one of two halves that is written first.
    pub(super) is_first_half: bool,
    /// Whether it is of one owner, who may be the reason for its latest failure.
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

    /// Parts the group in two, every other owner: owners that are alike, such as those of one namespace, are spread over both.
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

    /// Both as one, which waits as long as either.
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

    /// Whether it may be written by now.
    pub(super) fn is_due(&self) -> bool {
        self.not_before <= Instant::now()
    }

    /// Whose it is, if that is one alone.
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

    /// Those of these owners that do not ask.
    pub(super) fn standing(&self, keys: Vec<R::Key>) -> Vec<R::Key> {
        let stands = |key: &R::Key| self.entries.get(key).is_some_and(|entry| entry.stands);
        keys.into_iter().filter(stands).collect()
    }
}
