//! Counts how many resources there have been of each id: a client that recreates one must not see the etags and GUIDs
//! of the old one.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// How many deleted ids are remembered, in a few megabytes. An id that comes again is used by the same test or program
/// soon after.
const MAX_GONE: usize = 10_000;

/// The counts, by lower-case id.
#[derive(Default)]
pub struct Incarnations {
    counts: HashMap<String, u64>,
    /// Deleted ids with their count at that time, oldest first.
    gone: VecDeque<(String, u64)>,
    /// The highest count that was forgotten: an id that is no longer known continues from there.
    floor: u64,
}

impl Incarnations {
    /// Returns how many there have been.
    pub fn of(&self, key: &str) -> u64 {
        self.counts.get(key).copied().unwrap_or(self.floor)
    }

    /// Counts a new resource of an id. Returns the count including it.
    pub fn begin(&mut self, key: &str) -> u64 {
        let count = self.counts.entry(key.to_owned()).or_insert(self.floor);
        *count += 1;
        *count
    }

    /// Notes that the resource of an id is gone.
    pub fn end(&mut self, key: &str) {
        self.gone.push_back((key.to_owned(), self.of(key)));
        if self.gone.len() <= MAX_GONE {
            return;
        }
        let Some((key, count)) = self.gone.pop_front() else { return };
        // An id that was recreated since stays known.
        if self.counts.get(&key) == Some(&count) {
            self.counts.remove(&key);
            self.floor = self.floor.max(count);
        }
    }

    /// What is saved: the counts, and the highest one forgotten.
    pub fn save(&self) -> (BTreeMap<String, u64>, u64) {
        (self.counts.iter().map(|(id, count)| (id.clone(), *count)).collect(), self.floor)
    }

    /// What was saved; `lives` says of an id whether there is such a resource.
    pub fn restore(counts: BTreeMap<String, u64>, floor: u64, lives: impl Fn(&str) -> bool) -> Self {
        let gone = counts.iter().filter(|(key, _)| !lives(key)).map(|(key, count)| (key.clone(), *count));
        Self { gone: gone.collect(), counts: counts.into_iter().collect(), floor }
    }
}

#[cfg(test)]
mod tests {
    use super::{Incarnations, MAX_GONE};

    #[test]
    fn no_count_comes_twice_although_old_ids_are_forgotten() {
        let mut all = Incarnations::default();
        assert_eq!((all.begin("a"), all.begin("b")), (1, 1));
        all.end("a");
        assert_eq!((all.of("a"), all.begin("a")), (1, 2));
        all.end("a");
        all.end("b");
        for number in 0..MAX_GONE {
            let key = number.to_string();
            all.begin(&key);
            all.end(&key);
        }
        assert!(all.counts.len() <= MAX_GONE && all.gone.len() <= MAX_GONE);
        assert_eq!((all.begin("a"), all.begin("new")), (3, 3));
        let (counts, floor) = all.save();
        let mut again = Incarnations::restore(counts, floor, |key| key == "a" || key == "new");
        assert_eq!((again.begin("b"), again.of("a")), (3, 3));
    }
}
