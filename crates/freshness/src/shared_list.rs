//! The resources of one list, shared by all that read them.
//!
//! # Guarantees
//!
//! * An answer was requested after the [`LogicalTime`] that the caller names, and after the latest
//!   [`SharedList::invalidate`]. Answers to our own writes ([`SharedList::store`], [`SharedList::remove`]) count as of
//!   their arrival: what waited for a write continues with its answer. A foreign change between a write and its answer
//!   is detected by its version at the next write, or at the next read.
//! * Concurrent callers share one request. There is never more than one in flight.
//! * A list does not overwrite what we wrote while it was in flight.
//!
//! # Assumes
//!
//! * One list contains all resources, each under a unique name without regard to case.
//! * The server's lists include everything that it acknowledged before they were requested.
//!
//! # Errors
//!
//! A failed request is an error for all callers that wait for it, never an empty list. If the server said when to
//! retry, it is an error for all callers before that time: thousands of nodes need one list.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use logical_time::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::SharedError;
use crate::flight::Flight;

/// How long after its last use a list counts as unused.
const UNUSED: Duration = Duration::from_secs(5);

/// Reads the whole list.
pub type Fetch<T, E> = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<T>, E>> + Send>> + Send + Sync>;

/// The resources of one list, by name without regard to case.
pub struct SharedList<T, E> {
    fetch: Fetch<T, E>,
    name_of: fn(&T) -> String,
    state: Mutex<ListState<T>>,
    flight: Flight<E>,
    /// Notified when a list has been read.
    read: Notify,
}

struct ListState<T> {
    entries: BTreeMap<String, Entry<T>>,
    /// When the latest complete list was requested.
    listed: LogicalTime,
    /// Data read before this is outdated.
    floor: LogicalTime,
    /// When it was last used.
    used: Instant,
}

struct Entry<T> {
    /// `None` after our own deletion.
    document: Option<Arc<T>>,
    /// The age of the document: when it was requested.
    as_of: LogicalTime,
    /// When it arrived: a list that was requested before does not replace it.
    came: LogicalTime,
}

impl<T, E> fmt::Debug for SharedList<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("SharedList")
            .field("entries", &state.entries.len())
            .field("listed", &state.listed)
            .finish()
    }
}

impl<T: Send + Sync + 'static, E: SharedError + Send + 'static> SharedList<T, E> {
    /// A list that was not read yet. `name_of` returns a document's name, in any case.
    pub fn new(name_of: fn(&T) -> String, fetch: Fetch<T, E>) -> Self {
        let state = ListState {
            entries: BTreeMap::new(),
            listed: LogicalTime::BEGINNING,
            floor: LogicalTime::BEGINNING,
            used: Instant::now(),
        };
        Self { fetch, name_of, state: Mutex::new(state), flight: Flight::default(), read: Notify::new() }
    }

    /// Every resource, as read after `newer_than`.
    ///
    /// # Errors
    /// The request fails.
    pub async fn list(&self, newer_than: LogicalTime) -> Result<Vec<Arc<T>>, E> {
        self.answer(|state| (state.listed > newer_than.max(state.floor)).then(|| state.present())).await
    }

    /// One resource, as read after `newer_than`; `None` if it is known to be absent.
    ///
    /// # Errors
    /// The request fails.
    pub async fn get(&self, name: &str, newer_than: LogicalTime) -> Result<Option<Arc<T>>, E> {
        let name = name.to_ascii_lowercase();
        self.answer(move |state| {
            let entry = state.entries.get(&name);
            let as_of = entry.map_or(state.listed, |entry| entry.as_of);
            (as_of > newer_than.max(state.floor)).then(|| entry.and_then(|entry| entry.document.clone()))
        })
        .await
    }

