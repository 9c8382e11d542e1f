//! A cache that forgets unused values.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// How long an unused value is kept. Values in use are read more often: all objects are reconciled at least once in a
/// sync period.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Values by key. A value that is not read for a day is forgotten: keys are derived from secrets, and each rotated
/// secret makes a new one.
pub(crate) struct Recent<K, V>(HashMap<K, (Instant, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// The value of a key.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        let (used, value) = self.0.get_mut(key)?;
        *used = Instant::now();
        Some(value)
    }

    /// Inserts a value, and forgets unused ones.
    pub fn insert(&mut self, key: K, value: V) {
        self.0.retain(|_, (used, _)| used.elapsed() < KEPT);
        self.0.insert(key, (Instant::now(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_is_forgotten_after_a_day() {
        let mut recent = Recent::default();
        recent.insert("old", 1);
        recent.insert("used", 2);
        for _ in 0..3 {
            tokio::time::advance(KEPT / 2).await;
            assert_eq!(recent.get(&"used"), Some(&2));
        }
        recent.insert("new", 3);
        assert_eq!(recent.get(&"old"), None);
        assert_eq!(recent.get(&"used"), Some(&2));
    }
}
