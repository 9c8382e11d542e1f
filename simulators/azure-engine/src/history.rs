//! What resources were like a short while ago, for reads that lag behind writes.
//!
//! Azure answers reads from copies that are brought up to date a moment later, lists later than single
//! resources. How far a read lags is drawn from the seed, never further than the bound. Writes, their
//! preconditions and polls of operations see the present.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use tokio::time::Instant;

/// A state that is over.
struct Past<R> {
    /// The first moment at which it was no more.
    until: Instant,
    /// The resource; `None` where there was none.
    record: Option<R>,
}

/// After how many new states those that no read can see any more are dropped: that reads all of them, so it
/// must be rare, and so many states cost a few megabytes.
const SWEEP_INTERVAL: usize = 4_096;

/// The states that are over, for as long as a read may still see them.
pub struct History<R> {
    /// By lower-case id, the oldest first.
    past: BTreeMap<String, VecDeque<Past<R>>>,
    /// How long a state is kept; zero for not at all.
    bound: Duration,
    remembered: usize,
    /// The time of a change that was due before now and is made now.
    pub moment: Option<Instant>,
}

impl<R> Default for History<R> {
    fn default() -> Self {
        Self { past: BTreeMap::new(), bound: Duration::ZERO, remembered: 0, moment: None }
    }
}

impl<R: Clone> History<R> {
    /// Keeps states for that long from now on.
    pub fn keep(&mut self, bound: Duration) {
        self.bound = bound;
        if bound.is_zero() {
            self.past.clear();
        }
    }

    /// Keeps what a resource was like before a change that is about to be made.
    pub fn remember(&mut self, key: &str, record: Option<&R>) {
        if self.bound.is_zero() {
            return;
        }
        let now = self.moment.unwrap_or_else(Instant::now);
        let states = self.past.entry(key.to_owned()).or_default();
        // Of the changes of one moment only the state before all of them was ever to be seen.
        if states.back().is_some_and(|past| past.until == now) {
            return;
        }
        states.push_back(Past { until: now, record: record.cloned() });
        self.remembered += 1;
        if self.remembered.is_multiple_of(SWEEP_INTERVAL) {
            let bound = self.bound;
            self.past.retain(|_, states| {
                states.retain(|past| now.saturating_duration_since(past.until) <= bound);
                !states.is_empty()
            });
        }
    }

    /// What a resource was like at a moment; the outer `None` where it has not changed since.
    pub fn at(&self, key: &str, moment: Instant) -> Option<Option<&R>> {
        let past = self.past.get(key)?.iter().find(|past| past.until > moment)?;
        Some(past.record.as_ref())
    }

    /// Ids that have a past and begin so.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a String> {
        self.past
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(move |key| key.starts_with(prefix))
    }
}