    /// One resource, as read from now on: as soon as another caller has read the list, or by a request of its own once
    /// it is `due`.
    ///
    /// # Errors
    /// The request fails.
    pub async fn get_when(&self, name: &str, due: impl Future<Output = ()>) -> Result<Option<Arc<T>>, E> {
        let came = LogicalTime::now();
        let read_by_others = async {
            loop {
                let read = self.read.notified();
                if self.state.lock().listed > came {
                    return;
                }
                read.await;
            }
        };
        tokio::select! {
            biased;
            () = read_by_others => {}
            () = due => {}
        }
        self.get(name, came).await
    }

    async fn answer<A>(&self, answer: impl Fn(&ListState<T>) -> Option<A>) -> Result<A, E> {
        let came = LogicalTime::now();
        let known = || {
            let mut state = self.state.lock();
            state.used = Instant::now();
            answer(&state)
        };
        loop {
            if let Some(answer) = known() {
                return Ok(answer);
            }
            let take = |asked: crate::Moment, documents| {
                let mut state = self.state.lock();
                state.take(asked.order, documents, self.name_of);
                self.read.notify_waiters();
                answer(&state)
            };
            if let Some(answer) = self.flight.share(came, || known().map(Some), &self.fetch, take).await? {
                return Ok(answer);
            }
        }
    }

    /// The cached resource, however old.
    pub fn cached(&self, name: &str) -> Option<Arc<T>> {
        self.state.lock().entries.get(&name.to_ascii_lowercase())?.document.clone()
    }

    /// Whether the list was ever read, and not forgotten since.
    pub fn was_listed(&self) -> bool {
        self.state.lock().listed > LogicalTime::BEGINNING
    }

    /// All cached resources, however old.
    pub fn all_cached(&self) -> Vec<Arc<T>> {
        self.state.lock().present()
    }

    /// Stores the answer to our own write.
    pub fn store(&self, document: T) -> Arc<T> {
        let document = Arc::new(document);
        self.put(&(self.name_of)(&document), Some(Arc::clone(&document)), LogicalTime::now());
        document
    }

    /// Stores a read of this resource alone, or `None` if it is absent, requested at the given time.
    pub fn store_reading(&self, name: &str, document: Option<T>, asked: LogicalTime) -> Option<Arc<T>> {
        let document = document.map(Arc::new);
        self.put(name, document.clone(), asked);
        document
    }

    /// Records our own deletion.
    pub fn remove(&self, name: &str) {
        self.put(name, None, LogicalTime::now());
    }

    fn put(&self, name: &str, document: Option<Arc<T>>, as_of: LogicalTime) {
        let entry = Entry { document, as_of, came: LogicalTime::now() };
        self.state.lock().entries.insert(name.to_ascii_lowercase(), entry);
    }

    /// Drops the list whenever it is unused, for as long as the cache exists. For lists of thousands of entries that
    /// are used when something happens, and then mostly for newer data: older reads are seldom an answer.
    pub fn forget_when_unused(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UNUSED).await;
                let Some(this) = this.upgrade() else { return };
                let mut state = this.state.lock();
                if state.used.elapsed() >= UNUSED {
                    state.entries.clear();
                    state.listed = LogicalTime::BEGINNING;
                }
            }
        });
    }

    /// Marks everything as outdated because any of the resources may have changed.
    pub fn invalidate(&self) {
        self.state.lock().floor = LogicalTime::now();
    }
}

impl<T> ListState<T> {
    fn present(&self) -> Vec<Arc<T>> {
        self.entries.values().filter_map(|entry| entry.document.clone()).collect()
    }

