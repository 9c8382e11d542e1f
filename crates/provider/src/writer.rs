//! One writer per shared resource, with group commit.
//!
//! A [`Writer`] owns a task that takes every waiting intent, plans all of them together, writes once and
//! answers everybody. While a write is in flight new intents gather; they are the next batch. Whoever is on
//! the way to a writer announces itself, and a batch waits for what was announced. Whoever comes too late waits for a whole
//! write, so that half of one is well spent on the next who comes, and a whole one on all of them.
//!
//! # Guarantees
//!
//! * Whoever is answered [`Acknowledged`] has what it wants in the resource, as read or as written by us.
//! * One write at a time, each under the version that was read. Somebody else's write is never overwritten: it is
//!   read, and planned again.
//! * Whoever has what it wants is answered, although others of its batch need more writes.
//! * An intent that Azure refuses fails with Azure's words, and alone: the others of its batch are written.
//! * Of two intents of one owner only the later counts, and both are answered alike.
//!
//! # Assumes
//!
//! * [`Resource::plan`] is pure, and asks for nothing where the resource is as the batch wants it.
//! * No other task of this process writes the resource.
//!
//! # Errors
//!
//! A [`Failure`] keeps its kind: `InvalidArgument` and `FailedPrecondition` are about this intent; every other is
//! nobody's in particular, and is only given after the bounds below. After a stop everything is `Unavailable`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arm::{Repeats, Verdict};
use async_trait::async_trait;
use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::Notice;
use crate::failure::{Failure, Kind};

/// A resource that many objects share.
#[async_trait]
pub(crate) trait Resource: Send + Sync + 'static {
    /// Whom an intent belongs to. Of two intents of one owner only the later counts.
    type Key: Clone + Ord + fmt::Display + Send + Sync;
    /// What one owner wants of the resource.
    type Intent: Clone + Send + Sync;
    /// What is known of the resource.
    type Observed: Send + Sync;
    /// One conditional write (for a scale set: of model and instances).
    type Work: Send + Sync;

    /// The resource in words, such as `load balancer kubernetes`.
    fn name(&self) -> String;

    /// The resource as read after `newer_than`, settled: no operation is running on it.
    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure>;

    /// What to write so that the resource is as the batch wants it. Pure.
    fn plan(&self, observed: &Self::Observed, batch: &[(Self::Key, Self::Intent)]) -> Planned<Self>;

    /// Writes, under the version that was planned against.
    async fn write(
        &self,
        observed: &Self::Observed,
        work: &Self::Work,
    ) -> Result<Written<Self::Observed>, Failure>;

    /// What a write would write, without what Azure changes by itself: equal for equal writes.
    fn fingerprint(&self, work: &Self::Work) -> u64;

    /// Those of a batch for whom a write is made. Whoever is not among them has what it wants already.
    fn concerned(&self, work: &Self::Work, batch: &[(Self::Key, Self::Intent)]) -> Vec<Self::Key>;

    /// Whose intents Azure's text names; empty where that is unclear.
    fn blame(&self, message: &str, batch: &[(Self::Key, Self::Intent)]) -> Vec<Self::Key>;

    /// Takes back what a refused write may have left behind: Azure accepts some and fails later.
    async fn restore(&self, _before: &Self::Observed) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether an owner's intent waits for nobody who is on the way.
    fn is_urgent(&self, _key: &Self::Key) -> bool {
        false
    }

    /// Whether a write changes nothing that anybody in the batch asked for, and only repairs.
    fn is_repair(&self, _work: &Self::Work) -> bool {
        false
    }

    /// What to tell an owner besides the error; `work` is absent where reading failed.
    fn complaint(&self, _key: &Self::Key, _work: Option<&Self::Work>, _failure: &Failure) -> Option<Notice> {
        None
    }
}

/// What planning a batch gave.
pub(crate) struct Planned<R: Resource + ?Sized> {
    /// The write; `None` where the resource already is as it should be.
    pub(crate) work: Option<R::Work>,
    /// Whose intent cannot be carried out, and what its owner is told.
    pub(crate) refused: Vec<(R::Key, Failure)>,
    /// What to tell whom.
    pub(crate) notices: Vec<(R::Key, Notice)>,
}

