//! Tests of the writer alone, against a shelf that behaves like an Azure resource.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use logical_time::LogicalTime;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::trouble::MAX_CONFLICTS;
use crate::writer::MAX_LINGER;
use crate::{Disturbance, Kind, Pace, Planned, Resource, Scope, Writer, Writers, Written};

type Failure = crate::Failure;
type Items = BTreeMap<String, u32>;

#[derive(Clone, Debug, PartialEq)]
struct Document {
    etag: u64,
    items: Items,
}

/// The behaviour of the shelf.
struct Behaviour {
    document: Document,
    /// Items that are refused.
    bad: BTreeSet<String>,
    /// Whether a refusal names the item.
    names_culprits: bool,
    /// The refusal, without its text.
    refusal: Failure,
    /// Answers to the next writes; the last one comes first.
    failures: Vec<Failure>,
    /// How many of the next writes lose a race.
    raced: usize,
    /// Whether writes are accepted and forgotten.
    forgetful: bool,
    /// Items that are removed again after each write.
    forgets: BTreeSet<String>,
    /// The contents of item "nodes" from one write to the next; the last one comes first.
    nodes: Vec<u32>,
    /// Obstacles of the next writes; the last one comes first.
    obstacles: Vec<u64>,
    /// Items that replace all others after each write, in turns.
    turns: Vec<&'static str>,
    /// An item, and the kind with which its writes fail.
    bad_kind: Option<(Kind, &'static str)>,
    /// Whether accepted intents stay wanted.
    is_maintained: bool,
    /// Recorded changes of owners without a pending intent.
    disturbed: Vec<(String, Disturbance)>,
    /// Whether intents to add items count only while their callers wait.
    needs_callers: bool,
    /// The values whose callers wait, and those that were written although their callers had gone.
    waited_for: BTreeSet<u32>,
    orphans: Vec<u32>,
    /// Duration of a read and of a write.
    reading: Duration,
    latency: Duration,
    attempts: usize,
    reads: usize,
    /// The claimed versions.
    claimed: Vec<u64>,
}

#[derive(Clone)]
struct Shelf(Arc<Mutex<Behaviour>>);

impl Shelf {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Behaviour {
            document: Document { etag: 1, items: Items::new() },
            bad: BTreeSet::new(),
            names_culprits: false,
            refusal: Failure::new(Kind::InvalidArgument, ""),
            failures: Vec::new(),
            raced: 0,
            forgetful: false,
            forgets: BTreeSet::new(),
            nodes: Vec::new(),
            obstacles: Vec::new(),
            turns: Vec::new(),
            bad_kind: None,
            is_maintained: false,
            disturbed: Vec::new(),
            needs_callers: false,
            waited_for: BTreeSet::new(),
            orphans: Vec::new(),
            reading: Duration::ZERO,
            latency: Duration::from_secs(1),
            attempts: 0,
            reads: 0,
            claimed: Vec::new(),
        })))
    }

    /// A shelf on which accepted intents stay wanted.
    fn maintaining() -> Self {
        let shelf = Self::new();
        shelf.0.lock().is_maintained = true;
        shelf
    }

    /// A shelf on which an item is added only while the caller waits for it.
    fn with_callers() -> Self {
        let shelf = Self::new();
        shelf.0.lock().needs_callers = true;
        shelf
    }

    /// Records the new values for which no caller waits when a write begins.
    fn note_orphans(&self, before: &Items, after: &Items) {
        let mut shelf = self.0.lock();
        let new =
            after.iter().filter(|(key, value)| before.get(*key) != Some(value)).map(|(_, value)| *value);
        let orphans: Vec<u32> = new.filter(|value| !shelf.waited_for.contains(value)).collect();
        shelf.orphans.extend(orphans);
    }

    /// Another client removes all items.
    fn clear(&self) {
        let mut shelf = self.0.lock();
        shelf.document.items.clear();
        shelf.document.etag += 1;
    }

    fn keys(&self) -> Vec<String> {
        self.items().into_keys().collect()
    }

    fn take_disturbed(&self) -> Vec<(String, Disturbance)> {
        std::mem::take(&mut self.0.lock().disturbed)
    }

    fn bad(names: &[&str]) -> Self {
        let shelf = Self::new();
        shelf.0.lock().bad = names.iter().map(|name| (*name).to_owned()).collect();
        shelf
    }

    fn items(&self) -> Items {
        self.0.lock().document.items.clone()
    }

    fn attempts(&self) -> usize {
        self.0.lock().attempts
    }
}

#[async_trait]
impl Resource for Shelf {
    type Key = String;
    type Intent = Option<u32>;
    type Observed = Document;
    type Write = Items;
    type Claim = u64;
    type Notice = Infallible;

    fn name(&self) -> String {
        "shelf".into()
    }

    async fn observe(&self, _since: LogicalTime) -> Result<Document, Failure> {
        self.0.lock().reads += 1;
        let reading = self.0.lock().reading;
        if !reading.is_zero() {
            sleep(reading).await;
        }
        Ok(self.0.lock().document.clone())
    }

    fn claim(&self, observed: &Document, _batch: &[(String, Option<u32>)]) -> u64 {
        self.0.lock().claimed.push(observed.etag);
        observed.etag
    }

    fn plan(&self, observed: &Document, batch: &[(String, Option<u32>)], _: &u64) -> Planned<Self> {
        let mut items = observed.items.clone();
        let mut refused = Vec::new();
        for (key, intent) in batch {
            match intent {
                Some(value) if *value > 1000 => {
                    refused.push((
                        key.clone(),
                        Failure::new(Kind::InvalidArgument, format!("{value} is too much")),
                    ));
                }
                Some(value) => {
                    let now = self.0.lock().nodes.last().copied().filter(|_| key == "nodes");
                    items.insert(key.clone(), now.unwrap_or(*value));
                }
                None => {
                    items.remove(key);
                }
            }
        }
        Planned { write: (items != observed.items).then_some(items), refused, notices: Vec::new() }
    }

