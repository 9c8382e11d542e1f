//! When public IPs that are being written or deleted are looked at.
//!
//! A Service that waits alone looks at its own public IP when its operation is likely done. Those that wait at the same
//! time share one list, which shows all of them.
//!
//! # Guarantees
//!
//! * A Service that comes after others have finished waits for nothing but its own operation.
//! * A shared list is read by all who wait, and is asked for when the first of them is likely done. The more lists in a row
//!   showed a running operation, the later the next one follows: after a tenth of a second for each Service that waits, and
//!   after an interval at the latest.
//! * A Service that may be done at once waits for others that are about to write, and at most an interval: those that come
//!   together read one list. One that gets no answer within an interval is not waited for any more.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Services that come together come some milliseconds apart. It is also the first gap between two lists, doubled.
const TOGETHER: Duration = Duration::from_millis(25);

/// What one Service waits for another: twenty that wait read one list in two seconds.
const FOR_EACH: Duration = Duration::from_millis(100);

/// The looks at public IPs that Services wait for.
pub(super) struct Looks {
    interval: Duration,
    /// Services that may come to a write or a deletion, and such calls that have no answer yet: since when, and a number.
    on_the_way: watch::Sender<BTreeSet<(Instant, u64)>>,
    next_number: AtomicU64,
    /// How many wait for a look.
    waiting: AtomicUsize,
    /// The latest shared list.
    list: watch::Sender<Option<List>>,
    in_vain: Mutex<Option<InVain>>,
}

/// A list that Services share.
#[derive(Debug, Clone, Copy)]
struct List {
    at: Instant,
    /// The time after which it is read.
    newer_than: LogicalTime,
}

/// A list that showed a running operation.
#[derive(Debug, Clone, Copy)]
struct InVain {
    list: List,
    /// The number of such lists that followed each other, this one included.
    in_a_row: u32,
}

/// What a Service looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Its public IPs alone: no other Service waits.
    Own,
    /// The list that is read after this time.
    Shared(LogicalTime),
}

/// A call until its first answer, or a Service that may come to one; until dropped.
pub(super) struct OnTheWay<'a> {
    looks: &'a Looks,
    entry: (Instant, u64),
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        self.looks.on_the_way.send_modify(|all| {
            all.remove(&self.entry);
        });
    }
}

/// A Service that waits for its operations.
pub(super) struct Waiting<'a> {
    looks: &'a Looks,
    list: watch::Receiver<Option<List>>,
    /// When it is likely done.
    due: Instant,
    /// The shared list that it looked at last.
    looked: Option<List>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.looks.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Looks {
    /// Looks at shared lists that are at most an `interval` apart.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            on_the_way: watch::Sender::default(),
            next_number: AtomicU64::default(),
            waiting: AtomicUsize::default(),
            list: watch::Sender::default(),
            in_vain: Mutex::default(),
        }
    }

    /// How long shared lists are apart at most.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Says that a write may come, until dropped.
    pub(super) fn on_the_way(&self) -> OnTheWay<'_> {
        let entry = (Instant::now(), self.next_number.fetch_add(1, Ordering::Relaxed));
        self.on_the_way.send_modify(|all| {
            all.insert(entry);
        });
        OnTheWay { looks: self, entry }
    }

    /// Begins to wait for operations that Azure has accepted.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting { looks: self, list: self.list.subscribe(), due: Instant::now(), looked: None }
    }

    /// Waits until nothing is on the way any more, but for what has been for an interval.
    async fn calm(&self) {
        let mut on_the_way = self.on_the_way.subscribe();
        loop {
            let latest = on_the_way.borrow_and_update().last().map(|(since, _)| *since + self.interval);
            match latest.filter(|end| *end > Instant::now()) {
                // Whether something changed or the time is over: it is looked at again.
                Some(end) => drop(timeout_at(end, on_the_way.changed()).await),
                None => return,
            }
        }
    }

    /// Waits until nothing is on the way any more, and where several Services wait, a moment for those that come with them.
    async fn all_came(&self) {
        // Those that were woken together with this one have not said yet that they are on the way.
        yield_now().await;
        self.calm().await;
        if self.waiting.load(Ordering::Relaxed) > 1 {
            sleep(TOGETHER).await;
            self.calm().await;
        }
    }

    /// Waits until a Service is likely done and it makes sense to look.
    async fn turn(&self, due: Instant, may_be_done_at_once: bool) -> Look {
        if may_be_done_at_once {
            // Whether it became calm or not: an interval is enough.
            drop(timeout(self.interval, self.all_came()).await);
        }
        sleep_until(due).await;
        loop {
            let waiting = u32::try_from(self.waiting.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            if waiting <= 1 {
                return Look::Own;
            }
            let most = FOR_EACH.saturating_mul(waiting).min(self.interval);
            let next = self.in_vain.lock().map(|before| before.list.at + before.gap().min(most));
            match next.filter(|next| *next > Instant::now()) {
                Some(next) => sleep_until(next).await,
                None => {
                    let list = List { at: Instant::now(), newer_than: LogicalTime::now() };
                    self.list.send_replace(Some(list));
                    return Look::Shared(list.newer_than);
                }
            }
        }
    }

    /// A list showed a running operation.
    fn note_in_vain(&self, list: List) {
        let mut known = self.in_vain.lock();
        let in_a_row = match *known {
            Some(before) if before.list.newer_than >= list.newer_than => return,
            Some(before) if list.at < before.list.at + 2 * self.interval => before.in_a_row.saturating_add(1),
            _ => 1,
        };
        *known = Some(InVain { list, in_a_row });
    }
}

