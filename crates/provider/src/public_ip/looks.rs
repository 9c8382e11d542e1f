//! When everybody who waits for a public IP reads their list.
//!
//! # Guarantees
//!
//! * Who waits alone looks when it wants to. Those who want to look at about the same time read one list.
//! * The closer looks follow each other, the longer is the gap to the next one: from 20 ms up to an interval, or up to
//!   a tenth of a second for each who waits where those are few. However many wait, in the long run the list is read once in an interval.
//! * Who is done at once waits for those who are about to write, an interval at most.

use std::time::Duration;

use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Services that come together come some milliseconds apart: so long after the last one the list is read for all of them.
const LINGER: Duration = Duration::from_millis(20);

/// How long the gap between two looks may become for each who waits: twenty who wait read one list in two seconds.
const GAP_FOR_EACH: Duration = Duration::from_millis(100);

/// The looks at a list that many wait for.
pub(super) struct CommonLooks {
    interval: Duration,
    /// How many Services may come to a write or a deletion, and how many such calls have no answer yet.
    on_the_way: watch::Sender<usize>,
    /// How many wait for a look.
    waiting: watch::Sender<usize>,
    latest: Mutex<Option<Look>>,
}

/// A look at the list.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    /// The time after which the list is read.
    newer_than: LogicalTime,
    /// How many looks came before it, none longer than an interval after the one before.
    close_by: u32,
}

/// One of those who are counted, until dropped.
struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn among(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A call until its first answer, or a Service that may come to one.
pub(super) struct OnTheWay<'a>(#[allow(dead_code, reason = "counts as long as it lives")] Counted<'a>);

impl CommonLooks {
    /// Looks that in the long run come an `interval` after one another.
    pub(super) fn new(interval: Duration) -> Self {
        let ((on_the_way, _), (waiting, _)) = (watch::channel(0), watch::channel(0));
        Self { interval: interval.max(LINGER), on_the_way, waiting, latest: Mutex::default() }
    }