/// What came of a write.
pub(crate) enum Written<O> {
    /// It was made: the resource as it is now.
    Whole(O),
    /// What stood in its way was cleared, and it was not made: the resource is read and planned again.
    Prepared {
        /// Of what was cleared: equal for the same.
        what: u64,
    },
}

/// Times and bounds of writers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// How long a batch waits for what was announced, where writes take no longer.
    pub(crate) linger: Duration,
    /// The first wait where Azure is busy and does not say how long; doubled each time.
    pub(crate) busy: Duration,
}

/// How often in a row a batch is written again because somebody else changed the resource. Ten lost races mean that
/// something else writes all the time: the Services are told, and come again after their back-off.
const MAX_CONFLICTS: u32 = 10;
/// How many lost races in a row are no reason to wait. While hundreds of machines join its pools, a load balancer changes
/// with each of them: whoever goes on at once then loses ten times within a second.
const FREE_CONFLICTS: u32 = 3;
/// The pause after the next one; doubled each time, so that ten races take some 13 s.
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);
/// How often a batch is written again because Azure was busy: with doubled waits some four minutes, in which most
/// troubles of Azure pass without a Warning on any Service.
const MAX_BUSY: u32 = 8;
/// How many writes a group makes for the same wishes, each other than those before. Two suffice for all that is known;
/// more would hide that we and Azure do not agree. Whatever is wanted anew meanwhile is counted from the beginning.
const MAX_WRITES: usize = 6;
/// The longest that a batch waits for the next who was announced: half of a write that takes a minute. Who is announced for
/// longer has troubles of its own.
const MAX_LINGER: Duration = Duration::from_secs(30);
/// The longest wait between two tries where Azure does not say how long: a trouble of Azure's that has passed is
/// noticed within a minute.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// What the owner of an intent gets when the resource is as it wants.
pub(crate) struct Acknowledged<R: Resource> {
    /// The resource as it is now.
    pub(crate) observed: Arc<R::Observed>,
    /// What to tell this owner.
    pub(crate) notices: Vec<Notice>,
}

impl<R: Resource> Clone for Acknowledged<R> {
    fn clone(&self) -> Self {
        Self { observed: Arc::clone(&self.observed), notices: self.notices.clone() }
    }
}

type Answer<R> = Result<Acknowledged<R>, Failure>;

struct Entry<R: Resource> {
    intent: R::Intent,
    newer_than: LogicalTime,
    waiters: Vec<oneshot::Sender<Answer<R>>>,
}

impl<R: Resource> Entry<R> {
    fn replace_by(&mut self, later: Self) {
        self.intent = later.intent;
        self.newer_than = self.newer_than.max(later.newer_than);
        self.waiters.extend(later.waiters);
    }

    fn answer(self, answer: Answer<R>) {
        for waiter in self.waiters {
            // Who no longer waits needs no answer.
            let _ = waiter.send(answer.clone());
        }
    }
}

struct Queue<R: Resource> {
    waiting: BTreeMap<R::Key, Entry<R>>,
    announced: usize,
    stopped: bool,
}

struct Inner<R: Resource> {
    resource: R,
    pace: Pace,
    queue: Mutex<Queue<R>>,
    wake: Notify,
    repeats: Mutex<Repeats>,
    /// How long the latest write took.
    took: Mutex<Duration>,
}

/// The one writer of a shared resource. Cheap to clone.
pub(crate) struct Writer<R: Resource>(Arc<Inner<R>>);

impl<R: Resource> Clone for Writer<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Says that an intent will come, until dropped.
pub(crate) struct Announcement<R: Resource>(Arc<Inner<R>>);

impl<R: Resource> Drop for Announcement<R> {
    fn drop(&mut self) {
        self.0.queue.lock().announced -= 1;
        self.0.wake.notify_one();
    }
}

