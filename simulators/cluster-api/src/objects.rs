//! The objects that the controllers read, and accessors for them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) use stand_ins::members::{list, number, seconds, text, time};

/// Group and kind: how objects of Cluster API refer to each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupKind {
    pub(crate) group: String,
    pub(crate) kind: String,
}

impl GroupKind {
    pub(crate) fn new(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned() }
    }

    pub(crate) fn is(&self, of: Kind) -> bool {
        (self.group.as_str(), self.kind.as_str()) == of.names()
    }

    /// The form used in annotations: `Kind.group`.
    pub(crate) fn dotted(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }
}

impl From<Kind> for GroupKind {
    fn from(kind: Kind) -> Self {
        let (group, kind) = kind.names();
        Self::new(group, kind)
    }
}

/// The kinds that have a controller here, and those that the controllers create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cluster,
    Machine,
    MachineSet,
    MachineDeployment,
    MachinePool,
    MachineHealthCheck,
    KubeadmConfig,
    KubeadmConfigTemplate,
    KubeadmControlPlane,
    Secret,
}

impl Kind {
    pub(crate) const ALL: [Kind; 10] = [
        Kind::Cluster,
        Kind::Machine,
        Kind::MachineSet,
        Kind::MachineDeployment,
        Kind::MachinePool,
        Kind::MachineHealthCheck,
        Kind::KubeadmConfig,
        Kind::KubeadmConfigTemplate,
        Kind::KubeadmControlPlane,
        Kind::Secret,
    ];

    /// Group and kind.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        use crate::names::{BOOTSTRAP, CONTROL_PLANE, CORE};
        match self {
            Kind::Cluster => (CORE, "Cluster"),
            Kind::Machine => (CORE, "Machine"),
            Kind::MachineSet => (CORE, "MachineSet"),
            Kind::MachineDeployment => (CORE, "MachineDeployment"),
            Kind::MachinePool => (CORE, "MachinePool"),
            Kind::MachineHealthCheck => (CORE, "MachineHealthCheck"),
            Kind::KubeadmConfig => (BOOTSTRAP, "KubeadmConfig"),
            Kind::KubeadmConfigTemplate => (BOOTSTRAP, "KubeadmConfigTemplate"),
            Kind::KubeadmControlPlane => (CONTROL_PLANE, "KubeadmControlPlane"),
            Kind::Secret => ("", "Secret"),
        }
    }

    /// `group/version`, as in objects and owner references.
    pub(crate) fn api_version(self) -> String {
        match self.names().0 {
            "" => "v1".to_owned(),
            group => format!("{group}/{}", crate::names::VERSION),
        }
    }
}

/// Namespace and name.
pub(crate) type Key = (String, String);

/// How a provider's kind is read and written, from its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contract {
    /// The version to read and write.
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Whether the kind follows the contract `v1beta2`; otherwise `v1beta1`.
    pub(crate) second: bool,
}

/// All objects of one API server.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    all: BTreeMap<GroupKind, BTreeMap<Key, Value>>,
    /// Keys of the objects that belong to a cluster, by kind and the cluster's key.
    of_cluster: BTreeMap<GroupKind, BTreeMap<Key, BTreeSet<Key>>>,
    /// The kinds that the server serves and this stand-in watches.
    pub(crate) contracts: BTreeMap<GroupKind, Contract>,
    /// The progress of draining the node of a machine, by the machine's key.
    pub(crate) drains: BTreeMap<Key, Drain>,
    /// The time since which deleting the node of a machine has failed, by the machine's key.
    pub(crate) stuck_nodes: BTreeMap<Key, Timestamp>,
}

/// The progress of draining a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Drain {
    /// The number of remaining pods; `None` if the cluster did not answer.
    pub(crate) remaining: Option<usize>,
    /// The time of the observation.
    pub(crate) at: Timestamp,
}

impl Objects {
    pub(crate) fn clear(&mut self, kind: &GroupKind) {
        self.all.remove(kind);
        self.of_cluster.remove(kind);
    }

    /// Stores an object unless a later version is stored, and returns whether anything changed.
    pub(crate) fn insert(&mut self, kind: &GroupKind, object: Value) -> bool {
        let key = key(&object);
        let known = self.all.entry(kind.clone()).or_default();
        if let Some(before) = known.get(&key)
            && before["metadata"]["uid"] == object["metadata"]["uid"]
            && version(before) >= version(&object)
        {
            return false;
        }
        let belongs = cluster_of(&object);
        let before = known.insert(key.clone(), object).and_then(|before| cluster_of(&before));
        if before != belongs {
            self.unlist(kind, before.as_ref(), &key);
            if let Some(cluster) = belongs {
                self.of_cluster.entry(kind.clone()).or_default().entry(cluster).or_default().insert(key);
            }
        }
        true
    }

