//! The task of a writer: forms groups of pending intents, and plans and writes one group after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arm::{Repeats, Verdict};
use logical_time::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, warn};

use crate::accepted_intents::{AcceptedIntents, Disturbance};
use crate::failure::{Failure, Kind};
use crate::group::{Entry, Group, put};
use crate::resource::{Acknowledged, Answer, Resource, Written};
use crate::scope::Scope;
use crate::spans;
use crate::suspects::Suspects;

/// Timing of writers.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long a batch waits for announced intents, unless writes take longer.
    pub linger: Duration,
    /// The first wait if Azure is busy and does not say how long; doubled each time.
    pub busy: Duration,
}

/// How many different writes a group makes for the same intents. Two suffice in all known cases; more would hide a
/// disagreement with Azure. New intents reset the count.
const MAX_WRITES: usize = 6;
/// The longest that a batch waits for the next announced intent: half of a write that takes a minute. An intent that is
/// announced for longer is in trouble.
pub(crate) const MAX_LINGER: Duration = Duration::from_secs(30);

struct Queue<R: Resource> {
    waiting: BTreeMap<R::Key, Entry<R>>,
    announced: usize,
    stopped: bool,
}

pub(crate) struct Inner<R: Resource> {
    pub(crate) resource: R,
    pub(crate) pace: Pace,
    queue: Mutex<Queue<R>>,
    wake: Notify,
    repeats: Mutex<Repeats>,
    /// Accepted intents that are still wanted.
    accepted: AcceptedIntents<R::Key, R::Intent>,
    pub(crate) suspects: Mutex<Suspects<R::Key>>,
    /// The observed state before the latest write, which failed late: Azure may keep what it accepted.
    pub(crate) left_behind: Mutex<Option<Arc<R::Observed>>>,
    /// Duration of the latest write.
    took: Mutex<Duration>,
}

/// The writer of a shared resource. Cheap to clone.
pub struct Writer<R: Resource>(Arc<Inner<R>>);

impl<R: Resource> Clone for Writer<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Announces an intent, until dropped.
pub struct Announcement<R: Resource>(Arc<Inner<R>>);

impl<R: Resource> Drop for Announcement<R> {
    fn drop(&mut self) {
        self.0.queue.lock().announced -= 1;
        self.0.wake.notify_one();
    }
}

