//! What resources were like a short while ago, for reads that lag behind writes.
//!
//! Azure answers reads from copies that are brought up to date a moment later, lists later than single
//! resources. How far a read lags is drawn from the seed, never further than the bound. Writes, their
//! preconditions and polls of operations see the present.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::latency::bounded;
use super::state::AzureState;
use super::store::Record;

/// How far reads may lag behind writes. All zero, the default, is an Azure in which every read sees
/// every write before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Consistency {
    /// Most milliseconds by which a GET of one resource lags: one that was just created may be absent
    /// for that long, one that was just deleted may be shown.
    pub reads_ms: u64,
    /// The same for lists.
    pub lists_ms: u64,
    /// The share of reads that lag at all.
    pub share: f64,
}

impl Default for Consistency {
    fn default() -> Self {
        Self { reads_ms: 0, lists_ms: 0, share: 1.0 }
    }
}

impl Consistency {
    fn bound(&self) -> Duration {
        bounded(self.reads_ms.max(self.lists_ms))
    }
}

/// A state that is over.
struct Past {
    /// The first moment at which it was no more.
    until: Instant,
    /// The resource; `None` where there was none.
    record: Option<Record>,
}

/// After how many new states those that no read can see any more are dropped: that reads all of them, so it
/// must be rare, and so many states cost a few megabytes.
const SWEEP_INTERVAL: usize = 4_096;

/// The states that are over, for as long as a read may still see them.
#[derive(Default)]
pub(crate) struct History {
    /// By lower-case id, the oldest first.
    past: BTreeMap<String, VecDeque<Past>>,
    /// How long a state is kept; zero for not at all.
    bound: Duration,
    remembered: usize,
    /// The time of a change that was due before now and is made now.
    pub(crate) moment: Option<Instant>,
}

impl History {
    /// Keeps states for that long from now on.
    pub(crate) fn keep(&mut self, bound: Duration) {
        self.bound = bound;
        if bound.is_zero() {
            self.past.clear();
        }
    }

    /// Keeps what a resource was like before a change that is about to be made.
    pub(crate) fn remember(&mut self, key: &str, record: Option<&Record>) {
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
    pub(crate) fn at(&self, key: &str, moment: Instant) -> Option<Option<&Record>> {
        let past = self.past.get(key)?.iter().find(|past| past.until > moment)?;
        Some(past.record.as_ref())
    }

    /// Ids that have a past and begin so.
    pub(crate) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a String> {
        self.past
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(move |key| key.starts_with(prefix))
    }
}

impl AzureState {
    /// Chooses how far reads lag from now on.
    pub(crate) fn set_consistency(&mut self, consistency: Consistency) {
        self.consistency = consistency;
        self.store.history.keep(consistency.bound());
    }

    /// The moment whose state a read sees; `None` for the present.
    pub(crate) fn seen_at(&self, id: &ResourceId, list: bool) -> Option<Instant> {
        let Consistency { reads_ms, lists_ms, share } = self.consistency;
        let most = if list { lists_ms } else { reads_ms };
        if most == 0 {
            return None;
        }
        let draw = |purpose| self.seed.number(purpose, id.as_str(), self.requests) % 1_000_000;
        if draw("lags") as f64 >= share * 1_000_000.0 {
            return None;
        }
        // From just under the bound down to a lag of one part in a million.
        let lag = bounded(most).mul_f64((draw("lag") + 1) as f64 / 1_000_001.0);
        Instant::now().checked_sub(lag)
    }
}