    fn take(&mut self, asked: LogicalTime, documents: Vec<T>, name_of: fn(&T) -> String) {
        // Entries that arrived after the list was requested may be newer than the list; the list is then as old as the
        // oldest of them.
        self.entries.retain(|_, entry| entry.came > asked);
        let oldest = self.entries.values().map(|entry| entry.as_of).min();
        for document in documents {
            let name = name_of(&document).to_ascii_lowercase();
            self.entries.entry(name).or_insert_with(|| Entry {
                document: Some(Arc::new(document)),
                as_of: asked,
                came: asked,
            });
        }
        self.listed = oldest.map_or(asked, |oldest| oldest.min(asked));
        // The callers that waited for it use it now.
        self.used = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Failure(Option<Duration>);

    impl SharedError for Failure {
        fn retry_after(&self) -> Option<Duration> {
            self.0
        }

        fn with_retry_after(self, left: Duration) -> Self {
            Self(Some(left))
        }
    }

    struct World {
        reads: AtomicUsize,
        names: Mutex<Result<Vec<&'static str>, Failure>>,
    }

    fn shared(names: &[&'static str]) -> (Arc<World>, Arc<SharedList<String, Failure>>) {
        let world = Arc::new(World { reads: AtomicUsize::new(0), names: Mutex::new(Ok(names.to_vec())) });
        let azure = Arc::clone(&world);
        let fetch: Fetch<String, Failure> = Box::new(move || {
            let azure = Arc::clone(&azure);
            Box::pin(async move {
                azure.reads.fetch_add(1, Ordering::Relaxed);
                let names = azure.names.lock().clone();
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(names?.into_iter().map(str::to_owned).collect())
            })
        });
        (world, Arc::new(SharedList::new(|name: &String| name.clone(), fetch)))
    }

    #[tokio::test(start_paused = true)]
    async fn questions_of_one_moment_share_one_request() {
        let (world, list) = shared(&["a", "b"]);
        let questions = (0..50).map(|_| async { list.list(LogicalTime::now()).await.unwrap().len() });
        assert!(futures::future::join_all(questions).await.into_iter().all(|count| count == 2));
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_asked_for_before_the_cause_does_not_count() {
        let (world, list) = shared(&["a"]);
        let early = tokio::spawn({
            let list = Arc::clone(&list);
            async move { list.list(LogicalTime::BEGINNING).await.unwrap().len() }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        *world.names.lock() = Ok(vec!["a", "b"]);
        assert_eq!(list.list(LogicalTime::now()).await.unwrap().len(), 2);
        assert_eq!(early.await.unwrap(), 1);
        assert_eq!(list.list(LogicalTime::BEGINNING).await.unwrap().len(), 2);
        assert_eq!(world.reads.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn our_own_writes_are_newer_than_a_list_that_was_under_way() {
        let (_world, list) = shared(&["a", "b"]);
        let reading = tokio::spawn({
            let list = Arc::clone(&list);
            async move { list.list(LogicalTime::BEGINNING).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        list.remove("A");
        list.store("c".to_owned());
        let names: Vec<String> = reading.await.unwrap().iter().map(|name| (**name).clone()).collect();
        assert_eq!(names, ["b", "c"]);
    }

    /// C4: data is as old as its request. What changed between request and answer is requested again.
    #[tokio::test(start_paused = true)]
    async fn a_reading_is_as_old_as_its_question() {
        let (world, list) = shared(&["a"]);
        let asked = LogicalTime::now();
        let changed = LogicalTime::now();
        list.store_reading("a", Some("a".to_owned()), asked);
        assert!(list.get("a", LogicalTime::BEGINNING).await.unwrap().is_some());
        assert_eq!(world.reads.load(Ordering::Relaxed), 0);
        list.get("a", changed).await.unwrap();
        assert_eq!(world.reads.load(Ordering::Relaxed), 1, "it was asked for before the change");
        // A read that arrives while a list is in flight is kept, and makes the list no newer than itself.
        let asked = LogicalTime::now();
        let changed = LogicalTime::now();
        let reading = tokio::spawn({
            let list = Arc::clone(&list);
            async move { list.list(changed).await.unwrap().len() }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        list.store_reading("b", Some("b".to_owned()), asked);
        assert_eq!(reading.await.unwrap(), 1, "the list was read again, and b is not in it");
        assert_eq!(world.reads.load(Ordering::Relaxed), 3);
        // Our own write is as new as its answer.
        let before = LogicalTime::now();
        list.store("c".to_owned());
        assert!(list.get("c", before).await.unwrap().is_some());
        assert_eq!(world.reads.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_request_is_an_error_for_all_that_waited_and_never_an_empty_list() {
        let (world, list) = shared(&["a"]);
        *world.names.lock() = Err(Failure(None));
        let questions = (0..20).map(|_| async { list.get("a", LogicalTime::now()).await });
        assert!(futures::future::join_all(questions).await.into_iter().all(|answer| answer.is_err()));
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
        *world.names.lock() = Ok(vec!["a"]);
        assert!(list.get("A", LogicalTime::BEGINNING).await.unwrap().is_some());
    }

    /// NODE-262: a caller before the time of the next request gets the known failure, with the remaining time.
    #[tokio::test(start_paused = true)]
    async fn node_262_a_failed_request_is_not_repeated_before_the_server_wants_it() {
        let (world, list) = shared(&["a"]);
        *world.names.lock() = Err(Failure(Some(Duration::from_secs(120))));
        assert!(list.list(LogicalTime::now()).await.is_err());
        tokio::time::sleep(Duration::from_secs(20)).await;
        for _ in 0..100 {
            let failure = list.get("a", LogicalTime::now()).await.unwrap_err();
            assert_eq!(failure, Failure(Some(Duration::from_secs(100))));
        }
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
        *world.names.lock() = Ok(vec!["a"]);
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(list.get("a", LogicalTime::now()).await.unwrap().is_some());
        assert_eq!(world.reads.load(Ordering::Relaxed), 2);
    }

    /// NODE-289: an unused list is dropped, and read again for the next caller.
    #[tokio::test(start_paused = true)]
    async fn node_289_an_unused_list_is_forgotten() {
        let (world, list) = shared(&["a"]);
        list.forget_when_unused();
        for _ in 0..10 {
            assert!(list.get("a", LogicalTime::BEGINNING).await.unwrap().is_some());
            tokio::time::sleep(UNUSED / 2).await;
        }
        assert_eq!((world.reads.load(Ordering::Relaxed), list.all_cached().len()), (1, 1));
        tokio::time::sleep(UNUSED * 2).await;
        assert_eq!(list.all_cached().len(), 0);
        assert!(list.get("a", LogicalTime::BEGINNING).await.unwrap().is_some());
        assert_eq!(world.reads.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn invalidation_forces_the_next_reading() {
        let (world, list) = shared(&["a"]);
        list.list(LogicalTime::BEGINNING).await.unwrap();
        list.store("x".to_owned());
        list.invalidate();
        assert!(list.get("x", LogicalTime::BEGINNING).await.unwrap().is_none());
        assert_eq!(world.reads.load(Ordering::Relaxed), 2);
    }

    /// LB-493: callers that wait for a change of their resource each have a time at which they look, and see what any
    /// of them reads.
    #[tokio::test(start_paused = true)]
    async fn a_list_that_one_caller_reads_answers_all_that_wait_for_theirs() {
        let (world, list) = shared(&["a", "b"]);
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let wait = async |name, seconds| {
            let document = list.get_when(name, tokio::time::sleep(seconds * second)).await.unwrap();
            (document.is_some(), begin.elapsed())
        };
        let late = async {
            tokio::time::sleep(second * 7 / 2).await;
            wait("b", 90).await
        };
        let later = async {
            tokio::time::sleep(5 * second).await;
            wait("a", 2).await
        };
        let all = tokio::join!(wait("a", 3), wait("B", 90), wait("c", 90), late, later);
        let (first, next) = (4 * second, 8 * second);
        assert_eq!(all, ((true, first), (true, first), (false, first), (true, next), (true, next)));
        assert_eq!(world.reads.load(Ordering::Relaxed), 2, "what waits is not answered by an older request");
    }

    /// Of all that are due at one moment, one asks.
    #[tokio::test(start_paused = true)]
    async fn callers_that_are_due_together_share_one_request() {
        let (world, list) = shared(&["a"]);
        let due = || tokio::time::sleep(Duration::from_secs(3));
        let all = (0..50).map(|_| list.get_when("a", due()));
        assert!(futures::future::join_all(all).await.into_iter().all(|one| one.unwrap().is_some()));
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
    }
}
