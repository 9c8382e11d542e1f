//! Decides which events are created, merged with earlier ones, or dropped: client-go's rules, so that a loop that fails
//! every few seconds does not fill the cluster's store.
//!
//! * A repeated event increases the count of the existing one.
//! * More than ten events of one object and reason with different texts within ten minutes are combined.
//! * An object gets 25 events at once from one component, then one in five minutes.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::{SignedDuration, Timestamp};

use super::occurrence::Occurrence;

/// Number of different texts of one object and reason before they are combined.
const MAX_SIMILAR: usize = 10;
/// How long texts count as similar.
const SIMILAR_INTERVAL: SignedDuration = SignedDuration::from_secs(600);
/// Burst size: events of one object and component at once.
const BURST: f64 = 25.0;
/// Seconds until such an object gets one more event.
const REFILL_SECONDS: f64 = 300.0;
/// Maximum number of entries of each kind, as in client-go: beyond that, the oldest is created again if it repeats.
const MAX_REMEMBERED: usize = 4096;

/// A hash of a remembered value: thousands of events of thousands of objects are remembered. A collision is not to be
/// expected in the lifetime of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fingerprint(u64);

impl Fingerprint {
    fn of(what: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The stored event that an occurrence belongs to: a hash of component, object, type, reason and text; without the text
/// for the combined event of many texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EventKey(Fingerprint);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The object had too many events.
    Drop,
    /// Create an event with this text.
    Create { message: String },
    /// Increase the count of the event of this name.
    Repeat { name: String, count: i32, message: String },
}

#[derive(Debug)]
struct SimilarTexts {
    /// At most [`MAX_SIMILAR`].
    texts: Vec<Fingerprint>,
    last: Timestamp,
}

#[derive(Debug, Default)]
struct WrittenEvent {
    name: Option<String>,
    count: i32,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: RecentlyUsed<Fingerprint, SimilarTexts>,
    written: RecentlyUsed<EventKey, WrittenEvent>,
    buckets: RecentlyUsed<Fingerprint, Bucket>,
}

impl Correlator {
    /// The action for an occurrence, and the key under which its event is remembered.
    pub fn judge(&mut self, occurrence: &Occurrence, now: Timestamp) -> (Verdict, EventKey) {
        let Occurrence { component, about, event_type, reason, message } = occurrence;
        let similar = Fingerprint::of(&(component, about, event_type, reason));
        let texts = self.similar.entry(&similar, || SimilarTexts { texts: Vec::new(), last: now });
        if now.duration_since(texts.last) > SIMILAR_INTERVAL {
            texts.texts.clear();
        }
        texts.last = now;
        let text = Fingerprint::of(message);
        let is_known = texts.texts.contains(&text);
        let (message, text) = if !is_known && texts.texts.len() >= MAX_SIMILAR {
            (format!("(combined from similar events): {message}"), None)
        } else {
            if !is_known {
                texts.texts.push(text);
            }
            (message.clone(), Some(text))
        };
        let message = k8s::shorten(message, k8s::MAX_EVENT_MESSAGE);
        let key = EventKey(Fingerprint::of(&(similar, text)));
        let written = self.written.entry(&key, WrittenEvent::default);
        written.count = written.count.saturating_add(1);
        let (name, count) = (written.name.clone(), written.count);
        if !self.spend(occurrence, now) {
            return (Verdict::Drop, key);
        }
        let verdict = match name {
            Some(name) => Verdict::Repeat { name, count, message },
            None => Verdict::Create { message },
        };
        (verdict, key)
    }

    /// Remembers the name of a created event.
    pub fn created(&mut self, key: EventKey, name: String) {
        let written = self.written.entry(&key, WrittenEvent::default);
        *written = WrittenEvent { name: Some(name), count: 1 };
    }

    /// Forgets an event that could not be written.
    pub fn lost(&mut self, key: &EventKey) {
        self.written.remove(key);
    }

    fn spend(&mut self, occurrence: &Occurrence, now: Timestamp) -> bool {
        let key = Fingerprint::of(&(occurrence.component, &occurrence.about));
        let bucket = self.buckets.entry(&key, || Bucket { tokens: BURST, at: now });
        let passed = now.duration_since(bucket.at).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed / REFILL_SECONDS).min(BURST);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}

/// A map that drops its least recently used entries.
#[derive(Debug)]
struct RecentlyUsed<K, V> {
    values: HashMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    tick: u64,
}

impl<K, V> Default for RecentlyUsed<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new(), order: BTreeMap::new(), tick: 0 }
    }
}

