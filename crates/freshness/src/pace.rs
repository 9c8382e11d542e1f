//! When a long-running operation is polled: when it is likely done.
//!
//! Operations of one kind (such as a method on a resource type) take about as long each time. The durations of previous ones
//! are known in this process, and the next one is first polled when it should be done. If nothing is known it is polled
//! at once, and then with pauses of a tenth of its age: a server that answers at once causes no wait, and the first
//! operation of a kind is learned from as precisely as the later ones.
//!
//! # Guarantees
//!
//! * If operations of a kind always take the same time, one costs one or two polls, and another for each five seconds
//!   that it takes. Its end is seen at most 5 % or a quarter of a second late, that of the first one 10 %.
//! * No end is seen more than five seconds late, whatever was learned: one slow operation does not delay the next one.
//! * If they become faster, each one that is done at its expected time brings the next poll forward, first by little,
//!   then by half; one that is done earlier counts at once.
//! * After a poll of a running operation, no other follows within a quarter of a second.
//!
//! The caller waits longer where the server asks for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;

/// The shortest pause between two polls of a running operation: a twentieth of what Azure takes for a small change.
const MIN_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause: an operation that hangs costs twelve reads a minute.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The number of kinds whose durations are learned. A cluster has some twenty; beyond this nothing more is learned.
const MAX_KINDS: usize = 200;
/// An operation that takes longer than expected is polled again after this part of its age.
const LATENESS: u32 = 20;
/// One without a known duration is polled after this part: one that takes 20 s costs 32 polls, once in a process.
const LATENESS_AT_FIRST: u32 = 10;
/// After so many hits in a row, half of the expected duration is tried.
const HITS_UNTIL_HALVED: u32 = 4;

/// The age at which operations of a kind are expected to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    at: Duration,
    /// How many in a row were done at the first poll, so that they may be done earlier.
    hits: u32,
}

impl Expected {
    /// Lowers it after an operation that was done at the first poll: by a part that doubles with each in a row, up to a
    /// half.
    fn lowered(self, age: Duration) -> Self {
        let at = self.at.min(age);
        let halvings = HITS_UNTIL_HALVED.saturating_sub(self.hits) + 1;
        Self { at: at - at / 2u32.pow(halvings), hits: self.hits.saturating_add(1) }
    }
}

/// The durations of earlier operations of each kind, in this process.
#[derive(Debug)]
pub struct LearnedDurations<K>(Mutex<HashMap<K, Expected>>);

impl<K> Default for LearnedDurations<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> LearnedDurations<K> {
    /// Begins to poll an operation.
    pub fn polls(&self, kind: &K) -> Polls {
        Polls::expecting(self.0.lock().get(kind).copied())
    }

    /// Learns from an operation that has succeeded at this age.
    pub fn learn(&self, kind: K, polls: &Polls, age: Duration) {
        let mut known = self.0.lock();
        let before = known.get(&kind).copied();
        if let Some(after) = polls.lesson(before, age)
            && (before.is_some() || known.len() < MAX_KINDS)
        {
            known.insert(kind, after);
        }
    }
}

/// The polls of one operation. Pure: ages of the operation are passed in.
#[derive(Debug)]
pub struct Polls {
    /// The expectation at the first poll.
    expected: Option<Expected>,
    /// The age at which the next poll is due.
    due: Duration,
    /// Its age when it was last seen running.
    running: Option<Duration>,
    /// How many times it was still running when it was expected to be done.
    misses: u32,
    /// Whether the duration can be learned from the end: not if a poll in between had no answer.
    is_lesson: bool,
}

impl Polls {
    /// The polls of an operation of unknown duration, such as one that another program began.
    pub fn unknown() -> Self {
        Self::expecting(None)
    }

    fn expecting(expected: Option<Expected>) -> Self {
        Self { expected, due: Duration::ZERO, running: None, misses: 0, is_lesson: true }
    }

