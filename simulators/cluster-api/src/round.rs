//! One reconcile of a cluster: its observed state, and the resulting actions.

use jiff::Timestamp;
use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::names::PAUSED;
use crate::objects::{
    Contract, GroupKind, Key, Kind, Objects, annotation, difference, is_deleting, key, list, name, namespace,
    seconds, text,
};

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Create(GroupKind, Value),
    /// A merge patch of everything except the status.
    Patch(GroupKind, Key, Value),
    /// A merge patch of the status.
    PatchStatus(GroupKind, Key, Value),
    Delete(GroupKind, Key),
    /// Actions in order, up to the first failure.
    InOrder(Vec<Action>),
    /// Creates the missing authorities of the cluster, with this owner reference as controller.
    MakeAuthorities {
        cluster: Key,
        owner: Value,
    },
    /// Creates an object of the core group in the workload cluster.
    CreateThere(Value),
    /// A merge patch of an object of the core group in the workload cluster.
    PatchThere {
        plural: &'static str,
        key: Key,
        patch: Value,
    },
    /// Deletes the Node of the machine with this key in the workload cluster.
    DeleteNode {
        machine: Key,
        node: String,
    },
    /// Cordons the Node of the machine with this key in the workload cluster, and evicts its pods.
    Drain {
        machine: Key,
        node: String,
    },
}

/// The observed state of a workload cluster.
#[derive(Debug, Default)]
pub(crate) struct Workload {
    /// Nodes, and Secrets and ConfigMaps of `kube-system`.
    pub(crate) objects: Objects,
    /// Whether all watches are synced.
    pub(crate) listed: bool,
}

impl Workload {
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Value> {
        self.objects.of(&GroupKind::new("", "Node"))
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Value> {
        self.objects.get(&GroupKind::new("", "Node"), &(String::new(), name.to_owned()))
    }

    /// An object of `kube-system`.
    pub(crate) fn system(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&GroupKind::new("", kind), &("kube-system".to_owned(), name.to_owned()))
    }
}

/// One reconcile of one cluster.
pub(crate) struct Round<'a> {
    pub(crate) objects: &'a Objects,
    /// The Cluster.
    pub(crate) cluster: &'a Value,
    /// The state of the workload cluster; `None` if it is not reachable yet.
    pub(crate) workload: Option<&'a Workload>,
    pub(crate) now: Timestamp,
    pub(crate) random: &'a mut StdRng,
    pub(crate) actions: Vec<Action>,
    /// The earliest time to reconcile again without a change.
    pub(crate) wake: Option<Timestamp>,
}

impl<'a> Round<'a> {
    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Whether `at` has passed; if not, the cluster is reconciled again then.
    pub(crate) fn has_come(&mut self, at: Timestamp) -> bool {
        let come = at <= self.now;
        if !come {
            self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
        }
        come
    }

