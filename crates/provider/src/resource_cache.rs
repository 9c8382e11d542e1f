//! Versioned cache of the resources of one list.
//!
//! # Guarantees
//!
//! * An answer was requested after the [`LogicalTime`] that the caller names, and after the latest
//!   [`ResourceCache::invalidate`]. Answers to our own writes ([`ResourceCache::store`], [`ResourceCache::remove`])
//!   count as of their arrival: what waited for a write continues with its answer. A foreign change between a write and
//!   its answer is detected by its ETag at the next write, or at the next read.
//! * Concurrent callers share one request. There is never more than one in flight.
//! * A list does not overwrite what we wrote while it was in flight.
//!
//! # Assumes
//!
//! * One list contains all resources, each under a unique name without regard to case.
//! * Azure's lists include everything that Azure acknowledged before they were requested.
//!
//! # Errors
//!
//! A failed request is an error for all callers that wait for it, never an empty list. If Azure said when to retry, it
//! is an error for all callers before that time: thousands of nodes need one list.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloud::LogicalTime;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::failure::Failure;

/// How long after its last use a list counts as unused.
const UNUSED: Duration = Duration::from_secs(5);

/// Reads the whole list.
pub(crate) type Fetch<T> = Box<dyn Fn() -> BoxFuture<'static, Result<Vec<T>, Failure>> + Send + Sync>;

/// The resources of one list, by name without regard to case.
pub(crate) struct ResourceCache<T> {
    fetch: Fetch<T>,
    name_of: fn(&T) -> String,
    known: Mutex<Known<T>>,
    flight: tokio::sync::Mutex<()>,
}

struct Known<T> {
    entries: BTreeMap<String, Entry<T>>,
    /// When the latest complete list was requested.
    listed: LogicalTime,
    /// Data read before this is outdated.
    floor: LogicalTime,
    /// The latest failed request, for the callers that waited for it.
    failed: Option<Failed>,
    /// When it was last used.
    asked: Instant,
}

/// A request that failed.
struct Failed {
    asked: LogicalTime,
    failure: Failure,
    /// The earliest time at which Azure accepts the next request.
    until: Option<Instant>,
}

impl Failed {
    /// The failure for a caller that arrived at `came`: it waited for this request, or arrived before Azure accepts the
    /// next one.
    fn for_one_who(&self, came: LogicalTime) -> Option<Failure> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.filter(|left| !left.is_zero());
        let concerns = self.asked > came || left.is_some();
        concerns.then(|| Failure { after: left.or(self.failure.after), ..self.failure.clone() })
    }
}

struct Entry<T> {
    /// `None` after our own deletion.
    document: Option<Arc<T>>,
    /// The age of the document: when it was requested.
    as_of: LogicalTime,
    /// When it arrived: a list that was requested before does not replace it.
    came: LogicalTime,
}

impl<T> fmt::Debug for ResourceCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.lock();
        f.debug_struct("ResourceCache")
            .field("entries", &known.entries.len())
            .field("listed", &known.listed)
            .finish()
    }
}