impl<R: Resource> Writer<R> {
    /// Starts the task, which ends when `stop` is cancelled, at any point of its work.
    pub fn start(resource: R, pace: Pace, stop: CancellationToken) -> Self {
        let queue = Queue { waiting: BTreeMap::new(), announced: 0, stopped: false };
        let inner = Arc::new(Inner {
            resource,
            pace,
            queue: Mutex::new(queue),
            wake: Notify::new(),
            repeats: Mutex::default(),
            accepted: AcceptedIntents::default(),
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
    pub fn resource(&self) -> &R {
        &self.0.resource
    }

    /// Whether it is referenced beside its own task and its list: by submitting or waiting tasks.
    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 2
    }

    /// Announces an intent.
    pub fn announce(&self) -> Announcement<R> {
        self.0.queue.lock().announced += 1;
        Announcement(Arc::clone(&self.0))
    }

    /// Submits the intent of `key` and waits until it is carried out, based on data read after `newer_than`.
    pub async fn submit(
        &self,
        key: R::Key,
        intent: R::Intent,
        newer_than: LogicalTime,
        announcement: Option<Announcement<R>>,
    ) -> Answer<R> {
        let (sender, receiver) = oneshot::channel();
        let outlives_its_caller = self.0.resource.outlives_its_caller(&intent);
        {
            let mut queue = self.0.queue.lock();
            if queue.stopped {
                return Err(stopping());
            }
            if !self.0.resource.is_maintained(&intent) {
                self.0.accepted.withdraw(&key);
            }
            put(&mut queue.waiting, key, Entry::pending(intent, newer_than, sender, outlives_its_caller));
        }
        drop(announcement);
        self.0.wake.notify_one();
        receiver.await.unwrap_or_else(|_closed| Err(stopping()))
    }

    /// Accepted intents that are still wanted.
    pub fn accepted_intents(&self) -> Vec<(R::Key, R::Intent)> {
        self.0.accepted.wanted(|key, intent| self.0.resource.is_wanted(key, intent))
    }

    /// Whether any accepted intent is still wanted.
    pub fn has_accepted_intents(&self) -> bool {
        self.0.accepted.is_any_wanted(|key, intent| self.0.resource.is_wanted(key, intent))
    }

    /// Stops maintaining an owner's accepted intent.
    pub fn withdraw(&self, key: &R::Key) {
        self.0.accepted.withdraw(key);
    }

    /// When the next part whose repair is put off may be repaired again.
    pub fn next_repair(&self) -> Option<Instant> {
        self.0.accepted.next()
    }
}

fn stopping<N>() -> Failure<N> {
    Failure::new(Kind::Unavailable, "the program is stopping")
}

impl<R: Resource> Inner<R> {
    /// One group is open to new intents. Beside it are closed groups in which culprits are searched for, the latest
    /// last.
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
                    // Other intents do not join an owner that may cause a server error, but are tried beside it.
                    rest.open &= !(rest.is_doubtful && closed.is_empty());
                    if rest.open { open = Some(rest) } else { closed.push(rest) }
                }
                rested = false;
            }
            if let Some(at) = closed.iter().rposition(Group::is_due) {
                let group = closed.remove(at);
                let is_first_half = group.is_first_half;
                let parts = self.attempt(group, &BTreeSet::new()).await;
                // Usually one half contains the culprit: the other half is written before the search continues.
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

    /// Waits until a group is due, or an intent arrives.
    async fn wait_for(&self, groups: impl Iterator<Item = &Group<R>>) {
        let Some(due) = groups.map(|group| group.not_before).min() else { return };
        // A new intent joins the open group when that is due.
        let _ = timeout_at(due, self.wake.notified()).await;
    }

    /// The pending intents that are written together: not those of previously refused owners, nor of owners with an
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

    /// One pending intent of a previously refused owner.
    fn suspect(&self) -> Option<Group<R>> {
        let mut queue = self.queue.lock();
        let key = self.suspects.lock().first(queue.waiting.keys())?;
        let entry = queue.waiting.remove(&key)?;
        let newer_than = entry.newer_than;
        Some(Group::new(BTreeMap::from([(key, entry)]), newer_than, false))
    }

    /// Waits for an intent, then for a limited time for announced ones.
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

    /// Merges new intents into a group: always those of its owners, those of others only if the group is open.
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

    /// Adds the accepted intents of owners without a pending intent.
    fn join_accepted(&self, group: &mut Group<R>, elsewhere: &BTreeSet<R::Key>) {
        if !group.open {
            return;
        }
        group.entries.retain(|_, entry| !entry.is_maintained);
        let is_wanted = |key: &R::Key, intent: &R::Intent| self.resource.is_wanted(key, intent);
        let accepted = self.accepted.to_repair(is_wanted, Instant::now()).into_iter();
        for (key, intent) in accepted.filter(|(key, _)| !elsewhere.contains(key)) {
            group.entries.entry(key).or_insert_with(|| Entry::maintained(intent));
        }
    }

    /// Answers the waiting tasks; from now on the accepted intent is maintained.
    fn answer(&self, key: R::Key, entry: Entry<R>, answer: Answer<R>) {
        if !entry.is_maintained {
            match &answer {
                Ok(_) if self.resource.is_maintained(&entry.intent) => {
                    self.accepted.insert(key, self.resource.carried_out(entry.intent.clone()));
                }
                Ok(_) => self.accepted.withdraw(&key),
                // What it has stays until the intent can be carried out.
                Err(failure) if failure.kind == Kind::InvalidArgument => self.accepted.withdraw(&key),
                Err(_) => {}
            }
        }
        entry.answer(&answer);
    }

    /// Refuses an intent. Without a waiting owner, the repair is put off.
    pub(crate) fn refuse(&self, key: R::Key, entry: Entry<R>, failure: Failure<R::Notice>) {
        if entry.is_maintained {
            self.accepted.hold(&key, Instant::now());
            self.resource.disturbed(&key, &entry.intent, Disturbance::Failed(failure.message));
        } else {
            self.answer(key, entry, Err(failure));
        }
    }

    /// A function that answers waiting tasks.
    fn answering(&self) -> impl FnMut(R::Key, Entry<R>, Answer<R>) + '_ {
        |key, entry, answer| self.answer(key, entry, answer)
    }

