//! Schedules the reads of a resource group's list for the Services that wait for public IPs.
//!
//! # Guarantees
//!
//! * A single waiting Service polls at its own pace, whatever came before it.
//! * A list that one Service reads wakes all others of the group: each sees whether its operation is done.
//! * While others wait, a list is read 20 ms for each of them after the previous one, or a twentieth of the time that
//!   its Service has waited, but at most an interval. However many wait, in the long run the list is read once per
//!   interval.
//! * A Service whose operation may be done at once waits, for at most an interval, for those that are about to write.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Services that start together arrive some milliseconds apart: so long after the last one the list is read for all of
/// them.
const LINGER: Duration = Duration::from_millis(12);

/// How much each waiting Service delays the next list.
const GAP: Duration = Duration::from_millis(20);

/// The delay of a list relative to the time that its Service has waited, as for polls of a single operation
/// (`arm/operation_pace.rs`).
const LATENESS: u32 = 20;

/// Reads of lists shared by waiting Services.
pub(super) struct CommonLooks {
    interval: Duration,
    /// Number of Services that may send a write or a deletion, and of such calls without an answer.
    on_the_way: watch::Sender<usize>,
    /// Number of Services that wait for their operations.
    waiting: watch::Sender<u32>,
    /// The latest read of each resource group in which Services wait.
    latest: Mutex<HashMap<ResourceId, Arc<Latest>>>,
}

type Latest = watch::Sender<Option<Look>>;

/// A read of the list.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    /// The logical time after which the list is read.
    newer_than: LogicalTime,
}

/// A call without an answer, or a Service that may send one; until dropped.
pub(super) struct OnTheWay<'a>(&'a CommonLooks);

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        self.0.on_the_way.send_modify(|count| *count -= 1);
    }
}

/// A Service that waits for its operations, until dropped.
pub(super) struct Waiting<'a> {
    looks: &'a CommonLooks,
    latest: Arc<Latest>,
    since: Instant,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.looks.waiting.send_modify(|count| *count -= 1);
    }
}

impl CommonLooks {
    /// Reads at an `interval` while many Services wait.
    pub(super) fn new(interval: Duration) -> Self {
        let interval = interval.max(GAP);
        let (on_the_way, waiting) = (watch::Sender::default(), watch::Sender::default());
        Self { interval, on_the_way, waiting, latest: Mutex::default() }
    }