    pub(crate) fn remove(&mut self, kind: &GroupKind, key: &Key) {
        let removed = self.all.get_mut(kind).and_then(|all| all.remove(key));
        self.unlist(kind, removed.as_ref().and_then(cluster_of).as_ref(), key);
    }

    fn unlist(&mut self, kind: &GroupKind, cluster: Option<&Key>, key: &Key) {
        let Some(clusters) = self.of_cluster.get_mut(kind) else { return };
        let Some((cluster, keys)) = cluster.and_then(|cluster| Some((cluster, clusters.get_mut(cluster)?)))
        else {
            return;
        };
        keys.remove(key);
        if keys.is_empty() {
            clusters.remove(cluster);
        }
    }

    /// The objects of a kind that belong to a cluster, by `spec.clusterName` or by their label.
    pub(crate) fn belonging<'a>(
        &'a self,
        kind: &GroupKind,
        cluster: &Key,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let all = self.all.get(kind);
        let keys = self.of_cluster.get(kind).and_then(|clusters| clusters.get(cluster));
        keys.into_iter().flatten().filter_map(move |key| all?.get(key))
    }

    pub(crate) fn get(&self, kind: &GroupKind, key: &Key) -> Option<&Value> {
        self.all.get(kind)?.get(key)
    }

    pub(crate) fn of<'a>(&'a self, kind: &GroupKind) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.all.get(kind).into_iter().flat_map(BTreeMap::values)
    }

    /// The objects of a kind in one namespace.
    pub(crate) fn within<'a>(
        &'a self,
        kind: &GroupKind,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let namespace = namespace.to_owned();
        let first = (namespace.clone(), String::new());
        let all = self.all.get(kind).into_iter().flat_map(move |all| all.range(first.clone()..));
        all.take_while(move |((of, _), _)| *of == namespace).map(|(_, object)| object)
    }

    /// Resolves a reference of Cluster API: group, kind and name, in the namespace of the referring object.
    pub(crate) fn referred(&self, reference: &Value, namespace: &str) -> Option<(GroupKind, &Value)> {
        let kind = referred_kind(reference)?;
        let object = self.get(&kind, &(namespace.to_owned(), text(&reference["name"]).to_owned()))?;
        Some((kind, object))
    }
}

/// The key of the cluster that an object names.
pub(crate) fn cluster_of(object: &Value) -> Option<Key> {
    let named =
        object["spec"]["clusterName"].as_str().or_else(|| label(object, crate::names::CLUSTER_NAME))?;
    Some((namespace(object).to_owned(), named.to_owned()))
}

fn version(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().unwrap_or_default()
}

/// The kind that a reference names; `None` if there is no reference.
pub(crate) fn referred_kind(reference: &Value) -> Option<GroupKind> {
    let kind = reference["kind"].as_str().filter(|kind| !kind.is_empty())?;
    Some(GroupKind::new(text(&reference["apiGroup"]), kind))
}

/// A reference to an object.
pub(crate) fn reference_to(kind: &GroupKind, name: &str) -> Value {
    json!({"apiGroup": kind.group, "kind": kind.kind, "name": name})
}

pub(crate) fn key(object: &Value) -> Key {
    (namespace(object).to_owned(), name(object).to_owned())
}

pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

pub(crate) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

pub(crate) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["labels"][name].as_str()
}

pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Copies those of these members that a map has.
pub(crate) fn copy_members(from: &Value, to: &mut Value, members: &[&str]) {
    for member in members.iter().filter(|member| !from[**member].is_null()) {
        to[*member] = from[*member].clone();
    }
}

/// Sets `observedGeneration`.
pub(crate) fn observed(object: &mut Value) {
    let generation = object["metadata"]["generation"].clone();
    if !generation.is_null() {
        object["status"]["observedGeneration"] = generation;
    }
}

/// FNV-1a, as the established controllers hash.
pub(crate) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// `spec.replicas`, by default 1.
pub(crate) fn replicas(object: &Value) -> u64 {
    object["spec"]["replicas"].as_u64().unwrap_or(1)
}

/// Whether `matchLabels` and `matchExpressions` select the labels; a missing selector selects nothing.
pub(crate) fn selects(selector: &Value, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let equal = selector["matchLabels"].as_object();
    let expressions = list(&selector["matchExpressions"]);
    if equal.is_none_or(Map::is_empty) && expressions.is_empty() {
        return false;
    }
    let holds = |expression: &Value| {
        let found = &labels[text(&expression["key"])];
        let values = list(&expression["values"]);
        match text(&expression["operator"]) {
            "In" => values.contains(found),
            "NotIn" => !values.contains(found),
            "Exists" => !found.is_null(),
            "DoesNotExist" => found.is_null(),
            _ => false,
        }
    };
    equal.into_iter().flatten().all(|(label, value)| labels[label] == *value) && expressions.iter().all(holds)
}