impl<T: Send + Sync + 'static> ResourceCache<T> {
    /// An empty cache. `name_of` returns a document's name, in any case.
    pub(crate) fn new(name_of: fn(&T) -> String, fetch: Fetch<T>) -> Self {
        let known = Known {
            entries: BTreeMap::new(),
            listed: LogicalTime::BEGINNING,
            floor: LogicalTime::BEGINNING,
            failed: None,
            asked: Instant::now(),
        };
        Self { fetch, name_of, known: Mutex::new(known), flight: tokio::sync::Mutex::default() }
    }

    /// Every resource, as read after `newer_than`.
    pub(crate) async fn list(&self, newer_than: LogicalTime) -> Result<Vec<Arc<T>>, Failure> {
        self.read(newer_than, |known, newer_than| {
            (known.listed > newer_than.max(known.floor)).then(|| known.present())
        })
        .await
    }

    /// One resource, as read after `newer_than`; `None` if it is known to be absent.
    pub(crate) async fn get(&self, name: &str, newer_than: LogicalTime) -> Result<Option<Arc<T>>, Failure> {
        let name = name.to_ascii_lowercase();
        self.read(newer_than, move |known, newer_than| {
            let entry = known.entries.get(&name);
            let as_of = entry.map_or(known.listed, |entry| entry.as_of);
            (as_of > newer_than.max(known.floor)).then(|| entry.and_then(|entry| entry.document.clone()))
        })
        .await
    }

    async fn read<A>(
        &self,
        newer_than: LogicalTime,
        answer: impl Fn(&Known<T>, LogicalTime) -> Option<A>,
    ) -> Result<A, Failure> {
        let came = LogicalTime::now();
        loop {
            {
                let mut known = self.known.lock();
                known.asked = Instant::now();
                if let Some(answer) = answer(&known, newer_than) {
                    return Ok(answer);
                }
            }
            let flight = self.flight.lock().await;
            {
                let known = self.known.lock();
                if let Some(answer) = answer(&known, newer_than) {
                    return Ok(answer);
                }
                if let Some(failure) = known.failed.as_ref().and_then(|failed| failed.for_one_who(came)) {
                    return Err(failure);
                }
            }
            // Other callers of this moment may join the request before it is sent.
            tokio::task::yield_now().await;
            let asked = LogicalTime::now();
            let result = (self.fetch)().await;
            let mut known = self.known.lock();
            match result {
                Ok(documents) => known.take(asked, documents, self.name_of),
                Err(failure) => {
                    let until = failure.after.map(|wait| Instant::now() + wait);
                    known.failed = Some(Failed { asked, failure: failure.clone(), until });
                    return Err(failure);
                }
            }
            drop(known);
            drop(flight);
        }
    }

    /// The cached resource, however old.
    pub(crate) fn cached(&self, name: &str) -> Option<Arc<T>> {
        self.known.lock().entries.get(&name.to_ascii_lowercase())?.document.clone()
    }

    /// Whether the list was ever read.
    pub(crate) fn was_listed(&self) -> bool {
        self.known.lock().listed > LogicalTime::BEGINNING
    }

    /// All cached resources, however old.
    pub(crate) fn all_cached(&self) -> Vec<Arc<T>> {
        self.known.lock().present()
    }

    /// Stores the answer to our own write.
    pub(crate) fn store(&self, document: T) -> Arc<T> {
        self.store_as_of(document, LogicalTime::now())
    }

    /// Stores a read of this resource alone, or `None` if it is absent, requested at the given time.
    pub(crate) fn store_reading(
        &self,
        name: &str,
        document: Option<T>,
        asked: LogicalTime,
    ) -> Option<Arc<T>> {
        match document {
            Some(document) => Some(self.store_as_of(document, asked)),
            None => {
                self.remove_as_of(name, asked);
                None
            }
        }
    }

    /// Records our own deletion.
    pub(crate) fn remove(&self, name: &str) {
        self.remove_as_of(name, LogicalTime::now());
    }

    fn store_as_of(&self, document: T, as_of: LogicalTime) -> Arc<T> {
        let document = Arc::new(document);
        let entry = Entry { document: Some(Arc::clone(&document)), as_of, came: LogicalTime::now() };
        self.known.lock().entries.insert((self.name_of)(&document).to_ascii_lowercase(), entry);
        document
    }

    fn remove_as_of(&self, name: &str, as_of: LogicalTime) {
        let entry = Entry { document: None, as_of, came: LogicalTime::now() };
        self.known.lock().entries.insert(name.to_ascii_lowercase(), entry);
    }

    /// Drops the list whenever it is unused, for as long as the cache exists. For lists of thousands of entries that
    /// are used when something happens, and then mostly for newer data: older reads are seldom an answer.
    pub(crate) fn forget_when_unused(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(UNUSED).await;
                let Some(this) = this.upgrade() else { return };
                let mut known = this.known.lock();
                if known.asked.elapsed() >= UNUSED {
                    known.entries.clear();
                    known.listed = LogicalTime::BEGINNING;
                }
            }
        });
    }

    /// Marks everything as outdated because any of the resources may have changed.
    pub(crate) fn invalidate(&self) {
        self.known.lock().floor = LogicalTime::now();
    }
}