impl<R: Resource> Writer<R> {
    /// Starts the task, which ends when `stop` is cancelled, in the middle of whatever it does.
    pub(crate) fn start(resource: R, pace: Pace, stop: CancellationToken) -> Self {
        let queue = Queue { waiting: BTreeMap::new(), announced: 0, stopped: false };
        let inner = Arc::new(Inner {
            resource,
            pace,
            queue: Mutex::new(queue),
            wake: Notify::new(),
            repeats: Mutex::default(),
            took: Mutex::default(),
        });
        let task = Arc::clone(&inner);
        tokio::spawn(async move {
            stop.run_until_cancelled(task.run()).await;
            let mut queue = task.queue.lock();
            queue.stopped = true;
            queue.waiting.clear();
        });
        Self(inner)
    }

    /// The resource.
    pub(crate) fn resource(&self) -> &R {
        &self.0.resource
    }

    /// Says that an intent will come.
    pub(crate) fn announce(&self) -> Announcement<R> {
        self.0.queue.lock().announced += 1;
        Announcement(Arc::clone(&self.0))
    }

    /// Hands in what `key` wants and waits until it is so, judged by a reading after `newer_than`.
    pub(crate) async fn submit(
        &self,
        key: R::Key,
        intent: R::Intent,
        newer_than: LogicalTime,
        announcement: Option<Announcement<R>>,
    ) -> Answer<R> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.0.queue.lock();
            if queue.stopped {
                return Err(stopping());
            }
            put(&mut queue.waiting, key, Entry { intent, newer_than, waiters: vec![sender] });
        }
        drop(announcement);
        self.0.wake.notify_one();
        receiver.await.unwrap_or_else(|_closed| Err(stopping()))
    }
}

fn stopping() -> Failure {
    Failure::new(Kind::Unavailable, "the program is stopping")
}

fn put<R: Resource>(batch: &mut BTreeMap<R::Key, Entry<R>>, key: R::Key, entry: Entry<R>) {
    match batch.get_mut(&key) {
        Some(earlier) => earlier.replace_by(entry),
        None => {
            batch.insert(key, entry);
        }
    }
}

/// Intents that are written together.
struct Group<R: Resource> {
    entries: BTreeMap<R::Key, Entry<R>>,
    newer_than: LogicalTime,
    /// Whether newcomers may join; not while culprits are looked for.
    open: bool,
    /// Races that were lost in a row, and answers that Azure is busy.
    conflicts: u32,
    busy: u32,
    /// What was written for the wishes as they are now.
    written: BTreeSet<u64>,
    /// What was cleared out of the way of writes.
    prepared: BTreeSet<u64>,
}

impl<R: Resource> Group<R> {
    fn new(entries: BTreeMap<R::Key, Entry<R>>, newer_than: LogicalTime, open: bool) -> Self {
        let (written, prepared) = (BTreeSet::new(), BTreeSet::new());
        Self { entries, newer_than, open, conflicts: 0, busy: 0, written, prepared }
    }

    fn closed(entries: BTreeMap<R::Key, Entry<R>>) -> Self {
        Self::new(entries, LogicalTime::now(), false)
    }

    fn batch(&self) -> Vec<(R::Key, R::Intent)> {
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.intent.clone())).collect()
    }

    fn take(&mut self, key: &R::Key) -> Option<Entry<R>> {
        self.entries.remove(key)
    }

    fn answer_others(&mut self, waiting: &BTreeSet<R::Key>, answer: impl Fn(&R::Key) -> Answer<R>) {
        let done = std::mem::take(&mut self.entries).into_iter();
        let (waiting, done) = done.partition(|(key, _)| waiting.contains(key));
        self.entries = waiting;
        let done: BTreeMap<_, _> = done;
        for (key, entry) in done {
            let answer = answer(&key);
            entry.answer(answer);
        }
    }

    fn answer_all(self, answer: impl Fn(&R::Key) -> Answer<R>) {
        for (key, entry) in self.entries {
            let answer = answer(&key);
            entry.answer(answer);
        }
    }
}

