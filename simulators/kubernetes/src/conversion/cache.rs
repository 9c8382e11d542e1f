//! A cache of a conversion webhook's results, by the content of the objects.

use std::collections::HashMap;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::object::to_bytes;

/// The hash of an object and of the target version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn of(object: &Value, to: &str) -> Self {
        let text = format!("{to}\n{object}");
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self(key)
    }
}

/// The minimum capacity of the cache.
const CAPACITY: usize = 10_000;

/// The most recently used results.
#[derive(Debug, Default)]
pub(super) struct ConversionCache {
    /// As text, which takes an eighth of the memory.
    answers: HashMap<Key, (Bytes, u64)>,
    uses: u64,
}

impl ConversionCache {
    pub(super) fn get(&mut self, key: Key) -> Option<Value> {
        self.uses += 1;
        let (answer, used) = self.answers.get_mut(&key)?;
        *used = self.uses;
        serde_json::from_slice(answer).ok()
    }

    pub(super) fn has(&self, key: Key) -> bool {
        self.answers.contains_key(&key)
    }

    /// Adds a result. Beyond the capacity the least recently used quarter is dropped. `objects` is the number of
    /// objects of the kind: a list needs a result for each of them at once.
    pub(super) fn insert(&mut self, key: Key, answer: &Value, objects: usize) {
        self.uses += 1;
        self.answers.insert(key, (to_bytes(answer), self.uses));
        let capacity = CAPACITY.max(objects.saturating_mul(4));
        if self.answers.len() > capacity {
            let mut uses: Vec<u64> = self.answers.values().map(|(_, used)| *used).collect();
            let (_, oldest, _) = uses.select_nth_unstable(capacity / 4);
            let oldest = *oldest;
            self.answers.retain(|_, (_, used)| *used >= oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(number: usize) -> Key {
        Key::of(&json!(number), "example.com/v1")
    }

    #[test]
    fn content_and_version_tell_answers_apart() {
        let mut cache = ConversionCache::default();
        cache.insert(key(1), &json!("one"), 0);
        assert_eq!(cache.get(key(1)), Some(json!("one")));
        assert_eq!(cache.get(key(2)), None);
        assert_eq!(cache.get(Key::of(&json!(1), "example.com/v2")), None);
    }

    #[test]
    fn what_is_used_stays_and_there_is_an_end() {
        let mut cache = ConversionCache::default();
        for number in 0..3 * CAPACITY {
            cache.insert(key(number), &json!(number), 0);
            cache.get(key(0));
            assert!(cache.answers.len() <= CAPACITY);
        }
        assert_eq!(cache.get(key(0)), Some(json!(0)));
        assert_eq!(cache.get(key(1)), None);
        // A longer list needs all of its results at once.
        let mut cache = ConversionCache::default();
        (0..2 * CAPACITY).for_each(|number| cache.insert(key(number), &json!(number), 2 * CAPACITY));
        assert!((0..2 * CAPACITY).all(|number| cache.get(key(number)).is_some()));
    }
}