    async fn write(&self, observed: &Document, items: &Items) -> Result<Written<Document>, Failure> {
        let latency = self.0.lock().latency;
        self.0.lock().attempts += 1;
        self.note_orphans(&observed.items, items);
        sleep(latency).await;
        let mut shelf = self.0.lock();
        if shelf.raced > 0 {
            shelf.raced -= 1;
            shelf.document.etag += 1;
            let etag = shelf.document.etag;
            shelf.document.items.insert(format!("foreign-{etag}"), 0);
        }
        if let Some(failure) = shelf.failures.pop() {
            return Err(failure);
        }
        if observed.etag != shelf.document.etag {
            return Err(Failure::new(Kind::Aborted, "PreconditionFailed"));
        }
        if let Some(what) = shelf.obstacles.pop() {
            return Ok(Written::Prepared { what });
        }
        if let Some(bad) = shelf.bad.iter().find(|bad| items.contains_key(*bad)) {
            let message = if shelf.names_culprits {
                format!("BadItem: item {bad} is not welcome")
            } else {
                "BadRequest: something is wrong".to_owned()
            };
            return Err(Failure { message, ..shelf.refusal.clone() });
        }
        if let Some((kind, bad)) = shelf.bad_kind.filter(|(_, bad)| items.contains_key(*bad)) {
            return Err(Failure::new(kind, format!("{bad} is refused")));
        }
        shelf.document.etag += 1;
        if !shelf.forgetful {
            shelf.document.items = items.clone();
        }
        let forgets = shelf.forgets.clone();
        shelf.document.items.retain(|name, _| !forgets.contains(name));
        if !shelf.turns.is_empty() {
            shelf.turns.rotate_left(1);
            shelf.document.items = Items::from([(shelf.turns[0].to_owned(), 0)]);
        }
        // Nodes change while a write is made.
        if shelf.nodes.len() > 1 {
            shelf.nodes.pop();
        }
        Ok(Written::Whole(shelf.document.clone()))
    }

    fn is_maintained(&self, intent: &Option<u32>) -> bool {
        intent.is_some() && self.0.lock().is_maintained
    }

    fn outlives_its_caller(&self, intent: &Option<u32>) -> bool {
        intent.is_none() || !self.0.lock().needs_callers
    }

    fn disturbed(&self, key: &String, _intent: &Option<u32>, what: Disturbance) {
        self.0.lock().disturbed.push((key.clone(), what));
    }

    fn concerned(&self, write: &Items, batch: &[(String, Option<u32>)]) -> Vec<String> {
        let now = self.items();
        let differs = |key: &String| now.get(key) != write.get(key);
        batch.iter().map(|(key, _)| key.clone()).filter(differs).collect()
    }

    fn fingerprint(&self, write: &Items) -> u64 {
        let mut hasher = DefaultHasher::new();
        write.hash(&mut hasher);
        hasher.finish()
    }

    fn blame(&self, message: &str, batch: &[(String, Option<u32>)]) -> Vec<String> {
        let named = |key: &str| message.split_whitespace().any(|word| word == key);
        batch.iter().map(|(key, _)| key.clone()).filter(|key| named(key)).collect()
    }
}

fn start(shelf: &Shelf) -> Writer<Shelf> {
    let pace = Pace { linger: Duration::from_secs(5), busy: Duration::from_secs(1) };
    Writer::start(shelf.clone(), pace, CancellationToken::new())
}

async fn submit(writer: &Writer<Shelf>, key: &str, value: u32) -> Result<(), Failure> {
    writer.submit(key.into(), Some(value), LogicalTime::now(), None).await.map(drop)
}

async fn submit_all(writer: &Writer<Shelf>, keys: impl IntoIterator<Item = String>) -> Vec<(String, bool)> {
    let all = keys.into_iter().map(|key| async move {
        let good = submit(writer, &key, 1).await.is_ok();
        (key, good)
    });
    futures::future::join_all(all).await
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("item{number:03}")).collect()
}

#[tokio::test(start_paused = true)]
async fn intents_that_wait_together_are_one_write() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    let answers = submit_all(&writer, numbered(300)).await;
    assert!(answers.iter().all(|(_, good)| *good));
    assert_eq!(shelf.items().len(), 300);
    // The first may have gone alone; the rest formed the next batch.
    assert!(shelf.attempts() <= 2, "{}", shelf.attempts());
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_what_was_announced_but_not_for_ever() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    let slow = writer.announce();
    let hopeless = writer.announce();
    let begin = Instant::now();
    let first = tokio::spawn({
        let writer = writer.clone();
        async move { submit(&writer, "quick", 1).await }
    });
    sleep(Duration::from_secs(2)).await;
    writer.submit("slow".into(), Some(1), LogicalTime::now(), Some(slow)).await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(shelf.attempts(), 1);
    assert_eq!(begin.elapsed(), Duration::from_secs(6));
    drop(hopeless);
    let begin = Instant::now();
    submit(&writer, "alone", 1).await.unwrap();
    assert_eq!(begin.elapsed(), Duration::from_secs(1));
}