impl<R: Resource> Inner<R> {
    async fn run(&self) {
        loop {
            let entries = self.gather().await;
            let newer_than =
                entries.values().map(|entry| entry.newer_than).max().unwrap_or(LogicalTime::BEGINNING);
            // Last in, first out: the parts of a halved group keep their order.
            let mut groups = vec![Group::new(entries, newer_than, true)];
            while let Some(group) = groups.pop() {
                groups.extend(self.attempt(group).await);
            }
        }
    }

    /// Waits for an intent, then for what was announced, but not too long.
    async fn gather(&self) -> BTreeMap<R::Key, Entry<R>> {
        while self.queue.lock().waiting.is_empty() {
            self.wake.notified().await;
        }
        let took = *self.took.lock();
        let patience = self.pace.linger.max((took / 2).min(MAX_LINGER));
        let end = Instant::now() + self.pace.linger.max(took.min(2 * MAX_LINGER));
        let lingers = || {
            let queue = self.queue.lock();
            let urgent = queue.waiting.keys().any(|key| self.resource.is_urgent(key));
            (queue.announced > 0 && !urgent).then_some(queue.waiting.len())
        };
        let (mut came, mut deadline) = (0, end);
        while let Some(waiting) = lingers() {
            if waiting > came {
                (came, deadline) = (waiting, end.min(Instant::now() + patience));
            }
            if timeout_at(deadline, self.wake.notified()).await.is_err() {
                break;
            }
        }
        std::mem::take(&mut self.queue.lock().waiting)
    }

    /// Takes over what came meanwhile: always from the same owners, from others if the group is open.
    fn absorb(&self, group: &mut Group<R>) {
        let mut queue = self.queue.lock();
        let (now, later) = std::mem::take(&mut queue.waiting)
            .into_iter()
            .partition(|(key, _)| group.open || group.entries.contains_key(key));
        queue.waiting = later;
        drop(queue);
        let now: BTreeMap<_, _> = now;
        for (key, entry) in now {
            group.newer_than = group.newer_than.max(entry.newer_than);
            put(&mut group.entries, key, entry);
        }
    }

    /// Plans and writes a group once; gives what is left to do.
    async fn attempt(&self, mut group: Group<R>) -> Vec<Group<R>> {
        self.absorb(&mut group);
        let observed = match self.resource.observe(group.newer_than).await {
            Ok(observed) => Arc::new(observed),
            Err(failure) => return self.retry_or_fail(group, None, failure).await,
        };
        let planned = self.resource.plan(&observed, &group.batch());
        let mut notices: BTreeMap<R::Key, Vec<Notice>> = BTreeMap::new();
        for (key, notice) in planned.notices {
            notices.entry(key).or_default().push(notice);
        }
        for (key, refusal) in planned.refused {
            let told = notices.remove(&key).unwrap_or_default();
            if let Some(entry) = group.take(&key) {
                entry.answer(Err(refusal.with_notices(told)));
            }
        }
        if group.entries.is_empty() {
            return Vec::new();
        }
        let acknowledged = |key: &R::Key, observed: &Arc<R::Observed>| {
            let notices = notices.get(key).cloned().unwrap_or_default();
            Ok(Acknowledged { observed: Arc::clone(observed), notices })
        };
        let Some(work) = planned.work else {
            debug!(resource = %self.resource.name(), intents = group.entries.len(), "nothing to write");
            group.answer_all(|key| acknowledged(key, &observed));
            return Vec::new();
        };
        let fingerprint = self.resource.fingerprint(&work);
        let verdict = self.repeats.lock().judge(fingerprint, Instant::now());
        if let Verdict::Wait(wait) = verdict {
            self.stop_repeating(group, &work, wait, |key| acknowledged(key, &observed));
            return Vec::new();
        }
        let begun = Instant::now();
        match self.resource.write(&observed, &work).await {
            Ok(Written::Whole(after)) => {
                *self.took.lock() = begun.elapsed();
                self.repeats.lock().written(fingerprint, Instant::now());
                self.go_on(group, &observed, fingerprint, Arc::new(after), acknowledged)
            }
            Ok(Written::Prepared { what }) => {
                if !group.prepared.insert(what) {
                    let message = "what stands in the way of a write comes back as soon as it is cleared";
                    return self
                        .retry_or_fail(group, Some(&work), Failure::new(Kind::Aborted, message))
                        .await;
                }
                group.conflicts = 0;
                group.newer_than = LogicalTime::now();
                vec![group]
            }
            Err(failure) if matches!(failure.kind, Kind::InvalidArgument | Kind::FailedPrecondition) => {
                if let Err(problem) = self.resource.restore(&observed).await {
                    warn!(resource = %self.resource.name(), error = %problem.message,
                        "failed to restore what Azure refused to change");
                }
                self.bisect(group, &work, failure).await
            }
            Err(failure) => self.retry_or_fail(group, Some(&work), failure).await,
        }
    }

