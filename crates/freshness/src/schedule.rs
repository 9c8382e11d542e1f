//! When the next look is due: after pauses that grow while nothing changes.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Pauses that double from the first to the longest.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    /// The pause after the first look.
    pub first: Duration,
    /// The longest pause, unless the first one is longer.
    pub longest: Duration,
}

impl Pauses {
    /// The pause after a look that followed so many others.
    pub fn after(self, others: u32) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(others).unwrap_or(u32::MAX));
        doubled.min(self.longest.max(self.first))
    }
}

/// Whether a look at a subject is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It was never looked at.
    First,
    /// It is due after this pause since the last look.
    Now(Duration),
    /// It is due in this time: no event is a reason to look earlier.
    In(Duration),
}

#[derive(Debug)]
struct Looks<S> {
    state: S,
    count: u32,
    pause: Duration,
    next: Instant,
}

/// The looks at subjects by key. Pauses grow as long as a subject is in the same state.
#[derive(Debug)]
pub struct Schedule<K, S> {
    pauses: Pauses,
    /// Where the pauses of all subjects are counted from, if they end together.
    common: Option<Instant>,
    looks: Mutex<HashMap<K, Looks<S>>>,
}

impl<K: Eq + Hash, S: PartialEq> Schedule<K, S> {
    /// Each subject has its own pauses.
    pub fn new(pauses: Pauses) -> Self {
        Self { pauses, common: None, looks: Mutex::default() }
    }

    /// Pauses end at multiples of themselves, counted from now: looks at different subjects coincide, and share what is
    /// read.
    pub fn in_step(pauses: Pauses) -> Self {
        Self { common: Some(Instant::now()), ..Self::new(pauses) }
    }

    /// Whether a look at a subject in this state is due.
    pub fn due<Q: Eq + Hash + ?Sized>(&self, key: &Q, state: &S) -> Due
    where
        K: Borrow<Q>,
    {
        let looks = self.looks.lock();
        let Some(known) = looks.get(key).filter(|looks| looks.state == *state) else { return Due::First };
        let left = known.next.saturating_duration_since(Instant::now());
        if left.is_zero() { Due::Now(known.pause) } else { Due::In(left) }
    }

    /// Records a look at a subject in this state. Returns the time until the next one.
    pub fn looked(&self, key: K, state: S) -> Duration {
        let mut looks = self.looks.lock();
        let count = looks.get(&key).filter(|looks| looks.state == state).map_or(0, |looks| looks.count);
        let (pause, now) = (self.pauses.after(count), Instant::now());
        let past = self.common.map_or(0, |begin| {
            now.duration_since(begin).as_nanos().checked_rem(pause.as_nanos()).unwrap_or_default()
        });
        let wait = pause.saturating_sub(Duration::from_nanos(u64::try_from(past).unwrap_or_default()));
        looks.insert(key, Looks { state, count: count.saturating_add(1), pause, next: now + wait });
        wait
    }

    /// Forgets a subject: the next look is the first one.
    pub fn forget<Q: Eq + Hash + ?Sized>(&self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.looks.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::time::{advance, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PAUSES: Pauses = Pauses { first: Duration::from_secs(5), longest: Duration::from_secs(60) };

    #[tokio::test(start_paused = true)]
    async fn looks_become_rarer_and_fall_together() {
        let schedule = Schedule::in_step(PAUSES);
        sleep(2 * SECOND).await;
        let mut waits = vec![];
        assert_eq!(schedule.due("n1", &1), Due::First);
        for _ in 0..7 {
            let wait = schedule.looked("n1", 1);
            assert_eq!(schedule.due("n1", &1), Due::In(wait), "an event is no reason to look earlier");
            waits.push(wait.as_secs());
            sleep(wait).await;
            assert!(matches!(schedule.due("n1", &1), Due::Now(_)));
        }
        assert_eq!(waits, [3, 5, 10, 20, 20, 60, 60]);
        sleep(7 * SECOND).await;
        for _ in 0..9 {
            sleep(schedule.looked("n2", 1)).await;
        }
        assert_eq!(schedule.looked("n2", 1), schedule.looked("n1", 1));
        assert_eq!(schedule.due("n1", &2), Due::First, "another subject of the name begins anew");
        schedule.forget("n1");
        assert_eq!(schedule.due("n1", &1), Due::First);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_is_due_says_how_long_the_last_one_is_ago() {
        let schedule = Schedule::new(PAUSES);
        advance(SECOND).await;
        for pause in [5, 10, 20, 40, 60, 60] {
            assert_eq!(schedule.looked("n", ()), pause * SECOND);
            advance(pause * SECOND).await;
            assert_eq!(schedule.due("n", &()), Due::Now(pause * SECOND));
        }
    }

    proptest! {
        #[test]
        fn pauses_never_shrink_and_stay_within_their_limits(
            first in 0_u64..1_000_000, longest in 0_u64..1_000_000, others in 0_u32..200,
        ) {
            let pauses =
                Pauses { first: Duration::from_millis(first), longest: Duration::from_millis(longest) };
            let pause = pauses.after(others);
            prop_assert!(pause >= pauses.first && pause <= pauses.longest.max(pauses.first));
            prop_assert!(pauses.after(others + 1) >= pause);
            prop_assert_eq!(pauses.after(0), pauses.first);
        }

        /// The pauses of all subjects in step end together: within the longest pause all are due at the same moment.
        #[test]
        fn subjects_in_step_share_their_looks(offsets in proptest::collection::vec(0_u32..300, 1..6)) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(async {
                let (schedule, begin) = (Schedule::in_step(PAUSES), Instant::now());
                let subjects = offsets.iter().enumerate().map(async |(subject, offset)| {
                    sleep(*offset * SECOND).await;
                    for _ in 0..10 {
                        sleep(schedule.looked(subject, ())).await;
                    }
                    begin.elapsed().as_secs() % PAUSES.longest.as_secs()
                });
                assert!(futures::future::join_all(subjects).await.iter().all(|phase| *phase == 0));
            });
        }
    }
}
