//! Work queues with keys.
//!
//! A key is in a queue at most once, and never processed twice at a time: a key that is added while it is being
//! processed is processed once more afterwards. Failed keys return after Go's exponential backoff, or when the failure
//! said so.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::observer::Observer;

/// Exponential backoff of one key: `base`, twice that, … up to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
}

impl Backoff {
    /// Backoff of Services and of the sync of all nodes, as in upstream's service controller.
    pub const SERVICES: Self = Self { base: Duration::from_secs(5), max: Duration::from_secs(300) };
    /// Backoff of single nodes. Go's controllers start at 5 ms, against a nearby API server; here the failed call is
    /// mostly one to the cloud, whose answer does not change within a third of a second. A new node takes no pods
    /// meanwhile, so that the longest wait is short.
    pub const NODES: Self = Self { base: Duration::from_secs(1), max: Duration::from_secs(60) };

    /// Backoff of Cluster API infrastructure: the longest wait is that of Go's controllers, the first one is the time
    /// after which a refused call to a cloud may get another answer.
    pub const INFRASTRUCTURE: Self = Self { base: Duration::from_secs(1), max: Duration::from_secs(1000) };

    /// The wait after so many consecutive failures, counted from 0.
    pub fn after(self, failures: u32) -> Duration {
        // 2^31 times the smallest base here, a second, is beyond every maximum.
        self.base.saturating_mul(1_u32 << failures.min(31)).min(self.max)
    }
}

/// Maximum number of nodes that are reconciled in parallel. Their calls to the cloud are merged into lists, so this
/// limits the parallel writes to the API server.
pub(crate) const MAX_PARALLEL_NODES: usize = 64;

/// The longest wait of a key. A failure that asks for more (a `Retry-After` may contain any number) is retried after
/// this time.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The number of keys for which an empty queue keeps memory.
const KEPT_CAPACITY: usize = 64;

/// What happens to a key after it was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing; resets earlier failures.
    Done,
    /// Retried after the backoff.
    Retry,
    /// Retried after this time; earlier failures still count.
    After(Duration),
    /// Processed again after this time; resets earlier failures.
    DoneFor(Duration),
}

enum Entry {
    Ready { since: Instant },
    Waiting { slot: (Instant, u64) },
    Running { since: Instant, then: Then },
}

#[derive(Clone, Copy)]
enum Then {
    Nothing,
    Now,
    At(Instant),
}

struct Inner<K> {
    entries: HashMap<K, Entry>,
    ready: VecDeque<K>,
    waiting: BTreeMap<(Instant, u64), K>,
    failures: HashMap<K, u32>,
    sequence: u64,
}

struct Shared<K> {
    name: &'static str,
    backoff: Backoff,
    observer: Arc<dyn Observer>,
    inner: Mutex<Inner<K>>,
    wake: Notify,
}

