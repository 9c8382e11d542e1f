//! The objects that watches have shown, by namespace and name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::select_all;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::kubernetes::kinds::{Object, ObjectKind};

/// An object's namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object with this metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let text = |member: &Option<String>| member.clone().unwrap_or_default();
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }

    /// The key of an object with this name in the same namespace.
    pub fn beside(&self, name: &str) -> Self {
        Self { namespace: self.namespace.clone(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Objects of one kind.
pub struct Store<K: ObjectKind> {
    objects: Mutex<HashMap<Key, Arc<Object<K>>>>,
    /// Objects for which the answer to one of our writes contained earlier changes of other writers: when the watch
    /// shows these later, they would look like no change.
    overtaken: Mutex<HashSet<Key>>,
    /// Notified of each version of an object on which a running reconcile depends.
    watched: Mutex<HashMap<Key, watch::Sender<()>>>,
    complete: AtomicBool,
}

/// New versions of some objects, and their removal.
#[derive(Default)]
pub struct Changes(Vec<watch::Receiver<()>>);

impl Changes {
    /// The changes of these objects.
    pub fn of(objects: impl IntoIterator<Item = watch::Receiver<()>>) -> Self {
        Self(objects.into_iter().collect())
    }

    /// These changes, and those of another object.
    pub fn and(mut self, object: watch::Receiver<()>) -> Self {
        self.0.push(object);
        self
    }

    /// Waits until one of the objects was stored or removed since the last call, or since this value was made.
    pub async fn next(&mut self) {
        if !self.0.is_empty() {
            let (answer, ..) = select_all(self.0.iter_mut().map(|object| Box::pin(object.changed()))).await;
            if answer.is_ok() {
                return;
            }
        }
        // Without objects, or without their store, nothing changes any more.
        std::future::pending().await
    }
}

impl<K: ObjectKind> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: Mutex::default(),
            overtaken: Mutex::default(),
            watched: Mutex::default(),
            complete: AtomicBool::new(false),
        }
    }
}

/// The key of an object.
pub fn key_of<K: ObjectKind>(object: &Object<K>) -> Key {
    Key::of(&object.metadata)
}

impl<K: ObjectKind> Store<K> {
    /// An object, if a watch has shown it.
    pub fn get(&self, key: &Key) -> Option<Arc<Object<K>>> {
        self.objects.lock().get(key).cloned()
    }

    /// The changes of an object, for [`Changes`].
    pub fn changes_of(&self, key: &Key) -> watch::Receiver<()> {
        let mut watched = self.watched.lock();
        watched.retain(|_, object| object.receiver_count() > 0);
        watched.entry(key.clone()).or_default().subscribe()
    }

    fn announce(&self, key: &Key) {
        if let Some(object) = self.watched.lock().get(key) {
            object.send_replace(());
        }
    }

    /// Stores an object, unless a newer version of it is stored. Returns the previous version.
    pub fn put(&self, mut object: Object<K>) -> Option<Arc<Object<K>>> {
        // Managed fields are not used here, and are half of many objects.
        object.metadata.managed_fields = None;
        let key = key_of(&object);
        let mut objects = self.objects.lock();
        let known = objects.get(&key).cloned();
        if is_gone(&object) {
            objects.remove(&key);
        } else if !known.as_ref().is_some_and(|known| is_newer(known, &object)) {
            objects.insert(key.clone(), Arc::new(object));
        }
        drop(objects);
        self.announce(&key);
        known
    }

    /// Stores an answer to one of our writes that contains earlier changes of other writers.
    pub fn put_overtaken(&self, object: Object<K>) {
        self.overtaken.lock().insert(key_of(&object));
        self.put(object);
    }

    /// Stores an object that a watch shows. Returns the previous version, unless an answer was ahead of the watch: the
    /// stored version has not been compared then.
    pub fn show(&self, object: Object<K>) -> Option<Arc<Object<K>>> {
        let overtaken = self.overtaken.lock().remove(&key_of(&object));
        self.put(object).filter(|_| !overtaken)
    }

    /// Removes an object.
    pub fn remove(&self, key: &Key) {
        self.objects.lock().remove(key);
        self.overtaken.lock().remove(key);
        self.announce(key);
    }

