//! The store: one order of changes for all kinds, and for each kind a shelf of objects with a bounded log of its
//! changes (kube-apiserver's watch cache).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::object::{Object, StoredText, metadata, owner_uids, set_metadata, string_at, value_at};

/// The type of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One entry of a shelf's log.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) change: Change,
    /// The new state; for a deletion the last state, with the version of the deletion.
    pub(crate) object: Arc<StoredText>,
    pub(crate) previous: Option<Arc<StoredText>>,
}

/// All objects of one kind, by key, and the log of recent changes.
#[derive(Debug)]
pub(crate) struct Shelf {
    objects: BTreeMap<Arc<str>, Arc<StoredText>>,
    /// The API versions of stored objects, so that objects share the text.
    api_versions: Vec<Arc<str>>,
    log: VecDeque<Entry>,
    /// Version of the newest change that the log no longer holds.
    forgotten: u64,
    changed: watch::Sender<u64>,
}

impl Shelf {
    fn new(version: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            api_versions: Vec::new(),
            log: VecDeque::new(),
            forgotten: 0,
            changed: watch::Sender::new(version),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<StoredText>> {
        self.objects.get(key)
    }

    /// Sets the value of a key without logging it. Returns the new and the previous object.
    fn set(&mut self, key: &str, value: &Value, version: u64) -> (Arc<StoredText>, Option<Arc<StoredText>>) {
        let api_version = string_at(value, &["apiVersion"]).unwrap_or_default();
        let shared = self.api_versions.iter().find(|known| ***known == *api_version).cloned();
        let api_version = shared.unwrap_or_else(|| {
            let new: Arc<str> = api_version.into();
            self.api_versions.push(Arc::clone(&new));
            new
        });
        let key = self.objects.get(key).map_or_else(|| key.into(), |before| Arc::clone(before.key()));
        let kept = Arc::new(StoredText::new(Arc::clone(&key), api_version, value, version));
        let before = self.objects.insert(key, Arc::clone(&kept));
        (kept, before)
    }

    /// Version of the newest change.
    pub(crate) fn newest(&self) -> u64 {
        self.log.back().map_or(self.forgotten, |entry| entry.version)
    }

    /// Objects whose key starts with `prefix` and is greater than `after`, in order.
    pub(crate) fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: &'a str,
    ) -> impl Iterator<Item = &'a Arc<StoredText>> + 'a {
        let start = if after.is_empty() { Bound::Included(prefix) } else { Bound::Excluded(after) };
        self.objects
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(_, kept)| kept)
    }

    /// The objects as of `version`. `None` if the log does not reach back that far.
    pub(crate) fn at(&self, version: u64) -> Option<BTreeMap<Arc<str>, Arc<StoredText>>> {
        if version < self.forgotten {
            return None;
        }
        let mut objects = self.objects.clone();
        for entry in self.log.iter().rev().take_while(|entry| entry.version > version) {
            match &entry.previous {
                Some(previous) => objects.insert(Arc::clone(previous.key()), Arc::clone(previous)),
                None => objects.remove(entry.object.key()),
            };
        }
        Some(objects)
    }

    /// Up to `limit` changes after a version and up to another, oldest first. `Err` with the oldest version to continue
    /// from if changes after the first one were forgotten.
    pub(crate) fn changes_between(&self, after: u64, last: u64, limit: usize) -> Result<Vec<Entry>, u64> {
        if after < self.forgotten {
            return Err(self.forgotten);
        }
        let start = self.log.partition_point(|entry| entry.version <= after);
        let wanted = self.log.range(start..).take_while(|entry| entry.version <= last);
        Ok(wanted.take(limit).cloned().collect())
    }

    /// The newest version before the last `changes`, as far as the log reaches back.
    pub(crate) fn version_before(&self, changes: usize) -> Option<u64> {
        let left = self.log.len().checked_sub(changes)?;
        Some(
            left.checked_sub(1)
                .and_then(|last| self.log.get(last))
                .map_or(self.forgotten, |entry| entry.version),
        )
        .filter(|version| *version > 0)
    }

    /// A receiver of the version of each change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn append(&mut self, entry: Entry, window: usize) {
        let version = entry.version;
        self.log.push_back(entry);
        while self.log.len() > window {
            if let Some(oldest) = self.log.pop_front() {
                self.forgotten = oldest.version;
            }
        }
        self.changed.send_replace(version);
    }
}

/// The member of `metadata` with the owners.
const OWNERS: &str = "ownerReferences";

/// The position of an object: shelf and key.
pub(crate) type Place = (Arc<str>, Arc<str>);