impl<T> Known<T> {
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
        self.failed = None;
        // The callers that waited for it use it now.
        self.asked = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::failure::Kind;

    struct World {
        reads: AtomicUsize,
        names: Mutex<Result<Vec<&'static str>, Failure>>,
    }

    fn cache(names: &[&'static str]) -> (Arc<World>, Arc<ResourceCache<String>>) {
        let world = Arc::new(World { reads: AtomicUsize::new(0), names: Mutex::new(Ok(names.to_vec())) });
        let azure = Arc::clone(&world);
        let fetch: Fetch<String> = Box::new(move || {
            let azure = Arc::clone(&azure);
            Box::pin(async move {
                azure.reads.fetch_add(1, Ordering::Relaxed);
                let names = azure.names.lock().clone();
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(names?.into_iter().map(str::to_owned).collect())
            })
        });
        (world, Arc::new(ResourceCache::new(|name: &String| name.clone(), fetch)))
    }

    #[tokio::test(start_paused = true)]
    async fn questions_of_one_moment_share_one_request() {
        let (world, list) = cache(&["a", "b"]);
        let questions = (0..50).map(|_| async { list.list(LogicalTime::now()).await.unwrap().len() });
        assert!(futures::future::join_all(questions).await.into_iter().all(|count| count == 2));
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_asked_for_before_the_cause_does_not_count() {
        let (world, list) = cache(&["a"]);
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
        let (_world, list) = cache(&["a", "b"]);
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
        let (world, list) = cache(&["a"]);
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
    async fn a_failed_request_is_an_error_for_all_who_waited_and_never_an_empty_list() {
        let (world, list) = cache(&["a"]);
        *world.names.lock() = Err(Failure::new(Kind::Unavailable, "503"));
        let questions = (0..20).map(|_| async { list.get("a", LogicalTime::now()).await });
        assert!(futures::future::join_all(questions).await.into_iter().all(|answer| answer.is_err()));
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
        *world.names.lock() = Ok(vec!["a"]);
        assert!(list.get("A", LogicalTime::BEGINNING).await.unwrap().is_some());
    }

    /// NODE-262: a caller before the time of the next request gets the known failure, with the remaining time.
    #[tokio::test(start_paused = true)]
    async fn node_262_a_failed_request_is_not_repeated_before_azure_wants_it() {
        let (world, list) = cache(&["a"]);
        let busy =
            Failure { after: Some(Duration::from_secs(120)), ..Failure::new(Kind::Unavailable, "503") };
        *world.names.lock() = Err(busy);
        assert!(list.list(LogicalTime::now()).await.is_err());
        tokio::time::sleep(Duration::from_secs(20)).await;
        for _ in 0..100 {
            let failure = list.get("a", LogicalTime::now()).await.unwrap_err();
            assert_eq!((failure.after, failure.message.as_str()), (Some(Duration::from_secs(100)), "503"));
        }
        assert_eq!(world.reads.load(Ordering::Relaxed), 1);
        *world.names.lock() = Ok(vec!["a"]);
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(list.get("a", LogicalTime::now()).await.unwrap().is_some());
        assert_eq!(world.reads.load(Ordering::Relaxed), 2);
    }

    /// NODE-289: an unused list is dropped, and read again for the next caller.
    #[tokio::test(start_paused = true)]
    async fn node_289_a_list_that_nobody_asks_is_forgotten() {
        let (world, list) = cache(&["a"]);
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
        let (world, list) = cache(&["a"]);
        list.list(LogicalTime::BEGINNING).await.unwrap();
        list.store("x".to_owned());
        list.invalidate();
        assert!(list.get("x", LogicalTime::BEGINNING).await.unwrap().is_none());
        assert_eq!(world.reads.load(Ordering::Relaxed), 2);
    }
}
