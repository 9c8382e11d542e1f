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
//! * An intent that Azure refuses fails with Azure's words, and alone: the others of its batch are written. Only a
//!   refusal that [provably concerns all](Failure::concerns_all) fails more than one owner.
//! * An owner whose part makes Azure fail or be busy each time is looked for after one repetition, or at once if an operation
//!   fails that Azure had accepted. If there is none, all wait together.
//! * What Azure keeps of an operation that failed is taken back: by the next write, or by one of its own before the writer rests.
//! * An owner that was refused is written alone until Azure takes its intent. Others do not wait until all culprits are
//!   found: between two writes of the search there is one of the intents that came meanwhile.
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
//! A [`Failure`] keeps its kind: `InvalidArgument` and `FailedPrecondition` are about this intent; every other may be about
//! the resource, and is only given after the bounds below. After a stop everything is `Unavailable`.

mod group;
mod resource;
mod standing;
mod suspects;
mod trouble;
mod writers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arm::{Repeats, Verdict};
use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::Notice;
use crate::failure::{Failure, Kind};
use crate::scope::Scope;
use group::{Entry, Group, put};
use resource::Answer;
pub(crate) use resource::{Acknowledged, Planned, Resource, Written};
pub(crate) use standing::Disturbance;
use standing::Standing;
use suspects::Suspects;
pub(crate) use writers::Writers;

/// Times and bounds of writers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// How long a batch waits for what was announced, where writes take no longer.
    pub(crate) linger: Duration,
    /// The first wait where Azure is busy and does not say how long; doubled each time.
    pub(crate) busy: Duration,
}

/// How many writes a group makes for the same wishes, each other than those before. Two suffice for all that is known;
/// more would hide that we and Azure do not agree. Whatever is wanted anew meanwhile is counted from the beginning.
const MAX_WRITES: usize = 6;
/// The longest that a batch waits for the next who was announced: half of a write that takes a minute. Who is announced for
/// longer has troubles of its own.
const MAX_LINGER: Duration = Duration::from_secs(30);

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
    suspects: Mutex<Suspects<R::Key>>,
    /// As it was before the latest write, which failed late: Azure may keep what it accepted.
    left_behind: Mutex<Option<Arc<R::Observed>>>,
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
            suspects: Mutex::default(),
            left_behind: Mutex::default(),
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

    /// Whether others than its own task and its list hold on to it: they hand in, or wait.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 2
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

impl<R: Resource> Inner<R> {
    /// One group is open to all who come. Beside it are closed ones, in which culprits are looked for, the latest last.
    async fn run(&self) {
        let (mut open, mut closed): (Option<Group<R>>, Vec<Group<R>>) = (None, Vec::new());
        loop {
            if open.is_none() && closed.is_empty() {
                if self.queue.lock().waiting.is_empty() {
                    self.restore().await;
                }
                self.gather().await;
            }
            if open.is_none() {
                open = self.newcomers(&closed);
            }
            if closed.is_empty() {
                closed.extend(self.suspect());
            }
            let mut rested = true;
            if let Some(group) = open.take_if(|group| group.is_due()) {
                let elsewhere = closed.iter().flat_map(|group| group.entries.keys().cloned()).collect();
                for mut rest in self.attempt(group, &elsewhere).await {
                    // Others do not join the one who may be the reason for a fault, but are tried beside it.
                    rest.open &= !(rest.is_doubtful && closed.is_empty());
                    if rest.open { open = Some(rest) } else { closed.push(rest) }
                }
                rested = false;
            }
            if let Some(at) = closed.iter().rposition(Group::is_due) {
                let group = closed.remove(at);
                let is_first_half = group.is_first_half;
                let parts = self.attempt(group, &BTreeSet::new()).await;
                // As a rule one half holds the culprit: the other is written before the search goes on.
                let other = closed.pop_if(|_| is_first_half && parts.len() > 1);
                closed.extend(parts.into_iter().chain(other));
                self.join_searched(&mut closed);
                rested = false;
            }
            if rested && !self.restore().await {
                self.wait_for(open.iter().chain(&closed)).await;
            }
        }
    }