    /// Plans and writes a group once. Returns what is left to do. `elsewhere` are owners with an earlier intent in
    /// another group.
    async fn attempt(&self, mut group: Group<R>, elsewhere: &BTreeSet<R::Key>) -> Vec<Group<R>> {
        self.absorb(&mut group, elsewhere);
        group.drop_abandoned();
        self.join_accepted(&mut group, elsewhere);
        if group.entries.is_empty() {
            return Vec::new();
        }
        if let Some((refused, failure)) = group.search.as_ref().and_then(|search| search.lock().in_vain()) {
            // The refusal is about the resource, not about these owners.
            refused.iter().for_each(|key| self.suspects.lock().clear(key));
            return self.retry_or_fail(group, None, failure.not_attributable());
        }
        let span = spans::write(&self.resource.name(), group.entries.values().map(|entry| &entry.span));
        let observed = match self.resource.observe(group.newer_than).instrument(span.clone()).await {
            Ok(observed) => Arc::new(observed),
            Err(failure) => {
                spans::failed(&span, &failure.message);
                return self.retry_or_fail(group, None, failure);
            }
        };
        // Callers may have gone during the read; between here and the write is no pause.
        group.drop_abandoned();
        if group.entries.is_empty() {
            return Vec::new();
        }
        let undone = self.left_behind.lock().as_deref().and_then(|it| self.resource.undone(it, &observed));
        let observed = undone.map_or(observed, Arc::new);
        let batch = group.batch();
        let claim = self.resource.claim(&observed, &batch);
        let planned = self.resource.plan(&observed, &batch, &claim);
        let mut notices: BTreeMap<R::Key, Vec<R::Notice>> = BTreeMap::new();
        for (key, notice) in planned.notices {
            notices.entry(key).or_default().push(notice);
        }
        for (key, refusal) in planned.refused {
            let refusal_notices = notices.remove(&key).unwrap_or_default();
            if let Some(entry) = group.take(&key) {
                self.refuse(key, entry, refusal.with_notices(refusal_notices));
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
        spans::planned(&span, planned.write.is_some());
        let Some(write) = planned.write else {
            self.restore().await;
            debug!(resource = %self.resource.name(), intents = group.entries.len(), "nothing to write");
            group.answer_all(self.answering(), |key| acknowledged(key, &observed));
            return Vec::new();
        };
        let fingerprint = self.resource.fingerprint(&write);
        let verdict = self.repeats.lock().judge(fingerprint, Instant::now());
        if let Verdict::Wait(wait) = verdict {
            return self.stop_repeating(group, &write, wait, |key| acknowledged(key, &observed));
        }
        let concerned = self.resource.concerned(&write, &group.batch());
        let repairs = group.maintained(concerned.clone());
        self.answer_satisfied(&mut group, &write, concerned, |key| acknowledged(key, &observed));
        let begun = Instant::now();
        match self.resource.write(&observed, &write).instrument(span.clone()).await {
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
                    return self.retry_or_fail(group, Some(&write), Failure::new(Kind::Aborted, message));
                }
                group.conflicts = 0;
                group.newer_than = LogicalTime::now();
                vec![group]
            }
            Err(failure) => {
                spans::failed(&span, &failure.message);
                if failure.is_late() {
                    // Writes of other groups would include what Azure keeps.
                    *self.left_behind.lock() = Some(Arc::clone(&observed));
                }
                if (!failure.may_pass() || failure.may_be_a_fault_of_one())
                    && let Some(parts) = self.part(&mut group, &write)
                {
                    info!(resource = %self.resource.name(), error = %failure.message,
                        "failed to write, possibly because of repairs: they are written separately");
                    return parts;
                }
                if failure.concerns_all() {
                    self.after_trouble(group, &write, failure).await
                } else {
                    self.bisect(group, &write, failure)
                }
            }
        }
    }