    pub(crate) fn cluster_name(&self) -> &'a str {
        name(self.cluster)
    }

    pub(crate) fn namespace(&self) -> &'a str {
        namespace(self.cluster)
    }

    /// The key of a name in the cluster's namespace.
    pub(crate) fn key(&self, name: &str) -> Key {
        (self.namespace().to_owned(), name.to_owned())
    }

    /// The objects of a kind that belong to the cluster.
    pub(crate) fn of(&self, kind: Kind) -> Vec<&'a Value> {
        self.objects.belonging(&kind.into(), &key(self.cluster)).collect()
    }

    /// Reconciles all objects of a kind that are not paused: `change` changes a copy, which is saved.
    pub(crate) fn each(&mut self, kind: Kind, change: impl Fn(&mut Self, &'a Value, &mut Value)) {
        for before in self.of(kind) {
            if self.is_paused(before) {
                continue;
            }
            let mut after = before.clone();
            change(self, before, &mut after);
            self.save(&kind.into(), before, &after);
        }
    }

    pub(crate) fn get(&self, kind: Kind, name: &str) -> Option<&'a Value> {
        self.objects.get(&kind.into(), &self.key(name))
    }

    pub(crate) fn referred(&self, reference: &Value) -> Option<(GroupKind, &'a Value)> {
        self.objects.referred(reference, self.namespace())
    }

    pub(crate) fn contract(&self, kind: &GroupKind) -> Option<&'a Contract> {
        self.objects.contracts.get(kind)
    }

    /// Whether the object is paused.
    pub(crate) fn is_paused(&self, object: &Value) -> bool {
        self.cluster["spec"]["paused"] == true || annotation(object, PAUSED).is_some()
    }

    /// Five letters and digits, as in the API server's generated names.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.letters(5, LETTERS)
    }

    pub(crate) fn letters(&mut self, count: usize, of: &[u8]) -> String {
        (0..count)
            .filter_map(|_| of.get(self.random.random_range(0..of.len())))
            .map(|&one| char::from(one))
            .collect()
    }

    pub(crate) fn time(&self) -> String {
        seconds(self.now)
    }

    /// Writes the difference between an object and its desired state: the status first, because removing the last
    /// finalizer deletes the object.
    pub(crate) fn save(&mut self, kind: &GroupKind, before: &Value, after: &Value) {
        let mut writes = Vec::new();
        let key = key(before);
        if let Some(status) = difference(&before["status"], &after["status"]) {
            writes.push(Action::PatchStatus(kind.clone(), key.clone(), status));
        }
        let rest = |object: &Value| {
            let mut rest = object.clone();
            if let Some(members) = rest.as_object_mut() {
                members.remove("status");
            }
            rest
        };
        if let Some(patch) = difference(&rest(before), &rest(after)) {
            writes.push(Action::Patch(kind.clone(), key, patch));
        }
        match writes.len() {
            0 => {}
            1 => self.actions.append(&mut writes),
            _ => self.act(Action::InOrder(writes)),
        }
    }

    /// Sets a condition without a message, whose reason is its name, after `Not` if it does not hold.
    pub(crate) fn named_condition(&self, object: &mut Value, name: &str, holds: bool) {
        self.worded_condition(object, name, holds, name, "");
    }

    /// Sets a condition whose reason is a word, after `Not` if it does not hold.
    pub(crate) fn worded_condition(
        &self,
        object: &mut Value,
        name: &str,
        holds: bool,
        word: &str,
        message: &str,
    ) {
        let reason = format!("{}{word}", if holds { "" } else { "Not" });
        self.condition(object, name, holds, &reason, message);
    }

    /// Sets a condition, with the transition time from the status.
    pub(crate) fn condition(
        &self,
        object: &mut Value,
        kind: &str,
        status: bool,
        reason: &str,
        message: &str,
    ) {
        self.put_condition(object, kind, if status { "True" } else { "False" }, reason, message);
    }

    pub(crate) fn put_condition(
        &self,
        object: &mut Value,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
    ) {
        let generation = object["metadata"]["generation"].clone();
        let mut condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": self.time()});
        if !generation.is_null() {
            condition["observedGeneration"] = generation;
        }
        put_by_type(&mut object["status"]["conditions"], condition);
    }

    /// Sets a `v1beta1` condition that holds.
    pub(crate) fn old_condition_holds(&self, object: &mut Value, kind: &str) {
        self.old_condition(object, kind, true, ("", "", ""));
    }

    /// Deletes all of these objects that are not being deleted yet.
    pub(crate) fn delete_all<'b>(&mut self, kind: &GroupKind, objects: impl IntoIterator<Item = &'b Value>) {
        for object in objects.into_iter().filter(|object| !is_deleting(object)) {
            self.act(Action::Delete(kind.clone(), key(object)));
        }
    }

    /// Sets a `v1beta1` condition. A true condition has neither reason nor severity.
    pub(crate) fn old_condition(
        &self,
        object: &mut Value,
        kind: &str,
        status: bool,
        (severity, reason, message): (&str, &str, &str),
    ) {
        let mut condition = json!({"type": kind, "status": if status { "True" } else { "False" },
            "lastTransitionTime": self.time()});
        if !status {
            condition["severity"] = severity.into();
            condition["reason"] = reason.into();
            if !message.is_empty() {
                condition["message"] = message.into();
            }
        }
        put_by_type(&mut object["status"]["deprecated"]["v1beta1"]["conditions"], condition);
    }

    /// Mirrors the condition `Ready` of another object, or its readiness without one, as a `v1beta1` condition.
    pub(crate) fn mirror(
        &self,
        object: &mut Value,
        kind: &str,
        other: Option<&Value>,
        ready: bool,
        waiting: &str,
    ) {
        let theirs = other.and_then(|other| condition_of(other, "Ready"));
        match theirs {
            Some(theirs) if theirs["status"] != "True" => {
                let words = (severity(theirs), text(&theirs["reason"]), text(&theirs["message"]));
                self.old_condition(object, kind, false, words);
            }
            Some(_) => self.old_condition_holds(object, kind),
            None => self.old_condition(object, kind, ready, ("Info", waiting, "")),
        }
    }
}

fn severity(condition: &Value) -> &str {
    condition["severity"].as_str().unwrap_or("Info")
}

fn put_by_type(conditions: &mut Value, mut condition: Value) {
    let mut all = list(conditions).to_vec();
    match all.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(one) => {
            if one["status"] == condition["status"] {
                condition["lastTransitionTime"] = one["lastTransitionTime"].clone();
            }
            *one = condition;
        }
        None => all.push(condition),
    }
    *conditions = all.into();
}

pub(crate) fn condition_of<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&object["status"]["conditions"]).iter().find(|one| one["type"] == kind)
}

pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition_of(object, kind).is_some_and(|one| one["status"] == "True")
}
