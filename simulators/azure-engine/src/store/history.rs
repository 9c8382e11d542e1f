//! Recent states of resources, for reads that lag behind writes.
//!
//! Azure answers reads from copies that are updated a moment later, lists later than single resources. The lag of a
//! read is drawn from the seed, up to the bound. Writes, their preconditions and polls of operations see the present.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use tokio::time::Instant;

/// A past state.
struct Past<R> {
    /// The first moment at which it was no longer valid.
    until: Instant,
    /// The resource; `None` where there was none.
    record: Option<R>,
}

/// The number of new states after which unreachable ones are dropped. Dropping reads all of them, so it must be rare;
/// that many states take a few megabytes.
const SWEEP_INTERVAL: usize = 4_096;

/// The past states that a read may still see.
pub struct History<R> {
    /// By lower-case id, the oldest first.
    past: BTreeMap<String, VecDeque<Past<R>>>,
    /// How long a state is kept; zero disables the history.
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

    /// Keeps the state of a resource before a change.
    pub fn remember(&mut self, key: &str, record: Option<&R>) {
        if self.bound.is_zero() {
            return;
        }
        let now = self.moment.unwrap_or_else(Instant::now);
        let states = self.past.entry(key.to_owned()).or_default();
        // Of several changes at one moment only the state before all of them was visible.
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

    /// The state of a resource at a moment; the outer `None` if it has not changed since.
    pub fn at(&self, key: &str, moment: Instant) -> Option<Option<&R>> {
        let past = self.past.get(key)?.iter().find(|past| past.until > moment)?;
        Some(past.record.as_ref())
    }

    /// Ids with past states and this prefix.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a String> {
        self.past
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(move |key| key.starts_with(prefix))
    }
}