    /// The pause before the first poll; zero if the duration of such operations is unknown.
    pub fn first(&mut self, age: Duration) -> Duration {
        let pause = self.expected.map_or(Duration::ZERO, |expected| towards(expected.at.saturating_sub(age)));
        self.due = age.saturating_add(pause);
        pause
    }

    /// It was still running at this age. Returns the pause before the next poll, between a quarter of a second and
    /// five. An earlier poll, such as by a list for others, does not delay the one that is due.
    pub fn missed(&mut self, age: Duration) -> Duration {
        self.running = Some(age);
        if age.saturating_add(age / LATENESS) < self.due {
            return (self.due - age).clamp(MIN_PAUSE, MAX_PAUSE);
        }
        let pause = match self.expected {
            None => age / LATENESS_AT_FIRST,
            Some(expected) if expected.at > age => towards(expected.at - age),
            Some(_) => {
                // The second pause equals the first: a step that doubles too early is learned from, and is late.
                let doubled = 2u32.saturating_pow(self.misses.saturating_sub(1));
                self.misses = self.misses.saturating_add(1);
                (age / LATENESS).saturating_mul(doubled)
            }
        };
        let pause = pause.clamp(MIN_PAUSE, MAX_PAUSE);
        self.due = age.saturating_add(pause);
        pause
    }

    /// A poll had no answer, and Azure asks for this pause. Returns the pause before the next one.
    pub fn unanswered(&mut self, asked: Option<Duration>) -> Duration {
        self.is_lesson = false;
        asked.unwrap_or(MAX_PAUSE).max(MIN_PAUSE)
    }

    /// The expectation after it succeeded at this age; `known` is the present expectation. `None` if nothing is
    /// learned.
    fn lesson(&self, known: Option<Expected>, age: Duration) -> Option<Expected> {
        if !self.is_lesson {
            return None;
        }
        let running = self.running.unwrap_or_default();
        match self.expected {
            // Earlier than expected.
            Some(expected) if age < expected.at => {
                Some(Expected { at: running.saturating_add(age) / 2, hits: 0 })
            }
            // At the expected poll. Many that ran in parallel are one lesson: one that began with an expectation that
            // was lowered since then says nothing about the new one.
            Some(expected) if running < expected.at => {
                known.filter(|known| *known == expected).map(|expected| {
                    let lowered = expected.lowered(age);
                    Expected { at: lowered.at.max(running), ..lowered }
                })
            }
            _ => self.running.map(|running| Expected { at: running.saturating_add(age) / 2, hits: 0 }),
        }
    }
}