    /// Waits until a group is due, or an intent comes.
    async fn wait_for(&self, groups: impl Iterator<Item = &Group<R>>) {
        let Some(due) = groups.map(|group| group.not_before).min() else { return };
        // An intent that comes joins the open group when that is due.
        let _ = timeout_at(due, self.wake.notified()).await;
    }

    /// The intents that wait, to be written together: not of owners that were refused before, nor of owners that have an
    /// earlier intent in one of these groups.
    fn newcomers(&self, closed: &[Group<R>]) -> Option<Group<R>> {
        let suspects = self.suspects.lock();
        let is_new = |key: &R::Key| {
            !suspects.contains(key) && !closed.iter().any(|group| group.entries.contains_key(key))
        };
        let mut queue = self.queue.lock();
        let (now, later) = std::mem::take(&mut queue.waiting).into_iter().partition(|(key, _)| is_new(key));
        queue.waiting = later;
        let entries: BTreeMap<_, _> = now;
        let newer_than = entries.values().map(|entry| entry.newer_than).max()?;
        Some(Group::new(entries, newer_than, true))
    }

    /// One of the intents that wait whose owners were refused before.
    fn suspect(&self) -> Option<Group<R>> {
        let mut queue = self.queue.lock();
        let key = self.suspects.lock().first(queue.waiting.keys())?;
        let entry = queue.waiting.remove(&key)?;
        let newer_than = entry.newer_than;
        Some(Group::new(BTreeMap::from([(key, entry)]), newer_than, false))
    }

    /// Waits for an intent, then for what was announced, but not too long.
    async fn gather(&self) {
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
    }

    /// Takes over what came meanwhile: always from the same owners, from others if the group is open.
    fn absorb(&self, group: &mut Group<R>, elsewhere: &BTreeSet<R::Key>) {
        let suspects = self.suspects.lock();
        let joins = |key: &R::Key| group.open && !suspects.contains(key) && !elsewhere.contains(key);
        let mut queue = self.queue.lock();
        let (now, later) = std::mem::take(&mut queue.waiting)
            .into_iter()
            .partition(|(key, _)| group.entries.contains_key(key) || joins(key));
        queue.waiting = later;
        drop((queue, suspects));
        let now: BTreeMap<_, _> = now;
        for (key, entry) in now {
            group.newer_than = group.newer_than.max(entry.newer_than);
            put(&mut group.entries, key, entry);
        }
    }

