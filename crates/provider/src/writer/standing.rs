//! What owners were given and still want.
//!
//! A batch holds the intents that wait now. The document belongs to all owners, so each plan takes in the intents of all of
//! them: what others changed is found and repaired with the next write.

use std::collections::BTreeMap;
use std::time::Duration;

use arm::{Repeats, Verdict};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Whatever of an owner's part differs counts as the same difference: others may change it differently each time.
const PART: u64 = 0;

/// What happened to the part of an owner who did not ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// It differed and was repaired.
    Repaired,
    /// It was repaired, not for the first time: before so much time has passed it is not repaired again.
    Repeated(Duration),
    /// It differs and cannot be repaired.
    Failed(String),
}

/// The intents that were carried out, by owner.
pub(super) struct Standing<K, I>(Mutex<BTreeMap<K, Kept<I>>>);

struct Kept<I> {
    intent: I,
    /// How often its part had to be repaired.
    repairs: Repeats,
    /// Until then its part is left as it is.
    held: Option<Instant>,
}

impl<K, I> Default for Standing<K, I> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Clone + Ord, I: Clone> Standing<K, I> {
    /// An owner has what it wants.
    pub(super) fn keep(&self, key: K, intent: I) {
        let mut all = self.0.lock();
        match all.get_mut(&key) {
            Some(kept) => kept.intent = intent,
            None => drop(all.insert(key, Kept { intent, repairs: Repeats::default(), held: None })),
        }
    }

    /// An owner wants nothing any more, or cannot be given what it wants.
    pub(super) fn withdraw(&self, key: &K) {
        self.0.lock().remove(key);
    }

    /// All intents that are still wanted. The others are forgotten.
    pub(super) fn wanted(&self, is_wanted: impl Fn(&K, &I) -> bool) -> Vec<(K, I)> {
        let mut all = self.0.lock();
        all.retain(|key, kept| is_wanted(key, &kept.intent));
        all.iter().map(|(key, kept)| (key.clone(), kept.intent.clone())).collect()
    }

    /// Those of them that may be repaired now.
    pub(super) fn to_repair(&self, is_wanted: impl Fn(&K, &I) -> bool, now: Instant) -> Vec<(K, I)> {
        let mut all = self.0.lock();
        all.retain(|key, kept| is_wanted(key, &kept.intent));
        let is_due = |kept: &Kept<I>| kept.held.is_none_or(|held| held <= now);
        let due = all.iter().filter(|(_, kept)| is_due(kept));
        due.map(|(key, kept)| (key.clone(), kept.intent.clone())).collect()
    }

    /// An owner's part was repaired.
    pub(super) fn repaired(&self, key: &K, now: Instant) -> Disturbance {
        let mut all = self.0.lock();
        let Some(kept) = all.get_mut(key) else { return Disturbance::Repaired };
        kept.repairs.written(PART, now);
        match kept.repairs.judge(PART, now) {
            Verdict::Write => Disturbance::Repaired,
            Verdict::Wait(wait) => {
                kept.held = Some(now + wait);
                Disturbance::Repeated(wait)
            }
        }
    }

    /// An owner's part cannot be repaired, or it was no use.
    pub(super) fn hold(&self, key: &K, now: Instant) {
        if let Some(kept) = self.0.lock().get_mut(key) {
            let wait = kept.repairs.stuck(PART, now);
            kept.held = Some(now + wait);
        }
    }

    /// When the next part that is left as it is may be repaired again.
    pub(super) fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        self.0.lock().values().filter_map(|kept| kept.held).filter(|held| *held > now).min()
    }
}
