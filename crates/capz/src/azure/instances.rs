//! The latest observation of each pool's scale set, and how long it may be used. An observation is a read of the set
//! followed by one list of its instances. Events of Kubernetes and the controllers of the pool's machines share it
//! until something is known to have changed in Azure, or until it expires. Changes that arrive at the same time share
//! the next observation.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use capz_planner::pool::{Instance, Pending};
use freshness::Pauses;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::kubernetes::store::Key;

/// The shortest interval between two observations.
const BETWEEN: Duration = Duration::from_secs(1);
/// Azure permits ten lists of a scale set's instances a minute, and after a quiet time thirty at once ("Compute
/// throttling limits"). This is the same rate with a smaller burst, which leaves the rest to other programs.
const PACE: Duration = Duration::from_secs(6);
const AT_ONCE: u32 = 20;
/// The interval between two observations while Azure is at work; it doubles after each observation that shows no
/// change.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// How long an observation may be used while Azure is not at work.
const SERVES: Duration = Duration::from_secs(60);

/// An observation of a scale set.
#[derive(Debug)]
pub struct PoolObservation {
    /// The scale set, as read before its instances were listed.
    pub scale_set: Value,
    /// All its instances.
    pub instances: Vec<Instance>,
    /// The IDs of all machines that were known before the instances were listed, in lower case.
    pub known: BTreeSet<String>,
    /// The events that preceded it.
    turn: ObservationTurn,
    /// Indexes of instances by provider ID in lower case.
    places: HashMap<String, usize>,
}

/// The permission to observe, with the number of events at the time it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservationTurn(u64);

impl PoolObservation {
    /// The observation for which this turn was taken.
    pub fn new(
        turn: ObservationTurn,
        scale_set: Value,
        instances: Vec<Instance>,
        known: BTreeSet<String>,
    ) -> Self {
        let places = instances.iter().enumerate();
        let places = places.map(|(place, it)| (it.provider_id.to_lowercase(), place)).collect();
        Self { scale_set, instances, known, turn, places }
    }

    /// The instance with this provider ID.
    pub fn see(&self, provider_id: &str) -> Option<&Instance> {
        self.instances.get(*self.places.get(&provider_id.to_lowercase())?)
    }

    /// Whether Azure is deleting the scale set.
    pub fn is_of_a_leaving_set(&self) -> bool {
        self.scale_set["properties"]["provisioningState"] == "Deleting"
    }

    fn shows_the_same(&self, other: &Self) -> bool {
        self.scale_set == other.scale_set && self.instances == other.instances
    }
}

/// The state of a pool.
struct PoolState {
    latest: Option<Arc<PoolObservation>>,
    /// When the observation expires; `None` until [`Instances::keep`] decides that.
    until: Option<Instant>,
    /// The number of events so far.
    events: u64,
    /// The number of observations in a row that showed no change.
    alike: u32,
    /// The earliest time of the next observation.
    next: Instant,
    /// When the full burst is available again.
    full: Instant,
}

impl PoolState {
    fn new(now: Instant) -> Self {
        Self { latest: None, until: None, events: 0, alike: 0, next: now, full: now }
    }
}

/// The latest observations of all pools.
#[derive(Default)]
pub struct Instances {
    pools: Mutex<HashMap<Key, PoolState>>,
}

impl Instances {
    fn with<T>(&self, pool: &Key, act: impl FnOnce(&mut PoolState, Instant) -> T) -> T {
        let now = Instant::now();
        act(self.pools.lock().entry(pool.clone()).or_insert_with(|| PoolState::new(now)), now)
    }

    /// Waits until the pool may be observed again.
    pub async fn turn(&self, pool: &Key) -> ObservationTurn {
        tokio::time::sleep_until(self.with(pool, |state, _| state.next)).await;
        self.with(pool, |state, now| {
            state.full = state.full.max(now) + PACE;
            let stored = state.full.checked_sub(PACE * AT_ONCE).unwrap_or(now);
            state.next = stored.max(now + BETWEEN);
            ObservationTurn(state.events)
        })
    }

    /// Stores an observation. No other reconcile uses it before [`Self::keep`].
    pub fn take(&self, pool: &Key, look: Arc<PoolObservation>) {
        self.with(pool, |state, _| {
            let alike = state.latest.as_ref().is_some_and(|before| before.shows_the_same(&look));
            state.alike = if alike { state.alike.saturating_add(1) } else { 0 };
            state.until = None;
            state.latest = Some(look);
        });
    }

    /// Returns how long the observation of a pool that waits for `pending` may be used from now. `longest` is the
    /// longest interval while Azure is at work, `rest` the interval where nothing happens.
    pub fn keep(&self, pool: &Key, pending: Pending, longest: Duration, rest: Duration) -> Duration {
        self.with(pool, |state, now| {
            let pause = match pending {
                Pending::Azure => Pauses { first: FIRST_PAUSE.min(longest), longest }.after(state.alike),
                Pending::Machines => SERVES,
                Pending::Nothing => SERVES.min(rest),
            };
            // A second decision about the same observation does not extend its time.
            let until = state.until.map_or(now + pause, |until| until.min(now + pause));
            state.until = Some(until);
            until.saturating_duration_since(now)
        })
    }