/// The objects of one kind in a saved state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedShelf {
    /// Name of the shelf.
    pub(crate) resource: String,
    /// Version of the newest change among them.
    newest: u64,
    pub(crate) objects: BTreeMap<String, Value>,
}

/// All shelves with a common order of versions.
#[derive(Debug)]
pub(crate) struct Store {
    version: u64,
    window: usize,
    /// Clients cannot start from versions below this one.
    compacted: u64,
    shelves: HashMap<Arc<str>, Shelf>,
    dependents: HashMap<String, BTreeSet<Place>>,
    uids: HashMap<Box<str>, Place>,
    /// UIDs of further objects that writes affect, in order.
    touched: VecDeque<String>,
    /// The same as a set.
    waiting: HashSet<String>,
}

impl Store {
    /// A store with a log of `window` changes for each shelf. Versions start at 1, as in etcd.
    pub(crate) fn new(window: usize) -> Self {
        Self {
            version: 1,
            window: window.max(1),
            compacted: 0,
            shelves: HashMap::new(),
            dependents: HashMap::new(),
            uids: HashMap::new(),
            touched: VecDeque::new(),
            waiting: HashSet::new(),
        }
    }

    /// Queues an object whose owners and dependents have to be checked.
    pub(crate) fn touch(&mut self, uid: &str) {
        if self.waiting.insert(uid.to_owned()) {
            self.touched.push_back(uid.to_owned());
        }
    }

    /// The next object to check: one whose owners have changed or gone, one that is being deleted, or an owner that has
    /// lost a dependent.
    pub(crate) fn next_touched(&mut self) -> Option<String> {
        let uid = self.touched.pop_front()?;
        self.waiting.remove(&uid);
        Some(uid)
    }