/// A queue; clones are handles to the same one.
pub struct Queue<K>(Arc<Shared<K>>);

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({}, {} keys)", self.0.name, self.0.inner.lock().entries.len())
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue; `name` is its name in metrics.
    pub fn new(name: &'static str, backoff: Backoff, observer: Arc<dyn Observer>) -> Self {
        Self(Arc::new(Shared {
            name,
            backoff,
            observer,
            inner: Mutex::new(Inner {
                entries: HashMap::new(),
                ready: VecDeque::new(),
                waiting: BTreeMap::new(),
                failures: HashMap::new(),
                sequence: 0,
            }),
            wake: Notify::new(),
        }))
    }

    /// Its name in metrics and traces.
    pub(crate) fn name(&self) -> &'static str {
        self.0.name
    }

    /// Queues a key for now, even if it waits for its backoff.
    pub fn add(&self, key: K) {
        let mut inner = self.0.inner.lock();
        match inner.entries.get_mut(&key) {
            Some(Entry::Ready { .. }) => return,
            Some(Entry::Running { then, .. }) => {
                *then = Then::Now;
                return;
            }
            Some(Entry::Waiting { slot }) => {
                let slot = *slot;
                inner.waiting.remove(&slot);
            }
            None => {}
        }
        inner.make_ready(key);
        let depth = inner.ready.len();
        drop(inner);
        self.0.observer.queue_added(self.0.name, depth);
        self.0.wake.notify_one();
    }

    /// The next key that is due. The caller processes it and then calls [`Self::finish`].
    ///
    /// Dropping the returned future loses nothing.
    pub async fn next(&self) -> K {
        loop {
            let due = match self.take() {
                Ok(key) => return key,
                Err(due) => due,
            };
            let woken = self.0.wake.notified();
            match due {
                Some(at) => tokio::select! {
                    () = woken => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => woken.await,
            }
        }
    }

    fn take(&self) -> Result<K, Option<Instant>> {
        let now = Instant::now();
        let mut inner = self.0.inner.lock();
        while let Some(entry) = inner.waiting.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            inner.make_ready(key);
            self.0.observer.queue_added(self.0.name, inner.ready.len());
        }
        let Some(key) = inner.ready.pop_front() else {
            return Err(inner.waiting.first_key_value().map(|((at, _), _)| *at));
        };
        let running = Entry::Running { since: now, then: Then::Nothing };
        let waited = match inner.entries.insert(key.clone(), running) {
            Some(Entry::Ready { since }) => now.duration_since(since),
            _ => Duration::ZERO,
        };
        let depth = inner.ready.len();
        drop(inner);
        self.0.observer.queue_taken(self.0.name, now, waited, depth);
        Ok(key)
    }

    /// Ends the processing of a key.
    pub fn finish(&self, key: K, next: Next) {
        let now = Instant::now();
        let mut inner = self.0.inner.lock();
        let Some(Entry::Running { since, then }) = inner.entries.remove(&key) else { return };
        let retry = match next {
            Next::Done => {
                inner.failures.remove(&key);
                Then::Nothing
            }
            Next::DoneFor(wait) => {
                inner.failures.remove(&key);
                Then::At(now + wait.min(MAX_WAIT))
            }
            Next::Retry => {
                let failures = inner.failures.entry(key.clone()).or_default();
                let wait = self.0.backoff.after(*failures);
                *failures = failures.saturating_add(1);
                Then::At(now + wait)
            }
            Next::After(wait) => Then::At(now + wait.min(MAX_WAIT)),
        };
        match (then, retry) {
            (Then::Now, _) | (_, Then::Now) => {
                inner.make_ready(key);
                self.0.observer.queue_added(self.0.name, inner.ready.len());
            }
            (Then::At(at), _) | (Then::Nothing, Then::At(at)) => inner.make_wait(key, at),
            (Then::Nothing, Then::Nothing) => inner.shrink_if_empty(),
        }
        drop(inner);
        if next != Next::Done {
            self.0.observer.queue_retried(self.0.name);
        }
        self.0.observer.queue_worked(self.0.name, since, now.duration_since(since));
        self.0.wake.notify_one();
    }

    /// Processes keys as they become due, at most `parallelism` at a time, until `stop`; then waits up to `drain` for
    /// running tasks and abandons the rest.
    pub async fn work<F, R>(self, parallelism: usize, stop: CancellationToken, drain: Duration, work: F)
    where
        K: Send + Sync + 'static,
        F: Fn(K) -> R,
        R: Future<Output = Next> + Send + 'static,
    {
        self.0.observer.queue_opened(self.0.name, parallelism.max(1));
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = running.join_next(), if !running.is_empty() => propagate_panic(ended),
                key = self.next(), if running.len() < parallelism.max(1) => {
                    let queue = self.clone();
                    let work = work(key.clone());
                    running.spawn(async move {
                        let next = work.await;
                        queue.finish(key, next);
                    });
                }
            }
        }
        let drained = tokio::time::timeout(drain, async {
            while let Some(ended) = running.join_next().await {
                propagate_panic(ended);
            }
        });
        if drained.await.is_err() {
            tracing::warn!(queue = self.0.name, abandoned = running.len(), "stopped with work unfinished");
        }
    }
}

impl<K: Clone + Eq + Hash> Inner<K> {
    /// Frees the memory of thousands of keys that came at once.
    fn shrink_if_empty(&mut self) {
        if self.entries.is_empty() {
            self.entries.shrink_to(KEPT_CAPACITY);
            self.ready.shrink_to(KEPT_CAPACITY);
        }
    }

    fn make_ready(&mut self, key: K) {
        self.entries.insert(key.clone(), Entry::Ready { since: Instant::now() });
        self.ready.push_back(key);
    }

    fn make_wait(&mut self, key: K, at: Instant) {
        self.sequence += 1;
        let slot = (at, self.sequence);
        self.entries.insert(key.clone(), Entry::Waiting { slot });
        self.waiting.insert(slot, key);
    }
}

