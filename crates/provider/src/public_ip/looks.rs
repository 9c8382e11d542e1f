//! When everybody who waits for a public IP reads their list.
//!
//! # Guarantees
//!
//! * Who waits while others write waits for them, a look interval at most. Those who come together read one list.
//! * Who comes alone, and is done at once, waits for the linger alone.
//! * The list is read once in a look interval. Where public IPs are done at once it is four times in the long run; where
//!   they are expected to be done later, once more when nobody has looked for an interval.

use std::time::Duration;

use cloud::LogicalTime;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// Services that come together come some milliseconds apart: so long after the last one the list is read for all of them.
const LINGER: Duration = Duration::from_millis(20);
/// The moments for which somebody expects to be done, in a look interval.
const MOMENTS_OF_AN_INTERVAL: u32 = 4;

/// The moments at which a list is read that many wait for.
pub(super) struct CommonLooks {
    interval: Duration,
    origin: Instant,
    /// How many Services may come to a write or a deletion, and how many such calls have no answer yet.
    on_the_way: watch::Sender<usize>,
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

/// A call until its first answer, or a Service that may come to one.
pub(super) struct OnTheWay<'a>(&'a watch::Sender<usize>);

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl CommonLooks {
    /// Looks that come `interval` after one another at most.
    pub(super) fn new(interval: Duration) -> Self {
        let (on_the_way, _) = watch::channel(0);
        let interval = interval.max(Duration::from_millis(1));
        Self { interval, origin: Instant::now(), on_the_way, latest: Mutex::default() }
    }

    /// Says that somebody is about to write, until dropped.
    pub(super) fn on_the_way(&self) -> OnTheWay<'_> {
        self.on_the_way.send_modify(|count| *count += 1);
        OnTheWay(&self.on_the_way)
    }

    /// Waits for the first look of somebody who expects to be done after a pause, and then until nobody is on the way;
    /// gives the time after which the list is read.
    ///
    /// Those who come one after the other do not read one list each: they, and what they write next, wait for each other
    /// a little.
    pub(super) async fn first(&self, pause: Duration) -> LogicalTime {
        let came = LogicalTime::now();
        let fine = self.interval / MOMENTS_OF_AN_INTERVAL;
        let now = Instant::now();
        let mut moment = now;
        if pause.is_zero() {
            if let Some(gap) = self.gap_after_latest(now, fine) {
                moment = self.aligned(now, gap);
                sleep_until(moment).await;
            }
        } else {
            moment = self.aligned(now + pause, fine);
            sleep_until(moment).await;
            let latest = *self.latest.lock();
            if let Some(latest) = latest.filter(|latest| moment <= latest.at + self.interval) {
                // Somebody has just looked: at this moment, or so short before it that the next common one will do.
                if latest.at < moment {
                    moment = self.aligned(moment, self.interval);
                    sleep_until(moment).await;
                }
                return self.look(moment);
            }
        }
        let patience = self.next_moment();
        if timeout_at(patience, self.calm()).await.is_err() {
            return self.look(patience);
        }
        let looked = self.look(moment);
        if moment == now { came } else { looked }
    }

    /// The gap that is kept to the latest look, if it is not over: the more looks came close together, the longer.
    fn gap_after_latest(&self, now: Instant, longest: Duration) -> Option<Duration> {
        let latest = (*self.latest.lock())?;
        let gap = LINGER.saturating_mul(1 << latest.close_by.min(10)).min(longest);
        (now < latest.at + gap).then_some(gap)
    }

    /// Waits for the next of the moments at which everybody reads the list, whoever writes meanwhile; gives the time after
    /// which it is read.
    pub(super) async fn next(&self) -> LogicalTime {
        let moment = self.next_moment();
        sleep_until(moment).await;
        self.look(moment)
    }

    fn next_moment(&self) -> Instant {
        self.aligned(Instant::now() + Duration::from_nanos(1), self.interval)
    }

    /// A moment, put off to a multiple of `step`: whoever waits about as long looks at the same moment.
    fn aligned(&self, moment: Instant, step: Duration) -> Instant {
        let step = step.as_nanos().max(1);
        let rest = step - moment.saturating_duration_since(self.origin).as_nanos() % step;
        moment + Duration::from_nanos(u64::try_from(rest % step).unwrap_or(u64::MAX))
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
        let before = latest.filter(|latest| at < latest.at + self.interval);
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
            looks.first(pause).await;
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
        looks.first(Duration::ZERO).await;
        assert_eq!(begin.elapsed(), 2 * SECOND);
        looks.first(SECOND / 2).await;
        assert_eq!(begin.elapsed(), 4 * SECOND);
        drop(stuck);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_come_one_after_the_other_read_few_lists() {
        // One every 50 ms, for ten seconds.
        let comers = || (0..200).map(|number| number * 50);
        let (at_once, _) = lists(&looks(), comers().map(|after| (after, Duration::ZERO))).await;
        assert!(at_once <= 26, "{at_once} lists in ten seconds");
        let (later, last) = lists(&looks(), comers().map(|after| (after, 5 * SECOND))).await;
        assert!(later <= 7, "{later} lists in ten seconds");
        assert!(last <= 17_000, "{last} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_alone_is_looked_at_when_it_is_likely_done() {
        let looks = looks();
        for pause in [SECOND, 5 * SECOND, 7 * SECOND] {
            let begin = Instant::now();
            looks.first(pause).await;
            let late = begin.elapsed() - pause;
            assert!(late <= SECOND / 2 + LINGER, "{pause:?}: {late:?}");
            looks.next().await;
            sleep(10 * SECOND).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_steps_of_one_service_do_not_wait_for_each_other() {
        let looks = looks();
        let begin = Instant::now();
        for _ in 0..3 {
            looks.first(Duration::ZERO).await;
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