    /// Keeps only these objects, after a restarted watch has shown all that exist. Returns the removed ones.
    pub fn retain(&self, keep: impl Fn(&Key) -> bool) -> Vec<Arc<Object<K>>> {
        self.overtaken.lock().retain(&keep);
        let gone: Vec<_> =
            self.objects.lock().extract_if(|key, _| !keep(key)).map(|(_, object)| object).collect();
        self.complete.store(true, Ordering::Release);
        gone.iter().for_each(|object| self.announce(&key_of(&**object)));
        gone
    }

    /// Whether all objects have been shown since the start: before that, a missing object is unknown, not absent.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<Object<K>>> {
        self.objects.lock().values().cloned().collect()
    }
}

/// Whether an object is deleted and has no finalizers left: the writer that removed the last finalizer may store its
/// answer after the watch has removed the object.
fn is_gone<K: ObjectKind>(object: &Object<K>) -> bool {
    let metadata = &object.metadata;
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
}

/// Whether `known` is a later version of the same object. Versions are numbers on every existing API server; where they
/// are not, the latest arrival wins.
fn is_newer<K: ObjectKind>(known: &Object<K>, other: &Object<K>) -> bool {
    let version = |object: &Object<K>| object.resource_version().and_then(|text| text.parse::<u64>().ok());
    known.metadata.uid == other.metadata.uid && version(known) > version(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubernetes::kinds::AzureMachine;

    /// The watch may show the deletion of an object before the writer that removed the last finalizer has its answer.
    #[test]
    fn an_object_that_nobody_holds_back_is_not_kept() {
        let object = |finalizers: &[&str]| -> AzureMachine {
            serde_json::from_value(json!({
                "apiVersion": crate::kubernetes::kinds::API_VERSION, "kind": "AzureMachine", "spec": {},
                "metadata": { "name": "m", "namespace": "n", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers },
            }))
            .unwrap()
        };
        let store = Store::default();
        store.put(object(&["ours"]));
        let key = Key { namespace: "n".to_owned(), name: "m".to_owned() };
        assert!(store.get(&key).is_some());
        store.remove(&key);
        store.put(object(&[]));
        assert!(store.get(&key).is_none());
    }

    /// Changes of other writers just before a write of ours are in its answer before the watch shows them: the watch's
    /// event still counts as a change, once (C1).
    #[test]
    fn what_an_answer_overtook_is_news_when_the_watch_shows_it() {
        let object = |version: u32, tag: &str| -> AzureMachine {
            serde_json::from_value(json!({
                "apiVersion": crate::kubernetes::kinds::API_VERSION, "kind": "AzureMachine",
                "spec": { "additionalTags": { "a": tag } },
                "metadata": { "name": "m", "namespace": "n", "uid": "u", "resourceVersion": version.to_string() },
            }))
            .unwrap()
        };
        let store = Store::default();
        store.show(object(1, "old"));
        assert!(store.show(object(2, "old")).is_some());
        store.put_overtaken(object(4, "new"));
        assert!(store.show(object(3, "new")).is_none(), "what is shown was never compared");
        assert!(store.show(object(4, "new")).is_some());
        store.put(object(5, "new"));
        assert!(store.show(object(5, "new")).is_some(), "our own writes are no news");
    }

    /// A running reconcile learns of each change of the objects that it depends on, and of no other.
    #[tokio::test(start_paused = true)]
    async fn changes_are_announced_for_each_object() {
        let object = |name: &str, version: u32| -> AzureMachine {
            serde_json::from_value(json!({
                "apiVersion": crate::kubernetes::kinds::API_VERSION, "kind": "AzureMachine", "spec": {},
                "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string() },
            }))
            .unwrap()
        };
        let key = |name: &str| Key { namespace: "n".to_owned(), name: name.to_owned() };
        let store = Store::default();
        let mut changes = Changes::of([store.changes_of(&key("a")), store.changes_of(&key("b"))]);
        let mut is_told = async || {
            let next = tokio::time::timeout(std::time::Duration::from_secs(1), changes.next());
            next.await.is_ok()
        };
        store.put(object("c", 1));
        assert!(!is_told().await, "another object");
        store.put(object("a", 1));
        store.put(object("a", 2));
        assert!(is_told().await);
        assert!(!is_told().await, "both versions are one change for a reconcile that looks later");
        store.put(object("b", 1));
        store.remove(&key("b"));
        assert!(is_told().await);
        store.retain(|key| key.name != "a");
        assert!(is_told().await);
        assert!(!is_told().await);
    }
}