    /// The latest observation of a pool, unless it is outdated or expired.
    pub fn serving(&self, pool: &Key) -> Option<Arc<PoolObservation>> {
        self.with(pool, |state, now| {
            let until = state.until;
            let serves = |look: &Arc<PoolObservation>| {
                until.is_some_and(|until| now < until) && look.turn == ObservationTurn(state.events)
            };
            state.latest.clone().filter(serves)
        })
    }

    /// Whether no event happened since this observation began.
    pub fn is_current(&self, pool: &Key, look: &PoolObservation) -> bool {
        self.with(pool, |state, _| look.turn == ObservationTurn(state.events))
    }

    /// The latest observation of a pool; `None` if it was never observed.
    pub fn latest(&self, pool: &Key) -> Option<Arc<PoolObservation>> {
        self.pools.lock().get(pool)?.latest.clone()
    }

    /// Marks the observation as outdated: something may have changed in Azure.
    pub fn outdate(&self, pool: &Key) {
        self.with(pool, |state, _| {
            state.events += 1;
            state.alike = 0;
        });
    }

    /// Forgets a deleted pool.
    pub fn forget(&self, pool: &Key) {
        self.pools.lock().remove(pool);
    }
}

/// Whether a provider ID is that of an instance of this uniform scale set.
pub fn is_within(provider_id: &str, scale_set: &ResourceId) -> bool {
    let id = provider_id.strip_prefix("azure://").unwrap_or(provider_id);
    ResourceId::parse(id).is_ok_and(|id| id.is_within(scale_set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const REQUEUE: Duration = Duration::from_secs(15);
    const REST: Duration = Duration::from_secs(600);

    fn pool() -> Key {
        Key { namespace: "n".to_owned(), name: "p".to_owned() }
    }

    async fn look(instances: &Instances, capacity: u32) {
        let turn = instances.turn(&pool()).await;
        let set = json!({ "sku": { "capacity": capacity } });
        instances.take(&pool(), Arc::new(PoolObservation::new(turn, set, Vec::new(), BTreeSet::new())));
    }

    fn keep(instances: &Instances, pending: Pending) -> u64 {
        instances.keep(&pool(), pending, REQUEUE, REST).as_secs()
    }

    /// An observation expires after its time; using it does not extend that.
    #[tokio::test(start_paused = true)]
    async fn a_look_serves_for_its_time() {
        let instances = Instances::default();
        assert!(instances.serving(&pool()).is_none());
        look(&instances, 1).await;
        assert!(instances.serving(&pool()).is_none(), "its time is not set yet");
        assert_eq!(keep(&instances, Pending::Machines), 60);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(instances.serving(&pool()).is_some());
        assert_eq!(keep(&instances, Pending::Machines), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(instances.serving(&pool()).is_none() && instances.latest(&pool()).is_some());
        look(&instances, 1).await;
        assert_eq!(instances.keep(&pool(), Pending::Nothing, REQUEUE, Duration::from_secs(10)).as_secs(), 10);
    }

    /// An event while an observation is being made outdates it as well.
    #[tokio::test(start_paused = true)]
    async fn a_look_serves_until_something_happens() {
        let instances = Instances::default();
        look(&instances, 1).await;
        keep(&instances, Pending::Machines);
        instances.outdate(&pool());
        assert!(instances.serving(&pool()).is_none());
        let turn = instances.turn(&pool()).await;
        instances.outdate(&pool());
        instances
            .take(&pool(), Arc::new(PoolObservation::new(turn, Value::Null, Vec::new(), BTreeSet::new())));
        keep(&instances, Pending::Machines);
        assert!(instances.serving(&pool()).is_none());
        instances.forget(&pool());
        assert!(instances.latest(&pool()).is_none());
    }

    /// While Azure is at work the intervals grow, and restart with every change.
    #[tokio::test(start_paused = true)]
    async fn pauses_grow_while_nothing_changes() {
        let instances = Instances::default();
        let mut pauses = Vec::new();
        for capacity in [1, 1, 1, 1, 1, 2, 2] {
            look(&instances, capacity).await;
            pauses.push(keep(&instances, Pending::Azure));
        }
        assert_eq!(pauses, [2, 4, 8, 15, 15, 2, 4]);
        instances.outdate(&pool());
        assert_eq!(keep(&instances, Pending::Azure), 2);
    }

    /// However many events there are, Azure is read no faster than it permits.
    #[tokio::test(start_paused = true)]
    async fn looks_keep_the_pace_that_azure_takes() {
        let (instances, begin) = (Instances::default(), Instant::now());
        let mut looks: Vec<f64> = Vec::new();
        while begin.elapsed() < Duration::from_secs(600) {
            look(&instances, 1).await;
            looks.push(begin.elapsed().as_secs_f64());
        }
        let within = |seconds: f64| looks.iter().filter(|at| **at < seconds).count();
        assert_eq!((looks[0], looks[1]), (0.0, 1.0));
        for minutes in 1..10_u32 {
            let (most, found) = (30 + 10 * minutes as usize, within(60.0 * f64::from(minutes)));
            assert!(found <= most, "{found} looks in {minutes} minutes");
        }
        assert_eq!(within(600.0) - within(540.0), 10);
    }
}
