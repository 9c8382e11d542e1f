//! The objects of a cluster as controllers see them, and the actions of controllers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use crate::members::{list, number, seconds, text, time};

/// The kinds that controllers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    ControllerRevision,
    PodDisruptionBudget,
    Service,
    Endpoints,
    Pod,
    Node,
    PersistentVolumeClaim,
    PersistentVolume,
}

impl Kind {
    /// The kinds that are watched.
    pub(crate) const WATCHED: [Kind; 13] = [
        Kind::Deployment,
        Kind::ReplicaSet,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::Job,
        Kind::ControllerRevision,
        Kind::PodDisruptionBudget,
        Kind::Service,
        Kind::Endpoints,
        Kind::Pod,
        Kind::Node,
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
    ];

    /// API group, name of the kind, and plural. All are `v1`, except for kinds that old servers serve as a beta.
    pub(crate) fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Kind::Deployment => ("apps", "Deployment", "deployments"),
            Kind::ReplicaSet => ("apps", "ReplicaSet", "replicasets"),
            Kind::StatefulSet => ("apps", "StatefulSet", "statefulsets"),
            Kind::DaemonSet => ("apps", "DaemonSet", "daemonsets"),
            Kind::ControllerRevision => ("apps", "ControllerRevision", "controllerrevisions"),
            Kind::Job => ("batch", "Job", "jobs"),
            Kind::PodDisruptionBudget => ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
            Kind::Service => ("", "Service", "services"),
            Kind::Endpoints => ("", "Endpoints", "endpoints"),
            Kind::Pod => ("", "Pod", "pods"),
            Kind::Node => ("", "Node", "nodes"),
            Kind::PersistentVolumeClaim => ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Kind::PersistentVolume => ("", "PersistentVolume", "persistentvolumes"),
        }
    }

    /// `group/version`, as in `apiVersion`.
    pub(crate) fn api_version(self) -> String {
        match self.names().0 {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        }
    }
}

/// Namespace and name.
pub(crate) type Key = (String, String);

/// All objects of these kinds.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    all: BTreeMap<(Kind, Key), Value>,
    /// The objects that each controlling owner has, by its UID.
    controlled: BTreeMap<(Kind, String), BTreeSet<Key>>,
}

impl Objects {
    pub(crate) fn clear(&mut self, kind: Kind) {
        self.all.retain(|(known, _), _| *known != kind);
        self.controlled.retain(|(known, _), _| *known != kind);
    }

    pub(crate) fn insert(&mut self, kind: Kind, object: Value) {
        let key = key(&object);
        self.remove(kind, &key);
        if let Some(owner) = controller_of(&object) {
            self.controlled.entry((kind, text(&owner["uid"]).to_owned())).or_default().insert(key.clone());
        }
        self.all.insert((kind, key), object);
    }

    pub(crate) fn remove(&mut self, kind: Kind, key: &Key) {
        let Some(object) = self.all.remove(&(kind, key.clone())) else { return };
        if let Some(owner) = controller_of(&object) {
            let owned = (kind, text(&owner["uid"]).to_owned());
            if let Some(keys) = self.controlled.get_mut(&owned) {
                keys.remove(key);
                if keys.is_empty() {
                    self.controlled.remove(&owned);
                }
            }
        }
    }

    pub(crate) fn get(&self, kind: Kind, key: &Key) -> Option<&Value> {
        self.all.get(&(kind, key.clone()))
    }

    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        let first = (kind, Key::default());
        self.all.range(first..).take_while(move |((known, _), _)| *known == kind).map(|(_, object)| object)
    }

    /// The objects of a kind in one namespace.
    pub(crate) fn within<'a>(&'a self, kind: Kind, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
        let first = (kind, (namespace.to_owned(), String::new()));
        let same = move |(known, (of, _)): &(Kind, Key)| *known == kind && of == namespace;
        self.all.range(first..).take_while(move |(key, _)| same(key)).map(|(_, object)| object)
    }

    /// The objects of a kind that `owner` controls.
    pub(crate) fn controlled_by<'a>(
        &'a self,
        kind: Kind,
        owner: &'a Value,
    ) -> impl Iterator<Item = &'a Value> {
        let owned = (kind, text(&owner["metadata"]["uid"]).to_owned());
        let keys = self.controlled.get(&owned).into_iter().flatten();
        keys.filter_map(move |key| self.get(kind, key))
    }
}

/// A write to the API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Create(Kind, Value),
    /// A merge patch.
    Patch(Kind, Key, Value),
    /// A merge patch of the member `status`.
    PatchStatus(Kind, Key, Value),
    /// Deletes an object: a pod has its grace period.
    Delete(Kind, Key),
    /// A pod has ended: none of its containers runs any more.
    Finish(Key),
    /// Binds a pod to a node.
    Bind(Key, String),
    /// Creates an Event.
    Record(Value),
}

/// One pass over all objects: the actions that are due, and when to run again.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) now: Timestamp,
    pub(crate) actions: Vec<Action>,
    /// The earliest time at which something changes by itself.
    pub(crate) wake: Option<Timestamp>,
}