impl<K: Clone + Eq + Hash, V> RecentlyUsed<K, V> {
    fn entry(&mut self, key: &K, new: impl FnOnce() -> V) -> &mut V {
        if self.values.len() >= MAX_REMEMBERED
            && !self.values.contains_key(key)
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.tick += 1;
        let (tick, value) = self.values.entry(key.clone()).or_insert_with(|| (0, new()));
        self.order.remove(tick);
        *tick = self.tick;
        self.order.insert(self.tick, key.clone());
        value
    }

    fn remove(&mut self, key: &K) {
        if let Some((tick, _)) = self.values.remove(key) {
            self.order.remove(&tick);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventType, Reference};

    fn occurrence(name: &str, message: &str) -> Occurrence {
        Occurrence {
            component: "service-controller",
            about: Reference {
                api_version: "v1",
                kind: "Service",
                namespace: "shop".into(),
                name: name.into(),
                uid: "1".into(),
            },
            event_type: EventType::Warning,
            reason: "SyncLoadBalancerFailed",
            message: message.into(),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn repeats_raise_the_count_of_one_event() {
        let mut correlator = Correlator::default();
        let (verdict, key) = correlator.judge(&occurrence("web", "no"), at(0));
        assert_eq!(verdict, Verdict::Create { message: "no".into() });
        correlator.created(key, "web.1".into());
        for count in 2..5 {
            let (verdict, _) = correlator.judge(&occurrence("web", "no"), at(count.into()));
            assert_eq!(verdict, Verdict::Repeat { name: "web.1".into(), count, message: "no".into() });
        }
        let (verdict, _) = correlator.judge(&occurrence("web", "never"), at(9));
        assert_eq!(verdict, Verdict::Create { message: "never".into() });
    }

    #[test]
    fn an_event_that_was_not_written_is_created_the_next_time() {
        let mut correlator = Correlator::default();
        let (_, key) = correlator.judge(&occurrence("web", "no"), at(0));
        correlator.lost(&key);
        let (verdict, key) = correlator.judge(&occurrence("web", "no"), at(1));
        assert_eq!(verdict, Verdict::Create { message: "no".into() });
        correlator.created(key, "web.1".into());
        let (verdict, _) = correlator.judge(&occurrence("web", "no"), at(2));
        assert_eq!(verdict, Verdict::Repeat { name: "web.1".into(), count: 2, message: "no".into() });
    }

    #[test]
    fn more_than_ten_similar_texts_are_joined_for_ten_minutes() {
        let mut correlator = Correlator::default();
        for number in 0..10 {
            let message = format!("try {number}");
            let (verdict, _) = correlator.judge(&occurrence("web", &message), at(number));
            assert_eq!(verdict, Verdict::Create { message });
        }
        let (verdict, key) = correlator.judge(&occurrence("web", "try 10"), at(10));
        let message = "(combined from similar events): try 10".to_owned();
        assert_eq!(verdict, Verdict::Create { message });
        correlator.created(key, "web.joined".into());
        let (verdict, _) = correlator.judge(&occurrence("web", "try 11"), at(11));
        let message = "(combined from similar events): try 11".to_owned();
        assert_eq!(verdict, Verdict::Repeat { name: "web.joined".into(), count: 2, message });
        let (verdict, _) = correlator.judge(&occurrence("web", "try 12"), at(700));
        assert_eq!(verdict, Verdict::Create { message: "try 12".into() });
    }

    #[test]
    fn an_object_has_a_burst_of_events_and_then_one_in_five_minutes() {
        let mut correlator = Correlator::default();
        let mut passed = |name: &str, second: i64| {
            let (verdict, key) = correlator.judge(&occurrence(name, "no"), at(second));
            let passes = verdict != Verdict::Drop;
            if passes {
                correlator.created(key, "web.1".into());
            }
            passes
        };
        assert_eq!((0..40).filter(|_| passed("web", 0)).count(), 25);
        assert!(passed("other", 0), "another object is not concerned");
        assert!(!passed("web", 299));
        assert!(passed("web", 301));
        assert!(!passed("web", 302));
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = Correlator::default();
        for number in 0..MAX_REMEMBERED + 100 {
            correlator.judge(&occurrence(&format!("web-{number}"), "no"), at(0));
        }
        assert_eq!(correlator.written.values.len(), MAX_REMEMBERED);
        assert_eq!(correlator.written.order.len(), MAX_REMEMBERED);
    }
}
