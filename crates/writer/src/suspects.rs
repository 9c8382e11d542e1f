//! Refused owners, and the search for the owners that a refusal concerns.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::failure::Failure;

/// How long a refused owner is remembered without a retry: its next retry follows within five minutes.
const FORGET_TIMEOUT: Duration = Duration::from_secs(3600);

/// Owners whose intents Azure refused. Until Azure accepts one, it is written alone and after the others, so that it
/// does not make them fail again.
#[derive(Debug)]
pub(crate) struct Suspects<K>(BTreeMap<K, Instant>);

impl<K> Default for Suspects<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Clone + Ord> Suspects<K> {
    pub(crate) fn add(&mut self, key: K) {
        let now = Instant::now();
        self.0.retain(|_, since| now.duration_since(*since) < FORGET_TIMEOUT);
        self.0.insert(key, now);
    }

    pub(crate) fn clear(&mut self, key: &K) {
        self.0.remove(key);
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// The owner among `keys` that was refused the longest time ago.
    pub(crate) fn first<'a>(&self, keys: impl Iterator<Item = &'a K>) -> Option<K>
    where
        K: 'a,
    {
        keys.filter_map(|key| Some((self.0.get(key)?, key))).min().map(|(_, key)| key.clone())
    }
}

/// The search for the owners in a batch that a refusal concerns, if it may concern the whole resource, such as a
/// missing permission. It ends when some owners were refused alone and none was written.
#[derive(Debug)]
pub(crate) struct Search<K, N> {
    /// The owners that were refused alone.
    refused: Vec<K>,
    /// How many owners are refused alone before the resource counts as the culprit.
    limit: usize,
    /// Whether anything was written since it began.
    has_succeeded: bool,
    failure: Failure<N>,
}

impl<K: Clone + PartialEq, N: Clone> Search<K, N> {
    /// A search among so many owners, none of which Azure names.
    pub(crate) fn new(owners: usize, failure: Failure<N>) -> Self {
        let limit = 2 + owners.checked_ilog2().unwrap_or_default() as usize;
        Self { refused: Vec::new(), limit, has_succeeded: false, failure }
    }

    pub(crate) fn refused(&mut self, key: K, failure: &Failure<N>) {
        if !self.refused.contains(&key) {
            self.refused.push(key);
        }
        self.failure = failure.clone();
    }

    pub(crate) fn succeeded(&mut self) {
        self.has_succeeded = true;
    }

    /// The refused owners and the failure, if the search failed: the refusal is about the resource.
    pub(crate) fn in_vain(&self) -> Option<(Vec<K>, Failure<N>)> {
        let is_over = !self.has_succeeded && self.refused.len() >= self.limit;
        is_over.then(|| (self.refused.clone(), self.failure.clone()))
    }
}