    /// Answers the owners that have what they want: they do not wait for a write that others need, during which the program may end.
    fn answer_satisfied(
        &self,
        group: &mut Group<R>,
        write: &R::Write,
        concerned: Vec<R::Key>,
        acknowledged: impl Fn(&R::Key) -> Answer<R>,
    ) {
        let mut waiting: BTreeSet<R::Key> = concerned.into_iter().collect();
        waiting.retain(|key| group.entries.contains_key(key));
        if !waiting.is_empty() && !self.resource.is_repair(write) && !self.resource.serves_all(write) {
            group.answer_others(self.answering(), &waiting, acknowledged);
        }
    }

    /// Records repairs of owners without a pending intent.
    fn note_repairs(&self, group: &Group<R>, repairs: &[R::Key]) {
        for key in repairs {
            if let Some(entry) = group.entries.get(key) {
                let what = self.accepted.repaired(key, Instant::now());
                self.resource.disturbed(key, &entry.intent, what);
            }
        }
    }

    /// Continues after a write: owners whose desired state is reached are answered, the others stay in the group. A
    /// remaining difference because of new intents, or because several writes are needed, is progress; a difference that
    /// was written and is found again is not.
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
        let Some(rest) = planned.write else {
            group.answer_all(self.answering(), |key| acknowledged(key, &after));
            return Vec::new();
        };
        let wanted_before = self.resource.plan(before, &batch, claimed).write;
        if wanted_before.map(|write| self.resource.fingerprint(&write)) != Some(written) {
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
        // A difference that belongs to no owner concerns all: the group stays to handle it.
        if !waiting.is_empty() && !self.resource.is_repair(&rest) {
            waiting.extend(planned.refused.into_iter().map(|(key, _)| key));
            group.answer_others(self.answering(), &waiting, |key| acknowledged(key, &after));
        }
        (group.conflicts, group.busy) = (0, 0);
        group.newer_than = LogicalTime::BEGINNING;
        vec![group]
    }

    /// Handles a difference that was found again after it had been written: the owners that it concerns are warned and
    /// back off; the others have what they want. If it concerns owners without a pending intent, the pending ones are
    /// planned again without them.
    fn stop_repeating(
        &self,
        mut group: Group<R>,
        write: &R::Write,
        wait: Duration,
        acknowledged: impl Fn(&R::Key) -> Answer<R>,
    ) -> Vec<Group<R>> {
        let name = self.resource.name();
        let concerned = self.resource.concerned(write, &group.batch());
        warn!(resource = %name, wait_ms = wait.as_millis(), concerned = concerned.len(),
            "something undoes what is written; next try after a pause");
        let failure = || {
            let message = format!(
                "{name} does not keep what is written to it: the same difference was found again right after a \
                 successful write. Look for another program (or a policy) that changes it; next try in {} s",
                wait.as_secs()
            );
            let scope = if self.resource.serves_all(write) { Scope::All } else { Scope::Unclear };
            Failure { after: Some(wait), scope, ..Failure::new(Kind::FailedPrecondition, message) }
        };
        let not_asking = group.maintained(concerned.clone());
        if !not_asking.is_empty() {
            for key in not_asking {
                if let Some(entry) = group.take(&key) {
                    self.accepted.hold(&key, Instant::now());
                    self.resource.disturbed(&key, &entry.intent, Disturbance::Repeated(wait));
                }
            }
            group.entries.retain(|_, entry| !entry.is_maintained);
            return if group.entries.is_empty() { Vec::new() } else { vec![group] };
        }
        group.answer_all(self.answering(), |key| {
            if !concerned.contains(key) {
                return acknowledged(key);
            }
            self.accepted.hold(key, Instant::now());
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
