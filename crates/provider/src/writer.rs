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
//! * What an owner was given is planned into every later batch while it [stands](Resource::stands): what others changed
//!   is repaired with the next write. A repair that fails holds up none of those who ask.
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

mod standing;

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
pub(crate) use standing::Disturbance;
use standing::Standing;

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

    /// Whether an intent goes on to be wanted once it was carried out.
    fn stands(&self, _intent: &Self::Intent) -> bool {
        false
    }

    /// Whether an intent that stands is still wanted.
    fn is_wanted(&self, _key: &Self::Key, _intent: &Self::Intent) -> bool {
        true
    }

    /// Takes note of what happened to the part of an owner who did not ask.
    fn disturbed(&self, _key: &Self::Key, _intent: &Self::Intent, _what: Disturbance) {}

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
    /// Empty where nobody asks, and what its owner was given before is only kept up.
    waiters: Vec<oneshot::Sender<Answer<R>>>,
    /// Whether nobody asks.
    stands: bool,
}

impl<R: Resource> Entry<R> {
    fn replace_by(&mut self, later: Self) {
        self.intent = later.intent;
        self.newer_than = self.newer_than.max(later.newer_than);
        self.waiters.extend(later.waiters);
        self.stands &= later.stands;
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
    /// What owners were given and still want.
    standing: Standing<R::Key, R::Intent>,
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
            standing: Standing::default(),
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
            if !self.0.resource.stands(&intent) {
                self.0.standing.withdraw(&key);
            }
            put(&mut queue.waiting, key, Entry { intent, newer_than, waiters: vec![sender], stands: false });
        }
        drop(announcement);
        self.0.wake.notify_one();
        receiver.await.unwrap_or_else(|_closed| Err(stopping()))
    }

    /// What owners were given and still want.
    pub(crate) fn standing(&self) -> Vec<(R::Key, R::Intent)> {
        self.0.standing.wanted(|key, intent| self.0.resource.is_wanted(key, intent))
    }

    /// What an owner was given is not kept up any more.
    pub(crate) fn withdraw(&self, key: &R::Key) {
        self.0.standing.withdraw(key);
    }

    /// When a part that is left as it is for a while may be repaired again.
    pub(crate) fn next_repair(&self) -> Option<Instant> {
        self.0.standing.next()
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

    fn answer_others(
        &mut self,
        inner: &Inner<R>,
        waiting: &BTreeSet<R::Key>,
        answer: impl Fn(&R::Key) -> Answer<R>,
    ) {
        let done = std::mem::take(&mut self.entries).into_iter();
        let (waiting, done) = done.partition(|(key, _)| waiting.contains(key));
        self.entries = waiting;
        let done: BTreeMap<_, _> = done;
        for (key, entry) in done {
            let answer = answer(&key);
            inner.answer(key, entry, answer);
        }
    }

    fn answer_all(self, inner: &Inner<R>, answer: impl Fn(&R::Key) -> Answer<R>) {
        for (key, entry) in self.entries {
            let answer = answer(&key);
            inner.answer(key, entry, answer);
        }
    }

    /// Those of these owners who do not ask.
    fn standing(&self, keys: Vec<R::Key>) -> Vec<R::Key> {
        let stands = |key: &R::Key| self.entries.get(key).is_some_and(|entry| entry.stands);
        keys.into_iter().filter(stands).collect()
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

    /// Takes in what owners were given before and do not ask for now.
    fn join_standing(&self, group: &mut Group<R>) {
        if !group.open {
            return;
        }
        group.entries.retain(|_, entry| !entry.stands);
        let is_wanted = |key: &R::Key, intent: &R::Intent| self.resource.is_wanted(key, intent);
        for (key, intent) in self.standing.to_repair(is_wanted, Instant::now()) {
            let newer_than = LogicalTime::BEGINNING;
            group.entries.entry(key).or_insert(Entry {
                intent,
                newer_than,
                waiters: Vec::new(),
                stands: true,
            });
        }
    }

    /// Answers who waits; what an owner was given is kept up from now on.
    fn answer(&self, key: R::Key, entry: Entry<R>, answer: Answer<R>) {
        if !entry.stands {
            match &answer {
                Ok(_) if self.resource.stands(&entry.intent) => self.standing.keep(key, entry.intent.clone()),
                Ok(_) => self.standing.withdraw(&key),
                // What it has stays as it is until it can be served.
                Err(failure) if failure.kind == Kind::InvalidArgument => self.standing.withdraw(&key),
                Err(_) => {}
            }
        }
        entry.answer(answer);
    }

    /// Refuses an intent. Of an owner who did not ask, the part is left as it is for a while.
    fn refuse(&self, key: R::Key, entry: Entry<R>, failure: Failure) {
        if entry.stands {
            self.standing.hold(&key, Instant::now());
            self.resource.disturbed(&key, &entry.intent, Disturbance::Failed(failure.message));
        } else {
            self.answer(key, entry, Err(failure));
        }
    }

    /// Parts a group after a failure of whatever kind: those who ask go by themselves, so that no repair of others can
    /// hold them up, and then what is to be repaired.
    fn part(&self, group: &mut Group<R>, work: &R::Work) -> Option<Vec<Group<R>>> {
        let concerned = group.standing(self.resource.concerned(work, &group.batch()));
        let mut repairs = BTreeMap::new();
        for key in concerned {
            if let Some(entry) = group.take(&key) {
                repairs.insert(key, entry);
            }
        }
        group.entries.retain(|_, entry| !entry.stands);
        if group.entries.is_empty() {
            // Nobody asks.
            group.entries = repairs;
            group.open = false;
            return None;
        }
        if repairs.is_empty() {
            return None;
        }
        let asking = std::mem::take(&mut group.entries);
        Some(vec![Group::closed(repairs), Group::closed(asking)])
    }

    /// Plans and writes a group once; gives what is left to do.
    async fn attempt(&self, mut group: Group<R>) -> Vec<Group<R>> {
        self.absorb(&mut group);
        self.join_standing(&mut group);
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
                self.refuse(key, entry, refusal.with_notices(told));
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
            group.answer_all(self, |key| acknowledged(key, &observed));
            return Vec::new();
        };
        let fingerprint = self.resource.fingerprint(&work);
        let verdict = self.repeats.lock().judge(fingerprint, Instant::now());
        if let Verdict::Wait(wait) = verdict {
            return self.stop_repeating(group, &work, wait, |key| acknowledged(key, &observed));
        }
        let repairs = group.standing(self.resource.concerned(&work, &group.batch()));
        let begun = Instant::now();
        match self.resource.write(&observed, &work).await {
            Ok(Written::Whole(after)) => {
                *self.took.lock() = begun.elapsed();
                self.repeats.lock().written(fingerprint, Instant::now());
                self.note_repairs(&group, &repairs);
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
            Err(failure)
                if !failure.may_pass()
                    && let Some(parts) = self.part(&mut group, &work) =>
            {
                info!(resource = %self.resource.name(), error = %failure.message,
                    "failed to write, and others than those who ask may be the reason: they are written apart");
                parts
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

    /// Takes note of what a write repaired for those who did not ask.
    fn note_repairs(&self, group: &Group<R>, repairs: &[R::Key]) {
        for key in repairs {
            if let Some(entry) = group.entries.get(key) {
                let what = self.standing.repaired(key, Instant::now());
                self.resource.disturbed(key, &entry.intent, what);
            }
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
            group.answer_all(self, |key| acknowledged(key, &after));
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
            return self.stop_repeating(group, &rest, wait, |key| acknowledged(key, &after));
        }
        let mut waiting: BTreeSet<R::Key> = self.resource.concerned(&rest, &batch).into_iter().collect();
        waiting.retain(|key| group.entries.contains_key(key));
        // What is nobody's in particular is everybody's: somebody has to see to it.
        if !waiting.is_empty() && !self.resource.is_repair(&rest) {
            waiting.extend(planned.refused.into_iter().map(|(key, _)| key));
            group.answer_others(self, &waiting, |key| acknowledged(key, &after));
        }
        (group.conflicts, group.busy) = (0, 0);
        group.newer_than = LogicalTime::BEGINNING;
        vec![group]
    }

    /// The same difference was found again after it had been written: the owners that it concerns are warned and
    /// back off; the others have what they want. Where it concerns owners who did not ask, those who ask are planned
    /// again without them.
    fn stop_repeating(
        &self,
        mut group: Group<R>,
        work: &R::Work,
        wait: Duration,
        acknowledged: impl Fn(&R::Key) -> Answer<R>,
    ) -> Vec<Group<R>> {
        let name = self.resource.name();
        let concerned = self.resource.concerned(work, &group.batch());
        warn!(resource = %name, wait_seconds = wait.as_secs(), owners = concerned.len(),
            "something undoes what is written; next try after a pause");
        let failure = || {
            let message = format!(
                "{name} does not keep what is written to it: the same difference was found again right after a \
                 successful write. Look for another program (or a policy) that changes it; next try in {} s",
                wait.as_secs()
            );
            Failure { after: Some(wait), ..Failure::new(Kind::FailedPrecondition, message) }
        };
        let not_asking = group.standing(concerned.clone());
        if !not_asking.is_empty() {
            for key in not_asking {
                if let Some(entry) = group.take(&key) {
                    self.standing.hold(&key, Instant::now());
                    self.resource.disturbed(&key, &entry.intent, Disturbance::Repeated(wait));
                }
            }
            group.entries.retain(|_, entry| !entry.stands);
            return if group.entries.is_empty() { Vec::new() } else { vec![group] };
        }
        group.answer_all(self, |key| {
            if !concerned.contains(key) {
                return acknowledged(key);
            }
            self.standing.hold(key, Instant::now());
            Err(failure())
        });
        Vec::new()
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
            let concerned = work.map(|work| self.resource.concerned(work, &group.batch()));
            for (key, entry) in group.entries {
                let complaint = self.resource.complaint(&key, work, &error);
                let told = error.clone().while_doing(&name).with_notices(complaint);
                // A part that nobody asks for is only in trouble if it was to be written.
                if !entry.stands || concerned.as_ref().is_some_and(|concerned| concerned.contains(&key)) {
                    self.refuse(key, entry, told);
                }
            }
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
            self.refuse(key.clone(), entry, failure.clone().while_doing(&name));
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