    /// Version of the newest change of any kind.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The oldest version that a client may start from.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn shelf(&mut self, shelf: &Arc<str>) -> &Shelf {
        let version = self.version;
        self.shelves.entry(Arc::clone(shelf)).or_insert_with(|| Shelf::new(version))
    }

    /// Wakes the watchers of a kind, although none of its objects has changed.
    pub(crate) fn wake(&self, shelf: &str) {
        if let Some(shelf) = self.shelves.get(shelf) {
            shelf.changed.send_replace(self.version);
        }
    }

    /// The same for all kinds.
    pub(crate) fn wake_all(&self) {
        for shelf in self.shelves.values() {
            shelf.changed.send_replace(self.version);
        }
    }

    /// The object with this key, for reading.
    pub(crate) fn get(&self, shelf: &str, key: &str) -> Option<Arc<Object>> {
        self.shelves.get(shelf)?.get(key).map(StoredText::open)
    }

    /// Whether an object with this key exists.
    pub(crate) fn has(&self, shelf: &str, key: &str) -> bool {
        self.shelves.get(shelf).is_some_and(|shelf| shelf.objects.contains_key(key))
    }

    /// Stores the next version of an object and notifies the watchers.
    pub(crate) fn put(&mut self, shelf: &Arc<str>, key: &str, mut value: Value) -> Arc<Object> {
        self.version += 1;
        let version = self.version;
        set_metadata(&mut value, "resourceVersion", Value::from(version.to_string()));
        let window = self.window;
        let on = self.shelves.entry(Arc::clone(shelf)).or_insert_with(|| Shelf::new(version));
        let (kept, previous) = on.set(key, &value, version);
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        on.append(Entry { version, change, object: Arc::clone(&kept), previous: previous.clone() }, window);
        let place = (Arc::clone(shelf), Arc::clone(kept.key()));
        let object = kept.opened(value);
        let before = previous.filter(|previous| previous.mentions(OWNERS)).map(|previous| previous.open());
        let owners = |object| value_at(object, &["metadata", OWNERS]);
        let changed = owners(object.value()) != before.as_deref().and_then(|before| owners(before.value()));
        if changed || object.is_terminating() {
            self.touch(object.uid());
        }
        if let (true, Some(before)) = (changed, &before) {
            owner_uids(before).for_each(|uid| self.touch(uid));
        }
        if changed {
            before.iter().for_each(|before| self.unlink(before, &place));
            self.link(&object, &place);
        }
        if change == Change::Added {
            self.uids.insert(object.uid().into(), place);
        }
        object
    }

    /// Changes an object without a new version: only for an object that is removed in the same step.
    pub(crate) fn replace_unseen(&mut self, shelf: &Arc<str>, key: &str, value: Value) {
        let Some(on) = self.shelves.get_mut(shelf) else { return };
        let Some(version) = on.objects.get(key).map(|current| current.version()) else { return };
        let (kept, previous) = on.set(key, &value, version);
        let place = (Arc::clone(shelf), Arc::clone(kept.key()));
        previous.iter().for_each(|previous| self.unlink(&previous.open(), &place));
        self.link(&kept.opened(value), &place);
    }

    /// Removes an object and notifies the watchers. Returns its last state with the version of the deletion.
    pub(crate) fn remove(&mut self, shelf: &Arc<str>, key: &str) -> Option<Arc<Object>> {
        let window = self.window;
        let on = self.shelves.get_mut(shelf)?;
        let (key, previous) = on.objects.remove_entry(key)?;
        self.version += 1;
        let version = self.version;
        let mut value = previous.value();
        set_metadata(&mut value, "resourceVersion", Value::from(version.to_string()));
        let kept = Arc::new(previous.under(&value, version));
        let entry =
            Entry { version, change: Change::Deleted, object: Arc::clone(&kept), previous: Some(previous) };
        on.append(entry, window);
        let object = kept.opened(value);
        let dependents = self.dependents(object.uid()).into_iter();
        let dependents: Vec<String> =
            dependents.filter_map(|(shelf, key)| Some(self.get(&shelf, &key)?.uid().to_owned())).collect();
        dependents.iter().for_each(|uid| self.touch(uid));
        owner_uids(&object).for_each(|uid| self.touch(uid));
        self.unlink(&object, &(Arc::clone(shelf), key));
        self.uids.remove(object.uid());
        Some(object)
    }

    fn link(&mut self, object: &Object, place: &Place) {
        for uid in owner_uids(object) {
            self.dependents.entry(uid.to_owned()).or_default().insert(place.clone());
        }
    }

    fn unlink(&mut self, object: &Object, place: &Place) {
        for uid in owner_uids(object) {
            if let Some(places) = self.dependents.get_mut(uid) {
                places.remove(place);
                if places.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }

    /// The positions of the objects that name this UID as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).map(|places| places.iter().cloned().collect()).unwrap_or_default()
    }

    /// The position of the object with this UID, if it exists.
    pub(crate) fn place_of(&self, uid: &str) -> Option<&Place> {
        self.uids.get(uid)
    }

    /// Every object in a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Place> {
        let prefix = format!("{namespace}/");
        let mut places = Vec::new();
        for (name, shelf) in &self.shelves {
            places.extend(shelf.range(&prefix, "").map(|kept| (Arc::clone(name), Arc::clone(kept.key()))));
        }
        places.sort();
        places
    }

    /// The number of objects by shelf.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let filled = self.shelves.iter().filter(|(_, shelf)| !shelf.objects.is_empty());
        filled.map(|(name, shelf)| (name.to_string(), shelf.objects.len())).collect()
    }

    /// All objects, for a saved state.
    pub(crate) fn save(&self) -> Vec<SavedShelf> {
        let mut saved: Vec<SavedShelf> = self
            .shelves
            .iter()
            .map(|(name, shelf)| SavedShelf {
                resource: name.to_string(),
                newest: shelf.newest(),
                objects: shelf.objects.iter().map(|(key, kept)| (key.to_string(), kept.value())).collect(),
            })
            .collect();
        saved.sort_by(|one, other| one.resource.cmp(&other.resource));
        saved
    }

    /// Replaces all objects by saved ones, as of `version`. If newer versions were issued, all of them are forgotten.
    pub(crate) fn restore(&mut self, version: u64, compacted: u64, saved: Vec<SavedShelf>) {
        let given_out = self.version;
        let mut fresh = Self::new(self.window);
        (fresh.version, fresh.compacted) = (version, compacted);
        for SavedShelf { resource, newest, objects } in saved {
            let name: Arc<str> = resource.into();
            for (key, value) in objects {
                let version = metadata(&value, "resourceVersion").parse().unwrap_or(version);
                let shelf = fresh.shelves.entry(Arc::clone(&name)).or_insert_with(|| Shelf::new(version));
                let (kept, _) = shelf.set(&key, &value, version);
                let place = (Arc::clone(&name), Arc::clone(kept.key()));
                let object = kept.opened(value);
                fresh.link(&object, &place);
                fresh.uids.insert(object.uid().into(), place);
            }
            fresh.shelves.entry(name).or_insert_with(|| Shelf::new(version)).forgotten = newest;
        }
        // Watchers of a kind stay subscribed.
        for (name, old) in self.shelves.drain() {
            let shelf = fresh.shelves.entry(name).or_insert_with(|| Shelf::new(version));
            shelf.changed = old.changed;
        }
        *self = fresh;
        if given_out > version {
            self.version = given_out;
            self.compact();
        }
        let version = self.version;
        self.shelves.values().for_each(|shelf| {
            shelf.changed.send_replace(version);
        });
    }

    /// The number of objects on a shelf.
    pub(crate) fn len(&self, shelf: &str) -> usize {
        self.shelves.get(shelf).map_or(0, |shelf| shelf.objects.len())
    }

    /// Every object on a shelf.
    pub(crate) fn keys(&self, shelf: &str) -> Vec<Arc<str>> {
        self.shelves.get(shelf).map(|shelf| shelf.objects.keys().cloned().collect()).unwrap_or_default()
    }

    /// Forgets all past changes: every issued version becomes too old to start from.
    pub(crate) fn compact(&mut self) {
        self.version += 1;
        self.compacted = self.version;
        for shelf in self.shelves.values_mut() {
            if let Some(newest) = shelf.log.back() {
                shelf.forgotten = newest.version;
            }
            shelf.log.clear();
        }
    }
}