/// The owner reference to an owner.
pub(crate) fn owner(kind: Kind, object: &Value, controls: bool) -> Value {
    let mut owner = json!({"apiVersion": kind.api_version(), "kind": kind.names().1,
        "name": name(object), "uid": uid(object)});
    if controls {
        owner["controller"] = true.into();
        owner["blockOwnerDeletion"] = true.into();
    }
    owner
}

/// Whether `owner` is among the owners of an object.
pub(crate) fn is_owned_by(object: &Value, owner: &Value) -> bool {
    list(&object["metadata"]["ownerReferences"]).iter().any(|one| one["uid"] == owner["metadata"]["uid"])
}

/// The first owner of a kind.
pub(crate) fn owner_of(object: &Value, kind: Kind) -> Option<&str> {
    let (group, kind) = kind.names();
    let mut owners = list(&object["metadata"]["ownerReferences"]).iter();
    let is = |one: &&Value| {
        one["kind"] == kind && text(&one["apiVersion"]).split_once('/').is_some_and(|(of, _)| of == group)
    };
    owners.find(is).map(|one| text(&one["name"]))
}

/// Adds an owner reference, and replaces an earlier one to the same owner.
pub(crate) fn add_owner(object: &mut Value, owner: &Value) {
    let metadata = &mut object["metadata"];
    let mut owners = list(&metadata["ownerReferences"]).to_vec();
    match owners.iter_mut().find(|one| one["uid"] == owner["uid"]) {
        Some(one) => one.clone_from(owner),
        None => owners.push(owner.clone()),
    }
    metadata["ownerReferences"] = owners.into();
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(&object["metadata"]["finalizers"]).iter().any(|one| one == finalizer)
}

pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    if !has_finalizer(object, finalizer) {
        let mut all = list(&object["metadata"]["finalizers"]).to_vec();
        all.push(finalizer.into());
        object["metadata"]["finalizers"] = all.into();
    }
}

pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let rest = list(&object["metadata"]["finalizers"]).iter().filter(|one| *one != finalizer).cloned();
    object["metadata"]["finalizers"] = rest.collect();
}

/// The merge patch from `before` to `after`; `None` if they are equal.
pub(crate) fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return Some(after.clone()) };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(known) => {
                if let Some(change) = difference(known, value) {
                    patch.insert(name.clone(), change);
                }
            }
            // Null and missing are equal.
            None if value.is_null() => {}
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    let gone = old.iter().filter(|(name, value)| !new.contains_key(*name) && !value.is_null());
    patch.extend(gone.map(|(name, _)| (name.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed_and_what_went() {
        let before = json!({"a": 1, "b": {"c": 1, "d": [1]}, "e": 1});
        let after = json!({"a": 1, "b": {"c": 2, "d": [1]}, "f": null});
        assert_eq!(difference(&before, &after), Some(json!({"b": {"c": 2}, "e": null})));
        assert_eq!(difference(&before, &before), None);
    }

    #[test]
    fn later_versions_stay() {
        let kind = GroupKind::from(Kind::Machine);
        let machine = |version: &str, mark: u64| json!({"metadata": {"namespace": "a", "name": "x", "uid": "u", "resourceVersion": version}, "mark": mark});
        let mut objects = Objects::default();
        assert!(objects.insert(&kind, machine("10", 1)));
        assert!(!objects.insert(&kind, machine("9", 2)));
        assert_eq!(objects.of(&kind).next().unwrap()["mark"], 1);
        assert!(objects.insert(&kind, machine("11", 3)));
        assert_eq!(objects.within(&kind, "a").count(), 1);
        assert_eq!(objects.within(&kind, "b").count(), 0);
    }

    #[test]
    fn what_belongs_to_a_cluster_is_found() {
        let kind = GroupKind::from(Kind::Machine);
        let machine = |version: &str, cluster: &str| {
            json!({"metadata": {"namespace": "a", "name": "x", "uid": "u", "resourceVersion": version},
                "spec": {"clusterName": cluster}})
        };
        let cluster = |name: &str| ("a".to_owned(), name.to_owned());
        let mut objects = Objects::default();
        objects.insert(&kind, machine("1", "c"));
        assert_eq!(objects.belonging(&kind, &cluster("c")).count(), 1);
        objects.insert(&kind, machine("2", "d"));
        assert_eq!(objects.belonging(&kind, &cluster("c")).count(), 0);
        assert_eq!(objects.belonging(&kind, &cluster("d")).count(), 1);
        objects.remove(&kind, &cluster("x"));
        assert_eq!(objects.belonging(&kind, &cluster("d")).count(), 0);
    }
}