/// An intent that misses a batch waits for a whole write: a batch waits half of a long write for the next intent.
#[tokio::test(start_paused = true)]
async fn a_batch_waits_longer_for_what_was_announced_where_writes_take_long() {
    let shelf = Shelf::new();
    shelf.0.lock().latency = Duration::from_secs(20);
    let writer = start(&shelf);
    submit(&writer, "first", 1).await.unwrap();
    let begin = Instant::now();
    let on_the_way = writer.announce();
    let hopeless = writer.announce();
    let other = tokio::spawn({
        let writer = writer.clone();
        async move { submit(&writer, "other", 1).await }
    });
    sleep(Duration::from_secs(9)).await;
    writer.submit("late".into(), Some(1), LogicalTime::now(), Some(on_the_way)).await.unwrap();
    other.await.unwrap().unwrap();
    assert_eq!((shelf.attempts(), begin.elapsed()), (2, Duration::from_secs(9 + 10 + 20)));
    // The wait is bounded even if writes are very slow.
    shelf.0.lock().latency = Duration::from_secs(600);
    submit(&writer, "slow", 1).await.unwrap();
    shelf.0.lock().latency = Duration::from_secs(1);
    let begin = Instant::now();
    submit(&writer, "next", 1).await.unwrap();
    assert_eq!(begin.elapsed(), MAX_LINGER + Duration::from_secs(1));
    drop(hopeless);
}

/// Intents that keep arriving are waited for as long as a write takes, and no longer.
#[tokio::test(start_paused = true)]
async fn those_who_keep_coming_are_waited_for_a_whole_write() {
    let shelf = Shelf::new();
    shelf.0.lock().latency = Duration::from_secs(20);
    let writer = start(&shelf);
    submit(&writer, "first", 1).await.unwrap();
    let begin = Instant::now();
    let come = (0..8).map(|number| {
        let (writer, announced) = (writer.clone(), writer.announce());
        tokio::spawn(async move {
            sleep(Duration::from_secs(3 * number)).await;
            writer.submit(format!("{number}"), Some(1), LogicalTime::now(), Some(announced)).await.unwrap();
            begin.elapsed().as_secs()
        })
    });
    let ends = futures::future::join_all(come.collect::<Vec<_>>()).await;
    let ends: Vec<u64> = ends.into_iter().map(Result::unwrap).collect();
    // The eighth arrives after 21 s.
    assert_eq!((ends, shelf.attempts()), ([vec![40; 7], vec![60]].concat(), 3));
}

#[tokio::test(start_paused = true)]
async fn nothing_to_change_is_acknowledged_without_a_write() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    submit(&writer, "a", 1).await.unwrap();
    submit(&writer, "a", 1).await.unwrap();
    assert_eq!(shelf.attempts(), 1);
}