    /// After a write: whoever has what it wants is answered, and the others go on. What is left because more is wanted
    /// than before, or because it takes several writes, is progress; a difference that was written and is found again
    /// is not.
    fn go_on(
        &self,
        mut group: Group<R>,
        before: &R::Observed,
        written: u64,
        after: Arc<R::Observed>,
        acknowledged: impl Fn(&R::Key, &Arc<R::Observed>) -> Answer<R>,
    ) -> Vec<Group<R>> {
        let batch = group.batch();
        let planned = self.resource.plan(&after, &batch);
        let Some(rest) = planned.work else {
            group.answer_all(|key| acknowledged(key, &after));
            return Vec::new();
        };
        let wanted_before = self.resource.plan(before, &batch).work;
        if wanted_before.map(|work| self.resource.fingerprint(&work)) != Some(written) {
            group.written.clear();
        }
        group.written.insert(written);
        let print = self.resource.fingerprint(&rest);
        if group.written.contains(&print) || group.written.len() >= MAX_WRITES {
            let wait = self.repeats.lock().stuck(print, Instant::now());
            self.stop_repeating(group, &rest, wait, |key| acknowledged(key, &after));
            return Vec::new();
        }
        let mut waiting: BTreeSet<R::Key> = self.resource.concerned(&rest, &batch).into_iter().collect();
        waiting.retain(|key| group.entries.contains_key(key));
        // What is nobody's in particular is everybody's: somebody has to see to it.
        if !waiting.is_empty() && !self.resource.is_repair(&rest) {
            waiting.extend(planned.refused.into_iter().map(|(key, _)| key));
            group.answer_others(&waiting, |key| acknowledged(key, &after));
        }
        (group.conflicts, group.busy) = (0, 0);
        group.newer_than = LogicalTime::BEGINNING;
        vec![group]
    }

    /// The same difference was found again after it had been written: whoever is concerned by it is told and
    /// backs off; the others have what they want.
    fn stop_repeating(
        &self,
        group: Group<R>,
        work: &R::Work,
        wait: Duration,
        acknowledged: impl Fn(&R::Key) -> Answer<R>,
    ) {
        let name = self.resource.name();
        let concerned = self.resource.concerned(work, &group.batch());
        warn!(resource = %name, wait_seconds = wait.as_secs(), owners = concerned.len(),
            "something undoes what is written; next try after a pause");
        group.answer_all(|key| {
            if !concerned.contains(key) {
                return acknowledged(key);
            }
            let message = format!(
                "{name} does not keep what is written to it: the same difference was found again right after a \
                 successful write. Look for another program (or a policy) that changes it; next try in {} s",
                wait.as_secs()
            );
            Err(Failure { after: Some(wait), ..Failure::new(Kind::FailedPrecondition, message) })
        });
    }