impl<'a> Round<'a> {
    pub(crate) fn new(objects: &'a Objects, now: Timestamp) -> Self {
        Self { objects, now, actions: Vec::new(), wake: None }
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Whether `at` has come; if not, the next round runs at that time at the latest.
    pub(crate) fn has_come(&mut self, at: Timestamp) -> bool {
        let come = at <= self.now;
        if !come {
            self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
        }
        come
    }

    /// The current time in the format of objects.
    pub(crate) fn seconds(&self) -> String {
        seconds(self.now)
    }

    /// Writes a status if it differs from the current one: zeros and missing members are the same.
    pub(crate) fn write_status(&mut self, kind: Kind, object: &Value, status: Value) {
        let before = &object["status"];
        let differs = status.as_object().into_iter().flatten().any(|(member, value)| {
            before[member] != *value && !(before[member].is_null() && is_nothing(value))
        });
        if differs {
            self.act(Action::PatchStatus(kind, key(object), status));
        }
    }

    /// A condition ready to be written: if it says the same as before it stays as it is, and its time of transition
    /// changes only with its status.
    pub(crate) fn condition(
        &self,
        object: &Value,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
    ) -> Value {
        let before = condition_of(object, kind);
        if let Some(same) = before.filter(|one| one["status"] == status && one["reason"] == reason) {
            return same.clone();
        }
        let now = self.seconds();
        let since =
            before.filter(|one| one["status"] == status).and_then(|one| one["lastTransitionTime"].as_str());
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or(&now)})
    }
}

/// An owner reference by which `object` controls what it creates.
pub(crate) fn owner(kind: Kind, object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"apiVersion": kind.api_version(), "kind": kind.names().1, "name": metadata["name"],
        "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true})
}

/// The reference to the object that controls this one.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    list(&object["metadata"]["ownerReferences"]).iter().find(|owner| owner["controller"] == true)
}

pub(crate) fn key(object: &Value) -> Key {
    let metadata = &object["metadata"];
    (text(&metadata["namespace"]).to_owned(), name(object).to_owned())
}

pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// `spec.replicas`, which defaults to 1.
pub(crate) fn replicas(object: &Value) -> u64 {
    object["spec"]["replicas"].as_u64().unwrap_or(1)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn condition_of<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&object["status"]["conditions"]).iter().find(|one| one["type"] == kind)
}

/// Whether a pod or a node is ready.
pub(crate) fn is_ready(object: &Value) -> bool {
    condition_of(object, "Ready").is_some_and(|one| one["status"] == "True")
}

/// Whether a `LabelSelector` selects labels; a missing selector selects nothing, an empty one everything.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    equal.into_iter().all(|(label, value)| labels[label] == *value)
        && list(&selector["matchExpressions"]).iter().all(|one| expression_holds(one, labels))
}

/// One requirement of a selector of labels.
pub(crate) fn expression_holds(expression: &Value, labels: &Value) -> bool {
    let found = &labels[text(&expression["key"])];
    let values = list(&expression["values"]);
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<i64>().ok());
    let bound = values.first().and_then(number);
    match text(&expression["operator"]) {
        "In" => values.contains(found),
        "NotIn" => !values.contains(found),
        "Exists" => !found.is_null(),
        "DoesNotExist" => found.is_null(),
        "Gt" => number(found).zip(bound).is_some_and(|(found, bound)| found > bound),
        "Lt" => number(found).zip(bound).is_some_and(|(found, bound)| found < bound),
        _ => false,
    }
}

/// A number, or a percentage of `whole`, which is rounded up or down.
pub(crate) fn scaled(value: &Value, whole: u64, up: bool) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let percent: u64 = text.strip_suffix('%')?.parse().ok()?;
            Some(if up { (percent * whole).div_ceil(100) } else { percent * whole / 100 })
        }
        _ => None,
    }
}

/// Eight letters and digits that are the same for the same value: FNV-1a, 32 bits.
pub(crate) fn hash(value: &Value) -> String {
    format!("{:08x}", fnv(&value.to_string()))
}

pub(crate) fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Array(entries) => entries.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages() {
        for (value, up, expected) in [
            (json!(3), true, Some(3)),
            (json!("25%"), true, Some(2)),
            (json!("25%"), false, Some(1)),
            (json!("100%"), false, Some(5)),
            (json!("x"), true, None),
            (Value::Null, true, None),
        ] {
            assert_eq!(scaled(&value, 5, up), expected, "{value}");
        }
    }

    #[test]
    fn selectors() {
        let labels = json!({"app": "web", "size": "7"});
        for (selector, expected) in [
            (Value::Null, false),
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["web"]}]}), true),
            (json!({"matchExpressions": [{"key": "none", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}), true),
            (json!({"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["6"]}]}), true),
            (json!({"matchExpressions": [{"key": "size", "operator": "Lt", "values": ["7"]}]}), false),
        ] {
            assert_eq!(selects(&selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn what_is_controlled_is_found_by_its_owner() {
        let owner = |uid: &str| json!({"metadata": {"uid": uid}});
        let pod = |name: &str, uid: &str| {
            json!({"metadata": {"namespace": "a", "name": name,
                "ownerReferences": [{"uid": uid, "controller": true}]}})
        };
        let mut objects = Objects::default();
        objects.insert(Kind::Pod, pod("x", "1"));
        objects.insert(Kind::Pod, pod("y", "1"));
        objects.insert(Kind::Pod, pod("x", "2"));
        let of = |objects: &Objects, uid: &str| -> Vec<String> {
            objects.controlled_by(Kind::Pod, &owner(uid)).map(|one| name(one).to_owned()).collect()
        };
        assert_eq!((of(&objects, "1"), of(&objects, "2")), (vec!["y".to_owned()], vec!["x".to_owned()]));
        objects.remove(Kind::Pod, &("a".to_owned(), "y".to_owned()));
        assert_eq!(of(&objects, "1"), Vec::<String>::new());
    }
}