/// The next of the equal steps that divide the remaining time: as few as possible, none longer than [`MAX_PAUSE`].
fn towards(left: Duration) -> Duration {
    let steps = left.as_nanos().div_ceil(MAX_PAUSE.as_nanos()).max(1);
    left / u32::try_from(steps).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Kind = (&'static str, usize);

    const PUT: Kind = ("PUT", 0);

    fn seconds(figure: f64) -> Duration {
        Duration::from_secs_f64(figure)
    }

    /// Polls one operation of an Azure with this latency; returns the ages at which it was polled.
    fn ages(pace: &LearnedDurations<Kind>, latency: Duration) -> Vec<Duration> {
        let mut polls = pace.polls(&PUT);
        let mut ages = vec![polls.first(Duration::ZERO)];
        loop {
            let age = *ages.last().unwrap();
            if age >= latency {
                pace.learn(PUT, &polls, age);
                return ages;
            }
            ages.push(age + polls.missed(age));
        }
    }

    #[test]
    fn an_azure_that_answers_at_once_is_asked_at_once_and_costs_one_look() {
        let pace = LearnedDurations::<Kind>::default();
        for _ in 0..10 {
            assert_eq!(ages(&pace, Duration::ZERO), [Duration::ZERO]);
        }
    }

    #[test]
    fn where_nothing_is_known_the_pauses_grow_with_the_age_up_to_five_seconds() {
        let seen = ages(&LearnedDurations::<Kind>::default(), seconds(20.0));
        assert_eq!(seen.len(), 33, "{seen:?}");
        assert!(seen[32] < seconds(22.0), "{seen:?}");
        for pair in seen.windows(2) {
            assert_eq!(pair[1] - pair[0], (pair[0] / 10).max(MIN_PAUSE));
        }
        let long = ages(&LearnedDurations::<Kind>::default(), seconds(600.0));
        assert!(long.len() < 160 && *long.last().unwrap() <= seconds(605.0), "{}", long.len());
    }

    #[test]
    fn what_the_last_one_took_is_when_the_next_one_is_looked_at() {
        let pace = LearnedDurations::<Kind>::default();
        let first = ages(&pace, seconds(20.0));
        let (miss, hit) = (first[first.len() - 2], first[first.len() - 1]);
        let expected = pace.polls(&PUT).expected.unwrap().at;
        assert_eq!(expected, (miss + hit) / 2, "between the last miss and the hit");
        for _ in 0..10 {
            let next = ages(&pace, seconds(20.0));
            assert!((4..=6).contains(&next.len()), "three on the way: {next:?}");
            assert!(*next.last().unwrap() <= seconds(21.0), "{next:?}");
        }
    }

    #[test]
    fn pauses_after_a_miss() {
        let expected = Some(Expected { at: seconds(20.0), hits: 0 });
        for (expected, misses, age, pause) in [
            (None, 0, 0.0, 0.25),
            (None, 3, 2.0, 0.25),
            (None, 3, 20.0, 2.0),
            (None, 9, 60.0, 5.0),
            (expected, 0, 18.0, 2.0),
            (expected, 0, 2.0, 4.5),
            (expected, 0, 19.9, 0.25),
            (expected, 0, 20.0, 1.0),
            (expected, 1, 21.0, 1.05),
            (expected, 2, 22.0, 2.2),
            (expected, 3, 24.0, 4.8),
            (expected, 4, 30.0, 5.0),
            (expected, u32::MAX, 1e9, 5.0),
        ] {
            let mut polls = Polls { expected, due: Duration::ZERO, running: None, misses, is_lesson: true };
            assert_eq!(polls.missed(seconds(age)), seconds(pause), "{expected:?} {misses} {age}");
            assert_eq!(polls.running, Some(seconds(age)));
        }
    }

    #[test]
    fn a_look_that_others_asked_for_does_not_put_off_the_one_that_is_due() {
        let expected = Some(Expected { at: seconds(9.0), hits: 0 });
        let mut polls = Polls { expected, due: Duration::ZERO, running: None, misses: 0, is_lesson: true };
        assert_eq!(polls.first(Duration::ZERO), seconds(4.5));
        for (age, pause) in
            [(1.0, 3.5), (4.0, 0.5), (4.4, 4.6), (8.0, 1.0), (9.0, 0.45), (9.2, 0.46), (9.5, 0.95)]
        {
            assert_eq!(polls.missed(seconds(age)), seconds(pause), "{age}");
            assert_eq!(polls.running, Some(seconds(age)));
        }
    }

    #[test]
    fn a_faster_azure_is_found_within_a_few_operations() {
        let pace = LearnedDurations::<Kind>::default();
        ages(&pace, seconds(60.0));
        let first: Vec<f64> = (0..8).map(|_| ages(&pace, seconds(1.0))[0].as_secs_f64()).collect();
        assert!(first[..6].is_sorted_by(|one, next| one > next), "{first:?}");
        assert!(first[7] < 2.0, "{first:?}");
        for _ in 0..4 {
            ages(&pace, seconds(1.0));
        }
        let end = *ages(&pace, seconds(1.0)).last().unwrap();
        assert!(end <= seconds(1.3), "{end:?}");
    }

    /// One operation that Azure delayed for a minute says little about the next one.
    #[test]
    fn one_slow_operation_costs_the_next_one_five_seconds_at_most() {
        let pace = LearnedDurations::<Kind>::default();
        for _ in 0..10 {
            ages(&pace, seconds(2.0));
        }
        ages(&pace, seconds(60.0));
        let next = ages(&pace, seconds(2.0));
        assert!(next.len() == 1 && next[0] <= MAX_PAUSE, "{next:?}");
        let later = ages(&pace, seconds(2.0));
        assert!(*later.last().unwrap() <= seconds(2.6), "{later:?}");
    }

    #[test]
    fn many_that_run_side_by_side_are_one_lesson() {
        let pace = LearnedDurations::<Kind>::default();
        ages(&pace, seconds(20.0));
        let before = pace.polls(&PUT).expected.unwrap().at;
        let side_by_side: Vec<Polls> = (0..50).map(|_| pace.polls(&PUT)).collect();
        for polls in &side_by_side {
            pace.learn(PUT, polls, seconds(20.5));
        }
        let next = pace.polls(&PUT).expected.unwrap().at;
        assert!(next > before * 15 / 16 && next < before, "{before:?}, {next:?}");
    }

    /// A delay by other operations is not learned as a duration.
    #[test]
    fn nothing_is_learned_from_an_end_that_was_seen_too_late() {
        let pace = LearnedDurations::<Kind>::default();
        let mut polls = pace.polls(&PUT);
        polls.missed(seconds(1.0));
        assert_eq!(polls.unanswered(None), MAX_PAUSE);
        assert_eq!(polls.unanswered(Some(Duration::ZERO)), MIN_PAUSE);
        assert_eq!(polls.unanswered(Some(seconds(300.0))), seconds(300.0));
        pace.learn(PUT, &polls, seconds(300.0));
        assert_eq!(pace.polls(&PUT).first(Duration::ZERO), Duration::ZERO);
        // It was done when another process took it over, an hour later.
        pace.learn(PUT, &pace.polls(&PUT), seconds(3600.0));
        assert_eq!(pace.polls(&PUT).first(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn kinds_are_told_apart_and_bounded() {
        let pace = LearnedDurations::<Kind>::default();
        for number in 0..2 * MAX_KINDS {
            let kind = ("PUT", number);
            let mut polls = pace.polls(&kind);
            polls.missed(seconds(1.0));
            pace.learn(kind, &polls, seconds(3.0));
        }
        assert_eq!(pace.0.lock().len(), MAX_KINDS);
        assert_eq!(pace.polls(&PUT).first(Duration::ZERO), seconds(2.0));
        assert_eq!(pace.polls(&PUT).first(seconds(1.5)), seconds(0.5));
        let deletion = ("DELETE", 0);
        assert_eq!(pace.polls(&deletion).first(Duration::ZERO), Duration::ZERO);
    }

    proptest! {
        /// Whatever earlier operations took.
        #[test]
        fn a_constant_azure_costs_few_looks_and_little_time(
            before in proptest::collection::vec(0.0..600.0_f64, 0..5),
            latency in 0.0..600.0_f64,
        ) {
            let pace = LearnedDurations::<Kind>::default();
            for before in before {
                ages(&pace, seconds(before));
            }
            for _ in 0..40 {
                ages(&pace, seconds(latency));
            }
            for _ in 0..20 {
                let looked_at = ages(&pace, seconds(latency));
                prop_assert!(looked_at.len() as f64 <= 3.0 + latency / 4.5, "{looked_at:?}");
                let late = looked_at.last().unwrap().as_secs_f64() - latency;
                prop_assert!(late <= (latency * 0.05).clamp(0.251, 5.001), "{late}");
            }
        }

        #[test]
        fn operations_that_vary_are_looked_at_with_pauses_and_end(
            latencies in proptest::collection::vec(0.0..600.0_f64, 1..30),
        ) {
            let pace = LearnedDurations::<Kind>::default();
            for latency in latencies {
                let looked_at = ages(&pace, seconds(latency));
                for pair in looked_at.windows(2) {
                    prop_assert!((MIN_PAUSE..=MAX_PAUSE).contains(&(pair[1] - pair[0])), "{looked_at:?}");
                }
            }
        }
    }
}