    /// A failure that has nothing to do with one owner: waits and tries again, or gives up for now.
    async fn retry_or_fail(
        &self,
        mut group: Group<R>,
        work: Option<&R::Work>,
        failure: Failure,
    ) -> Vec<Group<R>> {
        let name = self.resource.name();
        group.newer_than = LogicalTime::now();
        let wait = match failure.kind {
            Kind::Aborted => {
                group.conflicts += 1;
                let paused = group.conflicts.checked_sub(FREE_CONFLICTS + 1);
                let pause =
                    paused.map_or(Duration::ZERO, |times| CONFLICT_PAUSE.saturating_mul(1 << times.min(10)));
                (group.conflicts <= MAX_CONFLICTS).then_some(pause)
            }
            Kind::Unavailable | Kind::Unknown => {
                group.busy += 1;
                let doubled = self.pace.busy.saturating_mul(1 << group.busy.min(10)) / 2;
                (group.busy <= MAX_BUSY).then(|| failure.after.unwrap_or(doubled.min(MAX_WAIT)))
            }
            Kind::NotFound | Kind::InvalidArgument | Kind::FailedPrecondition | Kind::PermissionDenied => {
                None
            }
        };
        let Some(wait) = wait else {
            warn!(resource = %name, error = %failure.message, "failed to write to Azure");
            let error = match failure.kind {
                // Nobody's intent in particular was refused, so nobody's is terminal.
                Kind::InvalidArgument => failure.not_attributable(),
                // Whoever waits for this resource on the way to its own has lost no race there.
                Kind::Aborted => Failure { kind: Kind::Unavailable, ..failure },
                _ => failure,
            };
            group.answer_all(|key| {
                let complaint = self.resource.complaint(key, work, &error);
                Err(error.clone().while_doing(&name).with_notices(complaint))
            });
            return Vec::new();
        };
        info!(resource = %name, error = %failure.message, wait_ms = wait.as_millis(),
            "failed to write to Azure, trying again");
        if !wait.is_zero() {
            sleep(wait).await;
        }
        vec![group]
    }

    /// Azure refused the write: whoever it names fails with its words, the rest is written again. Where that
    /// is unclear the group is halved until the culprit stands alone.
    async fn bisect(&self, mut group: Group<R>, work: &R::Work, failure: Failure) -> Vec<Group<R>> {
        let name = self.resource.name();
        let refuse = |key: &R::Key, entry: Entry<R>| {
            warn!(resource = %name, owner = %key, error = %failure.message, "Azure refused a change");
            entry.answer(Err(failure.clone().while_doing(&name)));
        };
        if group.entries.len() == 1 && !self.resource.is_repair(work) {
            for (key, entry) in group.entries {
                refuse(&key, entry);
            }
            return Vec::new();
        }
        let mut named: Vec<R::Key> = self.resource.blame(&failure.full_text(), &group.batch());
        named.retain(|key| group.entries.contains_key(key));
        named.sort();
        named.dedup();
        info!(resource = %name, intents = group.entries.len(), named = named.len(), error = %failure.message,
            "Azure refused a write, looking for the Service that it refuses");
        if named.is_empty() && self.resource.is_repair(work) {
            // Somebody else's part is in the way, of which nobody here knows anything.
            return self.retry_or_fail(group, Some(work), failure).await;
        }
        if named.is_empty() || (named.len() == group.entries.len() && named.len() > 1) {
            let half = group.entries.len() / 2;
            let Some(middle) = group.entries.keys().nth(half).cloned() else { return Vec::new() };
            let upper = group.entries.split_off(&middle);
            return vec![Group::closed(upper), Group::closed(group.entries)];
        }
        if let [culprit] = named.as_slice() {
            if let Some(entry) = group.take(culprit) {
                refuse(culprit, entry);
            }
            group.newer_than = LogicalTime::now();
            return vec![group];
        }
        // Several are named, perhaps because one stands in another's way: the rest first, then one by one.
        let mut parts = Vec::new();
        for key in named.iter().rev() {
            if let Some(entry) = group.take(key) {
                parts.push(Group::closed(BTreeMap::from([(key.clone(), entry)])));
            }
        }
        group.newer_than = LogicalTime::now();
        parts.push(group);
        parts
    }
}

impl<R: Resource> fmt::Debug for Writer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({})", self.0.resource.name())
    }
}

#[cfg(test)]
mod tests;
