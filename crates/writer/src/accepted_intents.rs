//! Accepted intents that are still wanted.
//!
//! A batch contains the pending intents. The document belongs to all owners, so each plan includes the accepted intents
//! of all of them: foreign changes are found and repaired with the next write.

use std::collections::BTreeMap;
use std::time::Duration;

use arm::{Repeats, Verdict};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Any difference in an owner's part counts as the same one: others may change it differently each time.
const PART: u64 = 0;

/// A change of the part of an owner without a pending intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disturbance {
    /// It differed and was repaired.
    Repaired,
    /// It was repaired repeatedly: it is not repaired again before this time has passed.
    Repeated(Duration),
    /// It differs and cannot be repaired.
    Failed(String),
}

/// The accepted intents, by owner.
pub(crate) struct AcceptedIntents<K, I>(Mutex<BTreeMap<K, AcceptedIntent<I>>>);

struct AcceptedIntent<I> {
    intent: I,
    /// The repairs of its part so far.
    repairs: Repeats,
    /// Until then its repair is put off.
    held: Option<Instant>,
}

impl<K, I> Default for AcceptedIntents<K, I> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Clone + Ord, I: Clone> AcceptedIntents<K, I> {
    /// Stores an accepted intent.
    pub(crate) fn insert(&self, key: K, intent: I) {
        let mut all = self.0.lock();
        match all.get_mut(&key) {
            Some(accepted) => accepted.intent = intent,
            None => drop(all.insert(key, AcceptedIntent { intent, repairs: Repeats::default(), held: None })),
        }
    }

    /// Removes an owner that wants nothing any more, or whose intent cannot be carried out.
    pub(crate) fn withdraw(&self, key: &K) {
        self.0.lock().remove(key);
    }

    /// All intents that are still wanted. Drops the others.
    pub(crate) fn wanted(&self, is_wanted: impl Fn(&K, &I) -> bool) -> Vec<(K, I)> {
        let mut all = self.0.lock();
        all.retain(|key, accepted| is_wanted(key, &accepted.intent));
        all.iter().map(|(key, accepted)| (key.clone(), accepted.intent.clone())).collect()
    }

    /// Whether any intent is still wanted.
    pub(crate) fn is_any_wanted(&self, is_wanted: impl Fn(&K, &I) -> bool) -> bool {
        self.0.lock().iter().any(|(key, accepted)| is_wanted(key, &accepted.intent))
    }

    /// The intents whose parts may be repaired now.
    pub(crate) fn to_repair(&self, is_wanted: impl Fn(&K, &I) -> bool, now: Instant) -> Vec<(K, I)> {
        let mut all = self.0.lock();
        all.retain(|key, accepted| is_wanted(key, &accepted.intent));
        let is_due = |accepted: &AcceptedIntent<I>| accepted.held.is_none_or(|held| held <= now);
        let due = all.iter().filter(|(_, accepted)| is_due(accepted));
        due.map(|(key, accepted)| (key.clone(), accepted.intent.clone())).collect()
    }

    /// Records a repair of an owner's part.
    pub(crate) fn repaired(&self, key: &K, now: Instant) -> Disturbance {
        let mut all = self.0.lock();
        let Some(accepted) = all.get_mut(key) else { return Disturbance::Repaired };
        accepted.repairs.written(PART, now);
        match accepted.repairs.judge(PART, now) {
            Verdict::Write => Disturbance::Repaired,
            Verdict::Wait(wait) => {
                accepted.held = Some(now + wait);
                Disturbance::Repeated(wait)
            }
        }
    }

    /// Puts off the repair of an owner's part, because it fails or does not last.
    pub(crate) fn hold(&self, key: &K, now: Instant) {
        if let Some(accepted) = self.0.lock().get_mut(key) {
            let wait = accepted.repairs.stuck(PART, now);
            accepted.held = Some(now + wait);
        }
    }

    /// When the next part whose repair is put off may be repaired again.
    pub(crate) fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        self.0.lock().values().filter_map(|accepted| accepted.held).filter(|held| *held > now).min()
    }
}
