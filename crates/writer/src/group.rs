//! Intents that are written together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logical_time::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Span;

use crate::resource::{Answer, Resource};
use crate::suspects::Search;

/// A search that several groups are a part of.
type SharedSearch<R> = Arc<Mutex<Search<<R as Resource>::Key, <R as Resource>::Notice>>>;

/// The pending or accepted intent of one owner.
pub(crate) struct Entry<R: Resource> {
    pub(crate) intent: R::Intent,
    pub(crate) newer_than: LogicalTime,
    /// Empty if the entry only maintains an accepted intent.
    pub(crate) waiters: Vec<oneshot::Sender<Answer<R>>>,
    /// Whether it is an accepted intent without waiting tasks.
    pub(crate) is_maintained: bool,
    /// Whether it counts even if no task waits for it any more.
    pub(crate) outlives_its_caller: bool,
    /// The earlier intent, which counts again if this one is dropped.
    pub(crate) replaced: Option<Box<Entry<R>>>,
    /// The span of the latest task that waits for it.
    pub(crate) span: Span,
}

impl<R: Resource> Entry<R> {
    /// A pending intent, for which one task waits.
    pub(crate) fn pending(
        intent: R::Intent,
        newer_than: LogicalTime,
        waiter: oneshot::Sender<Answer<R>>,
        outlives_its_caller: bool,
    ) -> Self {
        let (waiters, span) = (vec![waiter], Span::current());
        Self { intent, newer_than, waiters, is_maintained: false, outlives_its_caller, replaced: None, span }
    }

    /// An accepted intent.
    pub(crate) fn maintained(intent: R::Intent) -> Self {
        Self {
            intent,
            newer_than: LogicalTime::BEGINNING,
            waiters: Vec::new(),
            is_maintained: true,
            outlives_its_caller: true,
            replaced: None,
            span: Span::none(),
        }
    }

    /// The same with a later entry of its owner in its place.
    fn replaced_by(self, mut later: Self) -> Self {
        later.newer_than = self.newer_than.max(later.newer_than);
        later.is_maintained &= self.is_maintained;
        if later.outlives_its_caller {
            self.move_waiters_to(&mut later.waiters);
        } else {
            // A later entry of another group may itself have replaced one.
            later.replaced = Some(Box::new(match later.replaced.take() {
                Some(between) => self.replaced_by(*between),
                None => self,
            }));
        }
        later
    }

    /// The entry without intents whose callers have gone; `None` if none is left.
    pub(crate) fn without_abandoned(mut self) -> Option<Self> {
        self.replaced = self.replaced.take().and_then(|earlier| earlier.without_abandoned()).map(Box::new);
        let is_abandoned = !self.outlives_its_caller && self.waiters.iter().all(oneshot::Sender::is_closed);
        if is_abandoned { self.replaced.map(|earlier| *earlier) } else { Some(self) }
    }

    /// Answers all tasks that wait, also for the intents that it replaced.
    pub(crate) fn answer(self, answer: &Answer<R>) {
        let mut waiters = Vec::new();
        self.move_waiters_to(&mut waiters);
        for waiter in waiters {
            // A task that no longer waits needs no answer.
            let _ = waiter.send(answer.clone());
        }
    }

    fn move_waiters_to(self, waiters: &mut Vec<oneshot::Sender<Answer<R>>>) {
        waiters.extend(self.waiters);
        if let Some(earlier) = self.replaced {
            earlier.move_waiters_to(waiters);
        }
    }
}

/// Adds an owner's intent, in place of its earlier one.
pub(crate) fn put<R: Resource>(batch: &mut BTreeMap<R::Key, Entry<R>>, key: R::Key, entry: Entry<R>) {
    let entry = match batch.remove(&key).and_then(Entry::without_abandoned) {
        Some(earlier) => earlier.replaced_by(entry),
        None => entry,
    };
    batch.insert(key, entry);
}

/// Intents that are written together.
pub(crate) struct Group<R: Resource> {
    pub(crate) entries: BTreeMap<R::Key, Entry<R>>,
    pub(crate) newer_than: LogicalTime,
    /// Whether new intents may join; not during a search for culprits.
    pub(crate) open: bool,
    /// The earliest time of its next write.
    pub(crate) not_before: Instant,
    /// Consecutive lost races, and consecutive answers that Azure is busy.
    pub(crate) conflicts: u32,
    pub(crate) busy: u32,
    /// Fingerprints of the writes made for the current intents.
    pub(crate) written: BTreeSet<u64>,
    /// Fingerprints of the preparations made for writes.
    pub(crate) prepared: BTreeSet<u64>,
    /// The search for culprits that it is a part of.
    pub(crate) search: Option<SharedSearch<R>>,
    /// Whether such a search found no culprit.
    pub(crate) searched: bool,
    /// Whether it is the half that is written first.
    pub(crate) is_first_half: bool,
    /// Whether it has one owner, which may be the cause of its latest failure.
    pub(crate) is_doubtful: bool,
}

impl<R: Resource> Group<R> {
    pub(crate) fn new(entries: BTreeMap<R::Key, Entry<R>>, newer_than: LogicalTime, open: bool) -> Self {
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

    pub(crate) fn closed(entries: BTreeMap<R::Key, Entry<R>>) -> Self {
        Self::new(entries, LogicalTime::now(), false)
    }

    /// Splits the group in two, every other owner: similar owners, such as those of one namespace, are spread over
    /// both.
    pub(crate) fn halve(self) -> [Self; 2] {
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
    pub(crate) fn join(mut self, other: Self) -> Self {
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

    pub(crate) fn batch(&self) -> Vec<(R::Key, R::Intent)> {
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.intent.clone())).collect()
    }

    /// Drops the intents whose callers have gone, unless they outlive them.
    pub(crate) fn drop_abandoned(&mut self) {
        let entries = std::mem::take(&mut self.entries).into_iter();
        self.entries = entries.filter_map(|(key, entry)| Some((key, entry.without_abandoned()?))).collect();
    }

    /// Whether it may be written now.
    pub(crate) fn is_due(&self) -> bool {
        self.not_before <= Instant::now()
    }

    /// Its owner, if there is exactly one.
    pub(crate) fn only(&self) -> Option<&R::Key> {
        self.entries.keys().next().filter(|_| self.entries.len() == 1)
    }

    pub(crate) fn take(&mut self, key: &R::Key) -> Option<Entry<R>> {
        self.entries.remove(key)
    }

    pub(crate) fn answer_others(
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

    pub(crate) fn answer_all(
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
    pub(crate) fn maintained(&self, keys: Vec<R::Key>) -> Vec<R::Key> {
        let is_maintained = |key: &R::Key| self.entries.get(key).is_some_and(|entry| entry.is_maintained);
        keys.into_iter().filter(is_maintained).collect()
    }
}
