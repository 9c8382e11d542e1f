//! Values that are forgotten when they are not used.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Unused values are looked for so many times while one is kept, so that a lookup seldom visits all of them.
const SEARCHES: u32 = 4;

/// Values by key. One that is not used for a while is forgotten, when others are used or inserted.
#[derive(Debug)]
pub struct Recent<K, V> {
    kept: Duration,
    next_search: Instant,
    pub(crate) values: HashMap<K, (Instant, V)>,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// No values yet; each is kept for at least this long after its last use.
    pub fn kept_for(kept: Duration) -> Self {
        Self { kept, next_search: Instant::now(), values: HashMap::new() }
    }

    /// The value of a key.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        let (used, value) = self.values.get_mut(key)?;
        *used = Instant::now();
        Some(value)
    }

    /// The value of a key, or a new one.
    pub fn get_or_insert_with(&mut self, key: K, new: impl FnOnce() -> V) -> &V {
        let now = Instant::now();
        let (used, value) = self.values.entry(key).or_insert_with(|| (now, new()));
        *used = now;
        value
    }

    /// Inserts a value, and forgets unused ones.
    pub fn insert(&mut self, key: K, value: V) {
        self.forget_unused(|_| false);
        self.values.insert(key, (Instant::now(), value));
    }

    /// Forgets unused values, except those that `is_held`.
    pub fn forget_unused(&mut self, is_held: impl Fn(&V) -> bool) {
        let now = Instant::now();
        if now < self.next_search {
            return;
        }
        self.next_search = now + self.kept / SEARCHES;
        self.values.retain(|_, (used, value)| now.duration_since(*used) < self.kept || is_held(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unused_values_are_forgotten() {
        let kept = Duration::from_secs(24 * 60 * 60);
        let mut recent = Recent::kept_for(kept);
        recent.insert("old", 1);
        recent.insert("used", 2);
        for _ in 0..3 {
            tokio::time::advance(kept / 2).await;
            assert_eq!(recent.get(&"used"), Some(&2));
        }
        recent.insert("new", 3);
        assert_eq!(recent.get(&"old"), None);
        assert_eq!(recent.get(&"used"), Some(&2));
        assert_eq!(*recent.get_or_insert_with("used", || 4), 2);
        assert_eq!(recent.values.len(), 2);
    }
}