impl InVain {
    /// The time until the next list, if enough Services wait.
    fn gap(&self) -> Duration {
        TOGETHER * 2_u32.pow(self.in_a_row.min(10))
    }
}

impl Waiting<'_> {
    /// Waits for the next look of a Service that expects to be done after a pause. A Service that was woken before it
    /// expected to be done keeps its time. Asked again, it has found an operation running.
    pub(super) async fn look(&mut self, pause: Duration) -> Look {
        if let Some(list) = self.looked.take() {
            self.looks.note_in_vain(list);
        }
        let now = Instant::now();
        if self.due <= now {
            self.due = now + pause;
        }
        let turn = self.looks.turn(self.due, pause.is_zero());
        let look = tokio::select! {
            biased;
            Ok(()) = self.list.changed() => None,
            look = turn => Some(look),
        };
        if look == Some(Look::Own) {
            return Look::Own;
        }
        self.looked = *self.list.borrow_and_update();
        self.looked.map_or(Look::Own, |list| Look::Shared(list.newer_than))
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn looks() -> Looks {
        Looks::new(2 * SECOND)
    }

    /// How many shared lists those read who come so many milliseconds after the start, write for 5 ms, and are done after
    /// so long; and when the last of them has seen it.
    async fn lists(looks: &Looks, comers: impl IntoIterator<Item = (u64, Duration)>) -> (usize, u128) {
        let begin = Instant::now();
        let came = comers.into_iter().map(|(after, takes)| async move {
            sleep(Duration::from_millis(after)).await;
            let on_the_way = looks.on_the_way();
            sleep(Duration::from_millis(5)).await;
            drop(on_the_way);
            let (done, mut pause) = (Instant::now() + takes, takes);
            let (mut waiting, mut seen) = (looks.wait(), Vec::new());
            loop {
                match waiting.look(pause).await {
                    Look::Own => {}
                    Look::Shared(list) => seen.push(list),
                }
                if Instant::now() >= done {
                    return (seen, begin.elapsed().as_millis());
                }
                pause = (done - Instant::now()).max(SECOND / 4);
            }
        });
        let (seen, ends): (Vec<_>, Vec<_>) = join_all(came).await.into_iter().unzip();
        (
            seen.into_iter().flatten().collect::<BTreeSet<_>>().len(),
            ends.into_iter().max().unwrap_or_default(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_is_alone_waits_for_its_operation_and_nothing_else() {
        let looks = looks();
        for takes in [Duration::ZERO, SECOND / 4, SECOND, 7 * SECOND] {
            for _ in 0..20 {
                assert_eq!(lists(&looks, [(0, takes)]).await, (0, 5 + takes.as_millis()));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn services_that_come_together_read_one_list() {
        for (takes, most, late) in [(Duration::ZERO, 1, 25), (5 * SECOND, 3, 100)] {
            let twenty = (0..20).map(|number| (number * 4, takes));
            let (lists, last) = lists(&looks(), twenty).await;
            let end = 19 * 4 + 5 + takes.as_millis();
            assert!(lists <= most && last <= end + late, "{lists} lists, {last} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_gets_no_answer_is_waited_for_once() {
        let looks = looks();
        let stuck = looks.on_the_way();
        assert_eq!(lists(&looks, [(0, Duration::ZERO)]).await, (0, 2000));
        for _ in 0..3 {
            assert_eq!(lists(&looks, [(0, Duration::ZERO)]).await, (0, 5));
        }
        drop(stuck);
    }

    #[tokio::test(start_paused = true)]
    async fn services_that_never_stop_coming_are_waited_for_an_interval_at_most() {
        let looks = looks();
        let busy = async {
            loop {
                let _on_the_way = (looks.on_the_way(), looks.on_the_way());
                sleep(SECOND / 20).await;
            }
        };
        let one = async { looks.wait().look(Duration::ZERO).await };
        let begin = Instant::now();
        let look = tokio::select! { biased; () = busy => Look::Own, look = one => look };
        assert_eq!((look, begin.elapsed()), (Look::Own, 2 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_services_reads_few_lists() {
        // One every 50 ms, for ten seconds.
        let stream = (0..200).map(|number| (number * 50, 5 * SECOND));
        let (lists, last) = lists(&looks(), stream).await;
        assert!(lists <= 15, "{lists} lists in fifteen seconds");
        assert!(last <= 17_000, "{last} ms");
    }

    /// A shared list is asked for after those who read it began to wait.
    #[tokio::test(start_paused = true)]
    async fn a_shared_list_is_younger_than_those_who_read_it() {
        let looks = looks();
        let wait = async || {
            let came = LogicalTime::now();
            (came, looks.wait().look(SECOND).await)
        };
        let all = join_all((0..5).map(|_| wait())).await;
        let Look::Shared(list) = all[0].1 else { panic!("{all:?}") };
        assert!(all.iter().all(|(came, look)| list > *came && *look == Look::Shared(list)), "{all:?}");
    }
}