    /// How long looks are apart in the long run.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Says that somebody is about to write, until dropped.
    pub(super) fn on_the_way(&self) -> OnTheWay<'_> {
        OnTheWay(Counted::among(&self.on_the_way))
    }

    /// Waits for the look of somebody who expects to be done after a pause; gives the time after which the list is read.
    ///
    /// Who expects to be done at once waits until nobody is on the way: those who come one after the other do not read one
    /// list each.
    pub(super) async fn after(&self, pause: Duration) -> LogicalTime {
        let came = LogicalTime::now();
        let asked = Instant::now();
        let _waiting = Counted::among(&self.waiting);
        sleep(pause).await;
        let moment = self.next_moment(pause);
        sleep_until(moment).await;
        if pause.is_zero() && timeout_at(asked + self.interval, self.calm()).await.is_ok() && moment <= asked
        {
            // Any list that was asked for since it came tells what it wants to know.
            self.look(moment);
            return came;
        }
        self.look(moment)
    }

    /// Waits an interval, for what nothing is known of; gives the time after which the list is read.
    pub(super) async fn next(&self) -> LogicalTime {
        self.after(self.interval).await
    }

    /// Now, or the end of the gap that is kept to the latest look. One that was begun at this very moment is shared.
    fn next_moment(&self, pause: Duration) -> Instant {
        let now = Instant::now();
        let earlier = self.latest.lock().filter(|latest| latest.at < now);
        earlier.map_or(now, |latest| {
            let longest = if pause.is_zero() {
                self.interval
            } else {
                let waiting = u32::try_from(*self.waiting.borrow()).unwrap_or(u32::MAX);
                GAP_FOR_EACH.saturating_mul(waiting).clamp(pause.min(self.interval), self.interval)
            };
            let gap = LINGER.saturating_mul(1 << latest.close_by.min(10)).min(longest);
            now.max(latest.at + gap)
        })
    }

    /// Waits until nobody is on the way, and nobody comes for a little while.
    async fn calm(&self) {
        let mut on_the_way = self.on_the_way.subscribe();
        while on_the_way.wait_for(|count| *count == 0).await.is_ok() {
            if timeout(LINGER, on_the_way.changed()).await.is_err() {
                return;
            }
        }
    }

    /// The look at a moment that has come: the first who comes begins it, and the others share its list.
    fn look(&self, moment: Instant) -> LogicalTime {
        let mut latest = self.latest.lock();
        if let Some(shared) = latest.filter(|latest| latest.at >= moment) {
            return shared.newer_than;
        }
        let (at, newer_than) = (Instant::now(), LogicalTime::now());
        let before = latest.filter(|latest| at < latest.at + 2 * self.interval);
        let close_by = before.map_or(0, |before| before.close_by.saturating_add(1));
        *latest = Some(Look { at, newer_than, close_by });
        newer_than
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn looks() -> Arc<CommonLooks> {
        Arc::new(CommonLooks::new(2 * SECOND))
    }

    /// How many lists answer those who come so many milliseconds after the start with such a pause, write for 5 ms, and
    /// wait for their first look; and when the last of them has looked.
    async fn lists(
        looks: &Arc<CommonLooks>,
        comers: impl IntoIterator<Item = (u64, Duration)>,
    ) -> (usize, u128) {
        let begin = Instant::now();
        let came = comers.into_iter().map(|(after, pause)| async move {
            sleep(Duration::from_millis(after)).await;
            let on_the_way = looks.on_the_way();
            sleep(Duration::from_millis(5)).await;
            drop(on_the_way);
            looks.after(pause).await;
            begin.elapsed().as_millis()
        });
        let moments = join_all(came).await;
        let last = moments.iter().max().copied().unwrap_or_default();
        (moments.into_iter().collect::<BTreeSet<_>>().len(), last)
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_done_at_once_waits_for_those_on_the_way_and_a_little() {
        assert_eq!(lists(&looks(), [(0, Duration::ZERO)]).await, (1, 25));
        let twenty = (0..20).map(|number| (number * 4, Duration::ZERO));
        assert_eq!(lists(&looks(), twenty).await, (1, 19 * 4 + 25));
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_stops_coming_is_waited_for_an_interval_at_most() {
        let looks = looks();
        let stuck = looks.on_the_way();
        let begin = Instant::now();
        looks.after(Duration::ZERO).await;
        assert_eq!(begin.elapsed(), 2 * SECOND);
        drop(stuck);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_come_one_after_the_other_read_few_lists() {
        // One every 50 ms, for ten seconds.
        let comers = || (0..200).map(|number| number * 50);
        let (at_once, _) = lists(&looks(), comers().map(|after| (after, Duration::ZERO))).await;
        assert!(at_once <= 16, "{at_once} lists in ten seconds");
        let (later, last) = lists(&looks(), comers().map(|after| (after, 5 * SECOND))).await;
        assert!(later <= 12, "{later} lists in ten seconds");
        assert!(last <= 17_000, "{last} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_alone_is_looked_at_when_it_is_likely_done() {
        let looks = looks();
        for pause in [SECOND, 5 * SECOND, 7 * SECOND] {
            let begin = Instant::now();
            looks.after(pause).await;
            assert_eq!(begin.elapsed(), pause);
            looks.after(SECOND / 4).await;
            assert_eq!(begin.elapsed(), pause + SECOND / 4);
            sleep(10 * SECOND).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_steps_of_one_service_do_not_wait_for_each_other() {
        let looks = looks();
        let begin = Instant::now();
        for _ in 0..3 {
            looks.after(Duration::ZERO).await;
        }
        assert!(begin.elapsed() <= Duration::from_millis(120), "{:?}", begin.elapsed());
    }

    /// Whoever shares a look reads what was asked for after it began to wait.
    #[tokio::test(start_paused = true)]
    async fn a_shared_list_is_younger_than_the_wish() {
        let looks = looks();
        let wait = || async {
            let came = LogicalTime::now();
            (came, looks.next().await)
        };
        let all = join_all((0..5).map(|_| wait())).await;
        assert!(all.iter().all(|(came, read)| read > came && *read == all[0].1));
    }
}