/// Propagates a panic in a task to its parent: a controller that lost a worker must not look healthy.
pub(crate) fn propagate_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::observer::NoObserver;

    fn queue(backoff: Backoff) -> Queue<&'static str> {
        Queue::new("test", backoff, Arc::new(NoObserver))
    }

    async fn due_within(queue: &Queue<&'static str>, wait: Duration) -> Option<(&'static str, Duration)> {
        let start = Instant::now();
        let key = tokio::time::timeout(wait, queue.next()).await.ok()?;
        Some((key, start.elapsed()))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_key_is_queued_once() {
        let queue = queue(Backoff::SERVICES);
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!(due_within(&queue, SECOND).await, Some(("a", Duration::ZERO)));
        assert_eq!(due_within(&queue, SECOND).await, Some(("b", Duration::ZERO)));
        assert_eq!(due_within(&queue, SECOND).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_added_while_its_work_runs_runs_once_more_afterwards() {
        let queue = queue(Backoff::SERVICES);
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("a");
        assert_eq!(due_within(&queue, SECOND).await, None);
        queue.finish("a", Next::Done);
        assert_eq!(due_within(&queue, SECOND).await, Some(("a", Duration::ZERO)));
        queue.finish("a", Next::Done);
        assert_eq!(due_within(&queue, SECOND).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_as_in_go_and_success_forgets_them() {
        let queue = queue(Backoff::SERVICES);
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            queue.finish("a", Next::Retry);
            let (key, waited) = due_within(&queue, Duration::from_secs(1000)).await.unwrap();
            assert_eq!((key, waited.as_secs()), ("a", seconds));
        }
        for forgets in [Next::Done, Next::DoneFor(Duration::from_secs(17))] {
            queue.finish("a", forgets);
            queue.add("a");
            assert_eq!(queue.next().await, "a");
            queue.finish("a", Next::Retry);
            assert_eq!(due_within(&queue, Duration::from_secs(1000)).await.unwrap().1.as_secs(), 5);
        }
        queue.finish("a", Next::After(Duration::from_secs(17)));
        assert_eq!(due_within(&queue, Duration::from_secs(1000)).await.unwrap().1.as_secs(), 17);
        queue.finish("a", Next::Retry);
        assert_eq!(due_within(&queue, Duration::from_secs(1000)).await.unwrap().1.as_secs(), 10);
    }

    #[test]
    fn node_back_off_reaches_its_cap() {
        assert_eq!(Backoff::NODES.after(0), Duration::from_secs(1));
        assert_eq!(Backoff::NODES.after(5), Duration::from_secs(32));
        assert_eq!(Backoff::NODES.after(6), Duration::from_secs(60));
        assert_eq!(Backoff::NODES.after(u32::MAX), Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn an_explicit_wait_is_kept_and_does_not_grow() {
        let queue = queue(Backoff::SERVICES);
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        for _ in 0..3 {
            queue.finish("a", Next::After(Duration::from_secs(17)));
            assert_eq!(due_within(&queue, Duration::from_secs(1000)).await.unwrap().1.as_secs(), 17);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_all_time_is_an_hour() {
        let queue = queue(Backoff::SERVICES);
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.finish("a", Next::After(Duration::MAX));
        assert_eq!(due_within(&queue, Duration::from_secs(4000)).await.unwrap().1.as_secs(), 3600);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_reason_cuts_the_back_off_short() {
        let queue = queue(Backoff::SERVICES);
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.finish("a", Next::After(Duration::from_secs(300)));
        queue.add("a");
        assert_eq!(due_within(&queue, SECOND).await, Some(("a", Duration::ZERO)));
        queue.finish("a", Next::Done);
        assert_eq!(due_within(&queue, Duration::from_secs(1000)).await, None, "the wait is over with it");
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_bounded_and_one_key_never_runs_twice_at_once() {
        let queue: Queue<usize> = Queue::new("test", Backoff::SERVICES, Arc::new(NoObserver));
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..11).map(|_| AtomicUsize::new(0)).collect());
        let stop = CancellationToken::new();
        let worker = tokio::spawn(queue.clone().work(4, stop.clone(), SECOND, {
            let counts = Arc::clone(&counts);
            move |key: usize| {
                let counts = Arc::clone(&counts);
                async move {
                    assert_eq!(counts[key].fetch_add(1, Ordering::SeqCst), 0, "key {key} runs twice");
                    assert!(counts[10].fetch_add(1, Ordering::SeqCst) < 4, "more than four at once");
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    counts[10].fetch_sub(1, Ordering::SeqCst);
                    counts[key].fetch_sub(1, Ordering::SeqCst);
                    Next::Done
                }
            }
        }));
        for round in 0..20 {
            for key in 0..10 {
                queue.add(key);
            }
            tokio::time::sleep(Duration::from_millis(700 + round)).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(queue.0.inner.lock().entries.is_empty());
        stop.cancel();
        worker.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_waits_for_running_work_and_then_abandons_it() {
        for (length, finished) in [(2, true), (60, false)] {
            let queue = queue(Backoff::SERVICES);
            let done = Arc::new(AtomicUsize::new(0));
            let stop = CancellationToken::new();
            let worker = tokio::spawn(queue.clone().work(4, stop.clone(), Duration::from_secs(10), {
                let done = Arc::clone(&done);
                move |_| {
                    let done = Arc::clone(&done);
                    async move {
                        tokio::time::sleep(Duration::from_secs(length)).await;
                        done.fetch_add(1, Ordering::SeqCst);
                        Next::Done
                    }
                }
            }));
            queue.add("a");
            tokio::time::sleep(SECOND).await;
            stop.cancel();
            queue.add("b");
            worker.await.unwrap();
            tokio::time::sleep(Duration::from_secs(100)).await;
            assert_eq!(done.load(Ordering::SeqCst) == 1, finished, "work of {length} s");
        }
    }
}