/// CSI-081. An owner that has what it wants does not wait for a write for others, with which it was asked for again.
#[tokio::test(start_paused = true)]
async fn who_has_what_it_wants_does_not_wait_for_a_write_for_others() {
    let shelf = Shelf::new();
    submit(&start(&shelf), "a", 1).await.unwrap();
    shelf.0.lock().latency = Duration::from_secs(90);
    let writer = start(&shelf);
    let begin = Instant::now();
    let announced = writer.announce();
    let again = async {
        submit(&writer, "a", 1).await.unwrap();
        begin.elapsed().as_secs()
    };
    let other = async {
        writer.submit("b".into(), Some(1), LogicalTime::now(), Some(announced)).await.unwrap();
        begin.elapsed().as_secs()
    };
    assert_eq!(tokio::join!(again, other), (0, 90));
    assert_eq!(shelf.keys(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn the_later_intent_of_one_owner_counts_and_both_are_answered() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    let busy = submit(&writer, "other", 1);
    let earlier = submit(&writer, "a", 1);
    let later = submit(&writer, "a", 2);
    let (_, earlier, later) = tokio::join!(busy, earlier, later);
    earlier.unwrap();
    later.unwrap();
    assert_eq!(shelf.items().get("a"), Some(&2));
}

/// LB-047.
#[tokio::test(start_paused = true)]
async fn lb_047_a_lost_race_is_planned_again_on_what_is_there_now() {
    let shelf = Shelf::new();
    shelf.0.lock().raced = 3;
    let writer = start(&shelf);
    submit(&writer, "a", 1).await.unwrap();
    let items = shelf.items();
    assert_eq!(items.len(), 4, "{items:?}");
    assert_eq!(shelf.attempts(), 4);
}

#[tokio::test(start_paused = true)]
async fn races_without_end_are_given_up_for_now() {
    let shelf = Shelf::new();
    shelf.0.lock().raced = 1000;
    let writer = start(&shelf);
    let begun = Instant::now();
    let error = submit(&writer, "a", 1).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert_eq!(shelf.attempts(), MAX_CONFLICTS as usize + 1);
    // 0.1 + 0.2 + … + 6.4 s: a client that writes a hundred times in a second has ended by then.
    assert!(begun.elapsed() >= Duration::from_millis(12_700), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_busy_azure_is_waited_for_as_it_says() {
    let shelf = Shelf::new();
    let throttled =
        Failure { after: Some(Duration::from_secs(17)), ..Failure::new(Kind::Unavailable, "429") };
    shelf.0.lock().failures = vec![Failure::new(Kind::Unavailable, "503"), throttled];
    let writer = start(&shelf);
    let begin = Instant::now();
    let first = submit(&writer, "a", 1);
    let newcomer = async {
        sleep(Duration::from_secs(3)).await;
        submit(&writer, "b", 1).await
    };
    let (first, newcomer) = tokio::join!(first, newcomer);
    first.unwrap();
    newcomer.unwrap();
    // Three writes of a second each, 17 s as Azure said, then our own second wait of 2 s.
    assert_eq!(begin.elapsed(), Duration::from_secs(22));
    assert_eq!(shelf.attempts(), 3, "the newcomer joined the batch that waited");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_us_is_nobodys_fault() {
    let shelf = Shelf::new();
    shelf.0.lock().failures = vec![Failure::new(Kind::PermissionDenied, "AuthorizationFailed: no role")];
    let writer = start(&shelf);
    let answers = futures::future::join_all(["a", "b"].map(|key| submit(&writer, key, 1))).await;
    for answer in answers {
        let Err(Failure { kind: Kind::PermissionDenied, message, .. }) = answer else { panic!("{answer:?}") };
        assert!(message.contains("AuthorizationFailed: no role"), "{message}");
    }
    assert_eq!(shelf.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_culprit_that_azure_names_costs_one_more_write() {
    let shelf = Shelf::bad(&["item025"]);
    shelf.0.lock().names_culprits = true;
    let writer = start(&shelf);
    let wall = writer.announce();
    let all = submit_all(&writer, numbered(51));
    let (answers, ()) = tokio::join!(all, async { drop(wall) });
    let failed: Vec<&str> = answers.iter().filter(|(_, good)| !good).map(|(key, _)| key.as_str()).collect();
    assert_eq!(failed, ["item025"]);
    assert_eq!(shelf.items().len(), 50);
    assert_eq!(shelf.attempts(), 2);
    // The culprit does not affect later intents, and its error has Azure's text.
    submit(&writer, "later", 1).await.unwrap();
    assert_eq!(shelf.attempts(), 3);
    let error = submit(&writer, "item025", 1).await.unwrap_err();
    assert_eq!(error.kind, Kind::InvalidArgument);
    assert!(error.message.contains("item item025 is not"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_planner_refuses_never_reaches_azure() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    let (good, bad) = tokio::join!(submit(&writer, "a", 1), submit(&writer, "b", 5000));
    good.unwrap();
    let Err(Failure { kind: Kind::InvalidArgument, message, .. }) = bad else { panic!("{bad:?}") };
    assert!(message.starts_with("5000 is too much"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_forgotten_stops_and_says_so() {
    let shelf = Shelf::new();
    shelf.0.lock().forgetful = true;
    let writer = start(&shelf);
    for _ in 0..5 {
        let error = submit(&writer, "a", 1).await.unwrap_err();
        let Failure { kind: Kind::FailedPrecondition, message, after, .. } = error else {
            panic!("{error:?}")
        };
        assert!(message.contains("same difference"), "{message}");
        assert!(after.is_some());
    }
    assert_eq!(shelf.attempts(), 1);
    sleep(Duration::from_secs(61)).await;
    shelf.0.lock().forgetful = false;
    submit(&writer, "a", 1).await.unwrap();
}

/// C3: after a write, the rest is planned on the new document and, to tell progress from repetition, on the old one:
/// only the new one is claimed.
#[tokio::test(start_paused = true)]
async fn what_others_must_leave_alone_is_that_of_the_newest_document() {
    let shelf = Shelf::new();
    shelf.0.lock().forgetful = true;
    let writer = start(&shelf);
    submit(&writer, "a", 1).await.unwrap_err();
    assert_eq!(shelf.0.lock().claimed, [1, 2], "claimed before the write and after it");
    shelf.0.lock().forgetful = false;
    sleep(Duration::from_secs(61)).await;
    submit(&writer, "b", 1).await.unwrap();
    assert!(shelf.0.lock().claimed.is_sorted());
}

/// C5: a writer ends when its resource is deleted, but not in the middle of a write.
#[tokio::test(start_paused = true)]
async fn a_writer_ends_with_its_resource() {
    let pace = Pace { linger: Duration::ZERO, busy: Duration::from_secs(1) };
    let writers = Writers::new(pace, CancellationToken::new());
    let id = |name: &str| azure_types::ResourceId::group("sub", name);
    let (shelf, other) = (Shelf::new(), Shelf::new());
    let writer = writers.of(&id("a"), || shelf.clone());
    writers.of(&id("b"), || other.clone());
    let writing = tokio::spawn(async move { submit(&writer, "x", 1).await });
    sleep(Duration::from_millis(500)).await;
    writers.keep(|_| false);
    assert_eq!(writers.len(), 1, "one is at work");
    writing.await.unwrap().unwrap();
    writers.keep(|_| false);
    assert_eq!(writers.len(), 0);
    sleep(Duration::from_millis(1)).await;
    assert_eq!((Arc::strong_count(&shelf.0), Arc::strong_count(&other.0)), (1, 1), "their tasks have ended");
    submit(&writers.of(&id("a"), || shelf.clone()), "x", 2).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fight_with_another_program_stops() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(submit(&writer, "a", 1).await.is_ok());
        let mut manners = shelf.0.lock();
        manners.document.items.clear();
        manners.document.etag += 1;
    }
    assert_eq!(outcomes, [true, true, false, false]);
    assert_eq!(shelf.attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_writer_answers() {
    let shelf = Shelf::new();
    let stop = CancellationToken::new();
    let pace = Pace { linger: Duration::ZERO, busy: Duration::from_secs(1) };
    let writer = Writer::start(shelf.clone(), pace, stop.clone());
    let waiting = submit(&writer, "a", 1);
    let stopping = async {
        sleep(Duration::from_millis(500)).await;
        stop.cancel();
    };
    let (answer, ()) = tokio::join!(waiting, stopping);
    assert!(matches!(answer, Err(Failure { kind: Kind::Unavailable, .. })));
    assert_eq!(submit(&writer, "b", 1).await.unwrap_err().kind, Kind::Unavailable);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every good intent is carried out and every bad one fails, in a number of writes that grows with the number of
    /// culprits times the logarithm of the batch.
    #[test]
    fn culprits_are_found_by_halving(
        count in 1_usize..120,
        bad in proptest::collection::btree_set(0_usize..120, 0..6),
        named in proptest::bool::ANY,
    ) {
        let keys = numbered(count);
        let bad: BTreeSet<String> = bad.iter().filter_map(|index| keys.get(*index).cloned()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let shelf = Shelf::new();
        {
            let mut manners = shelf.0.lock();
            manners.bad.clone_from(&bad);
            manners.names_culprits = named;
        }
        let answers = runtime.block_on(async {
            let writer = start(&shelf);
            let wall = writer.announce();
            let all = submit_all(&writer, keys.clone());
            let (answers, ()) = tokio::join!(all, async { drop(wall) });
            answers
        });
        for (key, good) in &answers {
            prop_assert_eq!(*good, !bad.contains(key), "{}", key);
        }
        let expected: Items = keys.iter().filter(|key| !bad.contains(*key)).map(|key| (key.clone(), 1)).collect();
        prop_assert_eq!(shelf.items(), expected);
        let depth = usize::BITS - count.leading_zeros();
        let bound = if named { 1 + bad.len() } else { 1 + bad.len() * 2 * depth as usize };
        prop_assert!(shelf.attempts() <= bound, "{} writes, bound {}", shelf.attempts(), bound);
    }
}

/// Another client undoes one owner's part repeatedly: that owner gets an error, the others have what they want.
#[tokio::test(start_paused = true)]
async fn a_difference_that_does_not_last_stops_only_whom_it_concerns() {
    let shelf = Shelf::new();
    shelf.0.lock().forgets = BTreeSet::from(["bad".to_owned()]);
    let writer = start(&shelf);
    let submit = |name: &str| writer.submit(name.to_owned(), Some(1), LogicalTime::BEGINNING, None);
    let (bad, good) = futures::join!(submit("bad"), submit("good"));
    let Err(Failure { kind: Kind::FailedPrecondition, message, .. }) = bad.map(drop) else {
        panic!("it should have failed")
    };
    assert!(message.contains("does not keep what is written"), "{message}");
    good.map(drop).unwrap();
    assert_eq!(shelf.items().keys().collect::<Vec<_>>(), ["good"]);
}

/// The nodes' intent may change with every write while nodes come and go: that is progress, and no other owner waits
/// for it.
#[tokio::test(start_paused = true)]
async fn what_is_wanted_anew_is_no_repetition_and_keeps_nobody_else_waiting() {
    let shelf = Shelf::new();
    shelf.0.lock().nodes = (1..=20).collect();
    let writer = start(&shelf);
    let begin = Instant::now();
    let (of_service, of_nodes) =
        tokio::join!(async { submit(&writer, "service", 1).await.map(|()| begin.elapsed()) }, async {
            submit(&writer, "nodes", 0).await.map(|()| begin.elapsed())
        },);
    assert_eq!(of_service.unwrap(), Duration::from_secs(1), "its part was written with the first write");
    assert_eq!(of_nodes.unwrap(), Duration::from_secs(20));
    assert_eq!(shelf.items().get("nodes"), Some(&1));
}

/// Other clients may write differently each time: a repetition of our own write counts.
#[tokio::test(start_paused = true)]
async fn a_difference_that_comes_back_in_turns_is_a_repetition() {
    let shelf = Shelf::new();
    shelf.0.lock().turns = vec!["left", "right"];
    let writer = start(&shelf);
    let error = submit(&writer, "a", 1).await.unwrap_err();
    let Failure { kind: Kind::FailedPrecondition, message, after, .. } = error else { panic!("{error:?}") };
    assert!(message.contains("does not keep what is written"), "{message}");
    assert!(after.is_some());
    assert_eq!(shelf.attempts(), 3, "nothing, right, left, and right again");
}

/// Obstacles that are removed one after the other are not lost races, however many they are.
#[tokio::test(start_paused = true)]
async fn clearing_what_stands_in_the_way_is_progress() {
    let shelf = Shelf::new();
    shelf.0.lock().obstacles = (0..30).collect();
    let writer = start(&shelf);
    submit(&writer, "a", 1).await.unwrap();
    assert_eq!(shelf.attempts(), 31);
    // An obstacle that comes back each time is a race.
    shelf.0.lock().obstacles = vec![7; 1000];
    let error = submit(&writer, "b", 1).await.unwrap_err();
    let Failure { kind: Kind::Unavailable, message, .. } = error else { panic!("{error:?}") };
    assert!(message.contains("comes back as soon as it is cleared"), "{message}");
    assert_eq!(shelf.attempts(), 31 + 1 + MAX_CONFLICTS as usize + 1);
}

/// Ten lost races fail a batch only if they are consecutive.
#[tokio::test(start_paused = true)]
async fn a_write_that_was_made_ends_a_row_of_lost_races() {
    let shelf = Shelf::new();
    {
        let mut shelf = shelf.0.lock();
        shelf.nodes = (1..=4).collect();
        shelf.raced = 6;
    }
    let writer = start(&shelf);
    let races = shelf.clone();
    let more = async move {
        // The first write succeeds after 7.7 s, pauses included; then others are faster again.
        sleep(Duration::from_secs(8)).await;
        races.0.lock().raced = 6;
    };
    let (answer, ()) = tokio::join!(submit(&writer, "nodes", 0), more);
    answer.unwrap();
    assert_eq!(shelf.attempts(), 12 + 4);
}

/// D1: anything that another client removed comes back with the next write, for whichever owner that is.
#[tokio::test(start_paused = true)]
async fn what_others_took_away_comes_back_with_the_next_write() {
    let shelf = Shelf::maintaining();
    let writer = start(&shelf);
    submit(&writer, "a", 1).await.unwrap();
    submit(&writer, "b", 1).await.unwrap();
    shelf.clear();
    submit(&writer, "c", 1).await.unwrap();
    assert_eq!(shelf.keys(), ["a", "b", "c"]);
    assert_eq!(shelf.attempts(), 3);
    let repaired = |key: &str| (key.to_owned(), Disturbance::Repaired);
    assert_eq!(shelf.take_disturbed(), [repaired("a"), repaired("b")]);
    // An owner that leaves is not restored.
    writer.submit("b".to_owned(), None, LogicalTime::BEGINNING, None).await.map(drop).unwrap();
    shelf.clear();
    submit(&writer, "d", 1).await.unwrap();
    assert_eq!(shelf.keys(), ["a", "c", "d"]);
}

/// D1: a repair that fails delays no pending intent.
#[tokio::test(start_paused = true)]
async fn a_repair_that_is_refused_holds_up_nobody() {
    for kind in [Kind::InvalidArgument, Kind::PermissionDenied, Kind::NotFound] {
        let shelf = Shelf::maintaining();
        let writer = start(&shelf);
        submit(&writer, "a", 1).await.unwrap();
        submit(&writer, "b", 1).await.unwrap();
        shelf.clear();
        if kind == Kind::InvalidArgument {
            shelf.0.lock().bad.insert("a".to_owned());
        } else {
            shelf.0.lock().bad_kind = Some((kind, "a"));
        }
        submit(&writer, "c", 1).await.unwrap();
        assert!(shelf.keys().contains(&"c".to_owned()), "{kind:?}: {:?}", shelf.keys());
        sleep(Duration::from_secs(10)).await;
        let disturbed = shelf.take_disturbed();
        let failed = disturbed.iter().any(|(key, what)| key == "a" && matches!(what, Disturbance::Failed(_)));
        assert!(failed, "{kind:?}: {disturbed:?}");
        let before = shelf.attempts();
        submit(&writer, "d", 1).await.unwrap();
        assert!(shelf.attempts() <= before + 1 + 2, "{kind:?}: what failed is left alone for a while");
        assert_eq!(shelf.keys().iter().filter(|key| *key == "a").count(), 0);
    }
}

/// Rule 6: repeated foreign changes of one part are reported, and that part is left alone; others go on.
#[tokio::test(start_paused = true)]
async fn a_fight_about_one_part_is_reported_and_holds_up_nobody() {
    let shelf = Shelf::maintaining();
    let writer = start(&shelf);
    submit(&writer, "a", 1).await.unwrap();
    let mut writes = Vec::new();
    let mut warned = 0;
    for minute in 0..600 {
        {
            let mut shelf = shelf.0.lock();
            if shelf.document.items.remove("a").is_some() {
                shelf.document.etag += 1;
                writes.push(minute);
            }
        }
        sleep(Duration::from_secs(60)).await;
        submit(&writer, &format!("b{minute}"), 1).await.unwrap();
        let disturbed = shelf.take_disturbed();
        warned += disturbed.iter().filter(|(_, what)| matches!(what, Disturbance::Repeated(_))).count();
    }
    assert!(writes.len() <= 20, "{writes:?}");
    assert!(warned >= 5, "{warned}");
}

/// A refusal that may concern one or all.
fn unclear(kind: Kind) -> Failure {
    Failure { scope: Scope::Unclear, ..Failure::new(kind, "") }
}

/// For any kind of refusal whose owner is unclear, the owner is found.
#[tokio::test(start_paused = true)]
async fn no_kind_of_refusal_holds_up_owners_that_it_does_not_concern() {
    let kinds = [
        Kind::InvalidArgument,
        Kind::FailedPrecondition,
        Kind::PermissionDenied,
        Kind::NotFound,
        Kind::Unavailable,
        Kind::Aborted,
    ];
    for (kind, named) in kinds.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
        let shelf = Shelf::bad(&["item003", "item020", "item021"]);
        (shelf.0.lock().refusal, shelf.0.lock().names_culprits) = (unclear(kind), named);
        let writer = start(&shelf);
        let wall = writer.announce();
        let (answers, ()) = tokio::join!(submit_all(&writer, numbered(40)), async { drop(wall) });
        let bad: Vec<&str> = answers.iter().filter(|(_, good)| !good).map(|(key, _)| key.as_str()).collect();
        assert_eq!(bad, ["item003", "item020", "item021"], "{kind:?} {named}");
        assert_eq!(shelf.items().len(), 37, "{kind:?} {named}");
    }
}

/// A server error: its text does not show which owner causes it.
fn fault() -> Failure {
    let error = arm::ServiceError {
        method: "PUT".into(),
        subject: "loadBalancers/kubernetes".into(),
        resource: None,
        status: 500,
        code: "InternalServerError".into(),
        message: "An error occurred.".into(),
        target: None,
        details: Vec::new(),
        request_id: None,
        retry_after: None,
    };
    Failure::of(arm::Error::Service(Arc::new(error)), &[])
}

/// One owner causes a server error each time: the others have what they want within seconds.
#[tokio::test(start_paused = true)]
async fn a_fault_that_one_owner_brings_about_holds_up_no_other_for_long() {
    let shelf = Shelf::bad(&["item020"]);
    shelf.0.lock().refusal = fault();
    let writer = start(&shelf);
    let wall = writer.announce();
    let begin = Instant::now();
    let timed = async |key: String| (submit(&writer, &key, 1).await.is_ok(), begin.elapsed(), key);
    let all = futures::future::join_all(numbered(40).into_iter().map(timed));
    let (answers, ()) = tokio::join!(all, async { drop(wall) });
    for (is_good, took, key) in answers {
        assert_eq!(is_good, key != "item020", "{key}");
        assert!(!is_good || took <= Duration::from_secs(20), "{key}: {took:?}");
    }
}

/// All owners wait for the end of a server error that concerns all, with a bounded number of writes, and none fails.
#[tokio::test(start_paused = true)]
async fn a_fault_that_passes_fails_no_owner() {
    let keys = numbered(256);
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let shelf = Shelf::bad(&names);
    shelf.0.lock().refusal = fault();
    let writer = start(&shelf);
    let wall = writer.announce();
    let passes = async {
        sleep(Duration::from_secs(90)).await;
        shelf.0.lock().bad.clear();
    };
    let (answers, (), ()) = tokio::join!(submit_all(&writer, keys), passes, async { drop(wall) });
    assert!(answers.iter().all(|(_, good)| *good), "{answers:?}");
    assert!(shelf.attempts() <= 120, "{} writes", shelf.attempts());
}

/// A refusal that concerns all without saying so costs a bounded number of writes.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_all_is_not_looked_for_in_each() {
    for kind in [Kind::PermissionDenied, Kind::NotFound, Kind::Unavailable] {
        let keys = numbered(256);
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let shelf = Shelf::bad(&names);
        shelf.0.lock().refusal = unclear(kind);
        let writer = start(&shelf);
        for round in 1..=3 {
            let wall = writer.announce();
            let before = shelf.attempts();
            let (answers, ()) = tokio::join!(submit_all(&writer, keys.clone()), async { drop(wall) });
            assert!(answers.iter().all(|(_, good)| !good));
            let writes = shelf.attempts() - before;
            assert!(writes <= 60, "{kind:?}: {writes} writes in round {round}");
        }
        // It has passed: no owner counts as the culprit.
        shelf.0.lock().bad.clear();
        let wall = writer.announce();
        let before = shelf.attempts();
        let (answers, ()) = tokio::join!(submit_all(&writer, keys), async { drop(wall) });
        assert!(answers.iter().all(|(_, good)| *good));
        assert_eq!(shelf.attempts() - before, 1, "{kind:?}");
    }
}

/// A refused owner is written alone until Azure accepts it, and others do not wait for it.
#[tokio::test(start_paused = true)]
async fn an_owner_that_was_refused_makes_no_other_fail_once_more() {
    let shelf = Shelf::bad(&["item005", "item006"]);
    shelf.0.lock().refusal = unclear(Kind::PermissionDenied);
    let writer = start(&shelf);
    let wall = writer.announce();
    tokio::join!(submit_all(&writer, numbered(8)), async { drop(wall) });
    let begin = Instant::now();
    let before = shelf.attempts();
    let wall = writer.announce();
    let again = async |key: &str| (submit(&writer, key, 2).await.is_ok(), begin.elapsed().as_secs());
    let (first, bad, other, last, ()) =
        tokio::join!(again("item001"), again("item005"), again("item006"), again("item007"), async {
            drop(wall)
        });
    assert_eq!((first, last), ((true, 1), (true, 1)));
    assert!(!bad.0 && !other.0);
    assert_eq!(shelf.attempts() - before, 3, "the good ones together, and each of the others alone");
    shelf.0.lock().bad.clear();
    assert!(again("item005").await.0, "it is tried, and taken");
    let before = shelf.attempts();
    let wall = writer.announce();
    tokio::join!(submit(&writer, "item005", 3), submit(&writer, "item001", 3), async { drop(wall) })
        .0
        .unwrap();
    assert_eq!(shelf.attempts() - before, 1, "it is one of all again");
}

/// Intents that arrive during a search for culprits are written in between.
#[tokio::test(start_paused = true)]
async fn newcomers_do_not_wait_until_all_culprits_are_found() {
    let shelf = Shelf::bad(&["item001", "item030", "item063"]);
    let writer = start(&shelf);
    let wall = writer.announce();
    let newcomer = async {
        sleep(Duration::from_millis(3500)).await;
        let begin = Instant::now();
        submit(&writer, "newcomer", 1).await.unwrap();
        begin.elapsed()
    };
    let (_, waited, ()) = tokio::join!(submit_all(&writer, numbered(64)), newcomer, async { drop(wall) });
    assert!(waited <= Duration::from_millis(2500), "{waited:?}");
    assert_eq!(shelf.items().len(), 62);
}

/// Azure is busy with a resource of one owner: the others go on.
#[tokio::test(start_paused = true)]
async fn those_who_are_not_named_do_not_wait_for_what_is_not_ready() {
    let shelf = Shelf::bad(&["slow"]);
    (shelf.0.lock().refusal, shelf.0.lock().names_culprits) = (unclear(Kind::Unavailable), true);
    let writer = start(&shelf);
    let begin = Instant::now();
    let wall = writer.announce();
    let timed = async |key: &str| submit(&writer, key, 1).await.map(|()| begin.elapsed().as_secs());
    let ready = async {
        sleep(Duration::from_secs(10)).await;
        shelf.0.lock().bad.clear();
    };
    let (good, slow, (), ()) = tokio::join!(timed("good"), timed("slow"), ready, async { drop(wall) });
    assert_eq!(good.unwrap(), 2);
    assert!((10..20).contains(&slow.unwrap()));
}

/// Submits an item, and does not wait for the answer for longer than this. Returns whether it was answered.
async fn submit_for(writer: &Writer<Shelf>, key: &str, value: u32, patience: Duration) -> bool {
    timeout(patience, submit(writer, key, value)).await.is_ok()
}

const SHORT: Duration = Duration::from_millis(100);

/// A caller whose deadline passes: its intent is carried out nevertheless, and all others are answered.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_leaves_the_writer_sound() {
    let shelf = Shelf::new();
    let writer = start(&shelf);
    // It goes while its own write is made, the next while it waits for a batch.
    assert!(!submit_for(&writer, "a", 1, SHORT).await);
    assert!(!submit_for(&writer, "b", 1, SHORT).await);
    // This one goes while it is announced: the batch does not wait for it.
    let announced = writer.announce();
    drop(writer.submit("never".into(), Some(1), LogicalTime::now(), Some(announced)));
    let begin = Instant::now();
    submit(&writer, "c", 1).await.unwrap();
    assert_eq!((shelf.keys(), shelf.attempts()), (vec!["a".into(), "b".into(), "c".into()], 2));
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    submit(&writer, "d", 1).await.unwrap();
}

/// An intent that must not be carried out later, without a caller: it is dropped before it is planned.
#[tokio::test(start_paused = true)]
async fn an_intent_that_needs_its_caller_is_dropped_with_it() {
    let shelf = Shelf::with_callers();
    let writer = start(&shelf);
    let first = async { submit(&writer, "a", 1).await };
    let gone = async {
        sleep(SHORT).await;
        submit_for(&writer, "b", 1, SHORT).await
    };
    let (first, is_answered) = tokio::join!(first, gone);
    first.unwrap();
    assert!(!is_answered);
    sleep(Duration::from_secs(60)).await;
    assert_eq!((shelf.keys(), shelf.attempts()), (vec!["a".into()], 1));
    // Another call asks again. An intent that needs no caller is carried out without one.
    submit(&writer, "b", 1).await.unwrap();
    assert_eq!(shelf.keys(), ["a", "b"]);
    let remove = writer.submit("a".into(), None, LogicalTime::now(), None);
    assert!(timeout(SHORT, remove).await.is_err());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(shelf.keys(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_intent_whose_caller_goes_during_the_read_is_not_written() {
    let shelf = Shelf::with_callers();
    shelf.0.lock().reading = Duration::from_secs(5);
    let writer = start(&shelf);
    assert!(!submit_for(&writer, "a", 1, Duration::from_secs(4)).await);
    sleep(Duration::from_secs(60)).await;
    assert_eq!((shelf.attempts(), shelf.0.lock().reads), (0, 1));
    submit(&writer, "b", 1).await.unwrap();
    assert_eq!(shelf.keys(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_intent_whose_caller_goes_while_azure_is_busy_is_not_tried_again() {
    let shelf = Shelf::with_callers();
    shelf.0.lock().failures = vec![Failure::new(Kind::Unavailable, "503"); 3];
    let writer = start(&shelf);
    // Written at once, and two seconds later, and not after another wait.
    assert!(!submit_for(&writer, "a", 1, Duration::from_millis(3500)).await);
    sleep(Duration::from_secs(600)).await;
    assert_eq!((shelf.keys(), shelf.attempts()), (Vec::new(), 2));
    submit(&writer, "b", 1).await.unwrap();
    assert_eq!(shelf.keys(), ["b"]);
}

/// What an intent replaced counts again, if its own caller still waits.
#[tokio::test(start_paused = true)]
async fn an_intent_that_is_dropped_gives_way_to_the_one_that_it_replaced() {
    let shelf = Shelf::with_callers();
    let writer = start(&shelf);
    submit(&writer, "removed", 1).await.unwrap();
    let others = async {
        sleep(2 * SHORT).await;
        // These two do not wait until the first write ends.
        tokio::join!(submit_for(&writer, "removed", 7, SHORT), submit_for(&writer, "added", 7, SHORT))
    };
    let waiting = async {
        sleep(SHORT).await;
        let remove = writer.submit("removed".into(), None, LogicalTime::now(), None);
        tokio::join!(remove, submit(&writer, "added", 2))
    };
    let (first, (removed, added), gone) = tokio::join!(submit(&writer, "first", 1), waiting, others);
    first.unwrap();
    assert!(removed.is_ok() && added.is_ok());
    assert_eq!(gone, (false, false));
    assert_eq!(shelf.items(), Items::from([("added".into(), 2), ("first".into(), 1)]));
}

/// A caller of the next test.
#[derive(Clone, Debug)]
struct Caller {
    key: usize,
    is_removal: bool,
    comes_ms: u64,
    stays_ms: u64,
}

fn callers() -> impl Strategy<Value = Vec<Caller>> {
    let one = (0..4_usize, proptest::bool::weighted(0.3), 0..20_000_u64, 1..6_000_u64);
    proptest::collection::vec(
        one.prop_map(|(key, is_removal, comes_ms, stays_ms)| Caller { key, is_removal, comes_ms, stays_ms }),
        1..40,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Callers come and go at any time: nothing is written that no caller waits for, and the last caller of an item,
    /// who waits, has what it asked for.
    #[test]
    fn nothing_is_written_for_a_caller_that_has_gone(callers in callers(), reading in 0..3_u64, raced in 0..3_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let shelf = Shelf::with_callers();
        (shelf.0.lock().reading, shelf.0.lock().raced) = (Duration::from_secs(reading), raced);
        runtime.block_on(async {
            let writer = start(&shelf);
            let all = callers.iter().enumerate().map(async |(value, caller)| {
                sleep(Duration::from_millis(caller.comes_ms)).await;
                let (key, value) = (format!("item{}", caller.key), u32::try_from(value).unwrap());
                let intent = (!caller.is_removal).then_some(value);
                shelf.0.lock().waited_for.insert(value);
                let answer = writer.submit(key, intent, LogicalTime::now(), None);
                let _ = timeout(Duration::from_millis(caller.stays_ms), answer).await;
                shelf.0.lock().waited_for.remove(&value);
            });
            futures::future::join_all(all).await;
            for key in 0..4 {
                shelf.0.lock().waited_for.insert(900 + key);
                submit(&writer, &format!("item{key}"), 900 + key).await.unwrap();
            }
        });
        prop_assert_eq!(&shelf.0.lock().orphans, &Vec::<u32>::new());
        let items = shelf.items();
        prop_assert!((0..4).all(|key| items.get(&format!("item{key}")) == Some(&(900 + key))), "{:?}", items);
    }
}