/// The same object under another version.
pub(crate) fn with_version(object: &Object, version: u64) -> Object {
    let mut value = object.value().clone();
    set_metadata(&mut value, "resourceVersion", Value::from(version.to_string()));
    Object::new(value, version)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shelf_name() -> Arc<str> {
        "configmaps".into()
    }

    type Objects = BTreeMap<Arc<str>, Arc<StoredText>>;

    /// Writes (`Some`) and removals (`None`) of a few keys. Returns the state after each version.
    fn run(store: &mut Store, operations: &[(u8, Option<u8>)]) -> Vec<(u64, Objects)> {
        let name = shelf_name();
        let mut states = vec![(store.version(), BTreeMap::new())];
        for (key, value) in operations {
            let key = key.to_string();
            match value {
                Some(value) => {
                    let object = json!({ "metadata": { "name": key, "uid": key }, "data": value });
                    store.put(&name, &key, object);
                }
                None => {
                    store.remove(&name, &key);
                }
            }
            states.push((store.version(), store.shelf(&name).objects.clone()));
        }
        states
    }

    fn values(objects: &Objects) -> Vec<(&Arc<str>, Value)> {
        objects.iter().map(|(key, kept)| (key, kept.value())).collect()
    }

    proptest! {
        /// Old states are returned exactly, or not at all once they are forgotten; the changes after any state that the
        /// log reaches back to lead to the newest one.
        #[test]
        fn the_log_leads_back_to_every_state_and_forward_from_it(
            operations in prop::collection::vec((0..4_u8, prop::option::of(any::<u8>())), 0..60),
            window in 1..40_usize,
        ) {
            let mut store = Store::new(window);
            let states = run(&mut store, &operations);
            let newest = states.last().map(|(_, objects)| objects.clone()).unwrap_or_default();
            let shelf = store.shelf(&shelf_name());
            for (version, objects) in &states {
                let then = shelf.at(*version);
                let changes = shelf.changes_between(*version, u64::MAX, usize::MAX);
                prop_assert_eq!(then.is_some(), changes.is_ok());
                let (Some(then), Ok(changes)) = (then, changes) else { continue };
                prop_assert_eq!(values(&then), values(objects));
                let mut followed = then;
                for entry in changes {
                    let key = Arc::clone(entry.object.key());
                    let known = match entry.change {
                        Change::Deleted => followed.remove(&key),
                        Change::Added | Change::Modified => followed.insert(key, Arc::clone(&entry.object)),
                    };
                    prop_assert_eq!(known.is_some(), entry.change != Change::Added);
                }
                prop_assert_eq!(values(&followed), values(&newest));
            }
        }
    }

    #[test]
    fn owners_and_dependents_are_known_by_uid() {
        let mut store = Store::new(10);
        let name = shelf_name();
        let owned = |owner: &str| json!({ "metadata": { "name": "b", "uid": "2", "ownerReferences": [{ "uid": owner }] } });
        store.put(&name, "b", owned("1"));
        assert_eq!(store.dependents("1"), [(Arc::clone(&name), "b".into())]);
        store.put(&name, "b", owned("3"));
        assert!(store.dependents("1").is_empty());
        assert_eq!(store.dependents("3").len(), 1);
        assert!(store.place_of("2").is_some());
        store.remove(&name, "b");
        assert!(store.dependents("3").is_empty() && store.place_of("2").is_none());
    }
}