    /// Takes in what owners were given before and do not ask for now.
    fn join_standing(&self, group: &mut Group<R>, elsewhere: &BTreeSet<R::Key>) {
        if !group.open {
            return;
        }
        group.entries.retain(|_, entry| !entry.stands);
        let is_wanted = |key: &R::Key, intent: &R::Intent| self.resource.is_wanted(key, intent);
        let standing = self.standing.to_repair(is_wanted, Instant::now()).into_iter();
        for (key, intent) in standing.filter(|(key, _)| !elsewhere.contains(key)) {
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
                Ok(_) if self.resource.stands(&entry.intent) => {
                    self.standing.keep(key, self.resource.carried_out(entry.intent.clone()));
                }
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

    /// How those who wait are answered.
    fn answering(&self) -> impl FnMut(R::Key, Entry<R>, Answer<R>) + '_ {
        |key, entry, answer| self.answer(key, entry, answer)
    }

    /// Plans and writes a group once; gives what is left to do. `elsewhere` are owners with an earlier intent in another group.
    async fn attempt(&self, mut group: Group<R>, elsewhere: &BTreeSet<R::Key>) -> Vec<Group<R>> {
        self.absorb(&mut group, elsewhere);
        self.join_standing(&mut group, elsewhere);
        if let Some((refused, failure)) = group.search.as_ref().and_then(|search| search.lock().in_vain()) {
            // It is the resource that is refused, and not these owners.
            refused.iter().for_each(|key| self.suspects.lock().clear(key));
            return self.retry_or_fail(group, None, failure.not_attributable());
        }
        let observed = match self.resource.observe(group.newer_than).await {
            Ok(observed) => Arc::new(observed),
            Err(failure) => return self.retry_or_fail(group, None, failure),
        };
        let undone = self.left_behind.lock().as_deref().and_then(|it| self.resource.undone(it, &observed));
        let observed = undone.map_or(observed, Arc::new);
        let batch = group.batch();
        let claim = self.resource.claim(&observed, &batch);
        let planned = self.resource.plan(&observed, &batch, &claim);
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
            self.suspects.lock().clear(key);
            let notices = notices.get(key).cloned().unwrap_or_default();
            Ok(Acknowledged { observed: Arc::clone(observed), notices })
        };
        let Some(work) = planned.work else {
            self.restore().await;
            debug!(resource = %self.resource.name(), intents = group.entries.len(), "nothing to write");
            group.answer_all(self.answering(), |key| acknowledged(key, &observed));
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
                self.left_behind.lock().take();
                *self.took.lock() = begun.elapsed();
                self.repeats.lock().written(fingerprint, Instant::now());
                group.search.iter().for_each(|search| search.lock().succeeded());
                self.note_repairs(&group, &repairs);
                self.go_on(group, (&observed, &claim), fingerprint, Arc::new(after), acknowledged)
            }
            Ok(Written::Prepared { what }) => {
                if !group.prepared.insert(what) {
                    let message = "what stands in the way of a write comes back as soon as it is cleared";
                    return self.retry_or_fail(group, Some(&work), Failure::new(Kind::Aborted, message));
                }
                group.conflicts = 0;
                group.newer_than = LogicalTime::now();
                vec![group]
            }
            Err(failure) => {
                if failure.is_late() {
                    // Others would write again what Azure keeps.
                    *self.left_behind.lock() = Some(Arc::clone(&observed));
                }
                if (!failure.may_pass() || failure.may_be_a_fault_of_one())
                    && let Some(parts) = self.part(&mut group, &work)
                {
                    info!(resource = %self.resource.name(), error = %failure.message,
                        "failed to write, and others than those who ask may be the reason: they are written apart");
                    return parts;
                }
                if failure.concerns_all() {
                    self.after_trouble(group, &work, failure).await
                } else {
                    self.bisect(group, &work, failure)
                }
            }
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
        (before, claimed): (&R::Observed, &R::Claim),
        written: u64,
        after: Arc<R::Observed>,
        acknowledged: impl Fn(&R::Key, &Arc<R::Observed>) -> Answer<R>,
    ) -> Vec<Group<R>> {
        let batch = group.batch();
        let claim = self.resource.claim(&after, &batch);
        let planned = self.resource.plan(&after, &batch, &claim);
        let Some(rest) = planned.work else {
            group.answer_all(self.answering(), |key| acknowledged(key, &after));
            return Vec::new();
        };
        let wanted_before = self.resource.plan(before, &batch, claimed).work;
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
            group.answer_others(self.answering(), &waiting, |key| acknowledged(key, &after));
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
            let scope = if self.resource.serves_all(work) { Scope::All } else { Scope::Unclear };
            Failure { after: Some(wait), scope, ..Failure::new(Kind::FailedPrecondition, message) }
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
        group.answer_all(self.answering(), |key| {
            if !concerned.contains(key) {
                return acknowledged(key);
            }
            self.standing.hold(key, Instant::now());
            Err(failure())
        });
        Vec::new()
    }
}

impl<R: Resource> fmt::Debug for Writer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({})", self.0.resource.name())
    }
}

#[cfg(test)]
mod tests;