    /// The interval between reads while many Services wait.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Announces a write or a deletion, until dropped.
    pub(super) fn on_the_way(&self) -> OnTheWay<'_> {
        self.on_the_way.send_modify(|count| *count += 1);
        OnTheWay(self)
    }

    /// Starts waiting for accepted operations in a resource group.
    pub(super) fn wait(&self, group: ResourceId) -> Waiting<'_> {
        self.waiting.send_modify(|count| *count += 1);
        let mut all = self.latest.lock();
        // Without other waiting Services the time of the latest read does not matter.
        all.retain(|_, latest| Arc::strong_count(latest) > 1);
        let latest = Arc::clone(all.entry(group).or_default());
        Waiting { looks: self, latest, since: Instant::now() }
    }

    /// Waits until no announced call is left, and none arrives for a short time.
    async fn calm(&self) {
        let mut on_the_way = self.on_the_way.subscribe();
        while on_the_way.wait_for(|count| *count == 0).await.is_ok() {
            if timeout(LINGER, on_the_way.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Waiting<'_> {
    /// Waits for a read: the Service's own after the pause in which its operation is expected to end, or an earlier one
    /// of another Service. Returns the logical time after which the list is read.
    ///
    /// A Service that expects its operation to be done at once waits until no announced call is left: Services that
    /// arrive one after the other do not read one list each.
    pub(super) async fn after(&self, pause: Duration) -> LogicalTime {
        let came = LogicalTime::now();
        let mut latest = self.latest.subscribe();
        tokio::select! {
            biased;
            Ok(look) = latest.wait_for(|look| look.is_some_and(|look| look.newer_than > came)) => {
                look.map_or(came, |look| look.newer_than)
            }
            () = self.due(pause) => {
                let look = Look { at: Instant::now(), newer_than: LogicalTime::now() };
                self.latest.send_replace(Some(look));
                look.newer_than
            }
        }
    }

    /// Waits until this Service is due to read, and the latest read is long enough ago.
    async fn due(&self, pause: Duration) {
        let asked = Instant::now();
        sleep(pause).await;
        let latest = *self.latest.borrow();
        let others = self.looks.waiting.borrow().saturating_sub(1);
        if let Some(latest) = latest.filter(|_| others > 0) {
            let gap = GAP.saturating_mul(others).max(self.since.elapsed() / LATENESS);
            sleep_until(latest.at + gap.min(self.looks.interval)).await;
        }
        if pause.is_zero() {
            _ = timeout_at(asked + self.looks.interval, self.looks.calm()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn looks() -> CommonLooks {
        CommonLooks::new(2 * SECOND)
    }

    fn group(name: &str) -> ResourceId {
        ResourceId::group("5ca1ab1e-0000-4000-8000-000000000001", name)
    }

    /// One more Service that waits in the shared group.
    fn wait(looks: &CommonLooks) -> Waiting<'_> {
        looks.wait(group("cluster"))
    }

    /// The number of lists for Services that arrive so many milliseconds after the start, write for 5 ms, and whose
    /// operations take the expected time; and when the last of them has seen the end.
    async fn lists(looks: &CommonLooks, comers: impl IntoIterator<Item = (u64, Duration)>) -> (usize, u128) {
        let begin = Instant::now();
        let came = comers.into_iter().map(|(after, takes)| async move {
            sleep(Duration::from_millis(after)).await;
            let on_the_way = looks.on_the_way();
            sleep(Duration::from_millis(5)).await;
            drop(on_the_way);
            let waiting = wait(looks);
            let mut seen = vec![waiting.after(takes).await];
            while waiting.since.elapsed() < takes {
                seen.push(waiting.after(takes - waiting.since.elapsed()).await);
            }
            (seen, begin.elapsed().as_millis())
        });
        let (lists, ends): (Vec<_>, Vec<_>) = join_all(came).await.into_iter().unzip();
        let lists: BTreeSet<_> = lists.into_iter().flatten().collect();
        (lists.len(), ends.into_iter().max().unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_is_done_at_once_waits_for_those_on_the_way_and_a_little() {
        assert_eq!(lists(&looks(), [(0, Duration::ZERO)]).await, (1, 17));
        let twenty = (0..20).map(|number| (number * 4, Duration::ZERO));
        assert_eq!(lists(&looks(), twenty).await, (1, 19 * 4 + 17));
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_waited_for_an_interval_at_most() {
        let looks = looks();
        let stuck = looks.on_the_way();
        let begin = Instant::now();
        wait(&looks).after(Duration::ZERO).await;
        assert_eq!(begin.elapsed(), 2 * SECOND);
        drop(stuck);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_services_reads_few_lists() {
        for (apart, takes, most) in [
            (10, Duration::ZERO, 8),
            (10, SECOND, 8),
            (50, SECOND, 35),
            (50, 5 * SECOND, 12),
            (500, 5 * SECOND, 45),
        ] {
            let stream = (0..10_000 / apart).map(|number| (number * apart, takes));
            let (lists, last) = lists(&looks(), stream).await;
            let what = format!("one comes each {apart} ms and takes {takes:?}");
            assert!(lists <= most, "{lists} lists: {what}");
            assert!(last <= 12_100 + takes.as_millis(), "{last} ms: {what}");
        }
    }

    /// Neither earlier Services nor some that wait for hours delay a Service.
    #[tokio::test(start_paused = true)]
    async fn services_that_come_in_a_chain_wait_for_their_operations() {
        for stuck in [0, 1, 3] {
            let looks = looks();
            let _stuck: Vec<_> = (0..stuck).map(|_| wait(&looks)).collect();
            for takes in [Duration::ZERO, SECOND / 4, SECOND, 7 * SECOND] {
                for together in [1, 2, 1, 2] {
                    for _ in 0..20 {
                        let (_, took) = lists(&looks, vec![(0, takes); together]).await;
                        let late = took - 5 - takes.as_millis();
                        let others = (stuck + together - 1) as u128;
                        assert!(
                            late <= 25.max(20 * others) + 20,
                            "{together} beside {stuck}, {takes:?}: {late} ms late"
                        );
                    }
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_wakes_all_of_its_group() {
        let looks = looks();
        let begin = Instant::now();
        let wait = async |name, seconds| {
            let list = looks.wait(group(name)).after(seconds * SECOND).await;
            (list, begin.elapsed().as_secs())
        };
        let (one, same, other) = tokio::join!(wait("one", 3), wait("ONE", 90), wait("two", 5));
        assert_eq!((one, one.1, other.1), (same, 3, 5));
        assert!(other.0 > one.0);
    }

    #[tokio::test(start_paused = true)]
    async fn two_steps_of_one_service_do_not_wait_for_each_other() {
        let looks = looks();
        let waiting = wait(&looks);
        let begin = Instant::now();
        for _ in 0..3 {
            waiting.after(Duration::ZERO).await;
        }
        assert!(begin.elapsed() <= Duration::from_millis(60), "{:?}", begin.elapsed());
    }

    /// A shared list is requested after all its readers began to wait.
    #[tokio::test(start_paused = true)]
    async fn a_shared_list_is_younger_than_the_wish() {
        let looks = looks();
        let one = async || {
            let came = LogicalTime::now();
            (came, wait(&looks).after(SECOND).await)
        };
        let all = join_all((0..5).map(|_| one())).await;
        assert!(all.iter().all(|(came, read)| read > came && *read == all[0].1));
    }
}
