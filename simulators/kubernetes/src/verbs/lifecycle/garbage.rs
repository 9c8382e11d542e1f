//! Owner references: the part of kube-controller-manager's garbage collector that handles dependents whose owners are
//! deleted or being deleted.
//!
//! The store queues each object that a write affects ([`crate::store::Store::next_touched`]); they are checked here one
//! after the other, in the same step or later ([`Collection`]).

use serde_json::{Value, json};

use crate::object::{Object, finalizers, list_at, metadata, set_finalizers, set_metadata, string_at};
use crate::registry::Kind;
use crate::server::options::Collection;
use crate::store::Place;
use crate::verbs::delete::{DeleteOptions, Propagation};
use crate::verbs::lifecycle::chores::Chore;
use crate::verbs::lifecycle::finalizer::{FOREGROUND, ORPHAN};
use crate::verbs::shelves::NAMESPACES;
use crate::verbs::state::{State, Write};

/// The owner behind an owner reference.
enum OwnerState {
    /// Undecided: its kind is unknown here, or it cannot own this object.
    Unknown,
    /// No object has this name and UID.
    Gone,
    /// It waits for its dependents to be deleted.
    Waiting,
    /// It exists, or is being deleted without waiting.
    There,
}

impl State {
    /// Checks the objects that the latest writes affect, or plans to.
    pub(crate) fn tend(&mut self, write: &Write<'_>) {
        match self.collection {
            Collection::Off => while self.store.next_touched().is_some() {},
            Collection::Prompt if self.collecting => {}
            Collection::Prompt => {
                self.collecting = true;
                while let Some(uid) = self.store.next_touched() {
                    self.collect(&uid, write);
                }
                self.collecting = false;
            }
            Collection::Within(_) => {
                while let Some(uid) = self.store.next_touched() {
                    let delay = self.collection_delay();
                    self.plan(delay, Chore::Collect(uid));
                }
            }
        }
    }

    /// Collects or updates one object according to its owners and its own deletion.
    pub(crate) fn collect(&mut self, uid: &str, write: &Write<'_>) {
        let Some(place) = self.store.place_of(uid).cloned() else { return };
        let Some(object) = self.store.get(&place.0, &place.1) else { return };
        let Some(kind) = self.registry.by_shelf(&place.0) else { return };
        if object.is_terminating() {
            self.go_on_deleting(&kind, &place, &object, write);
            return;
        }
        let (mut there, mut waiting, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for reference in list_at(&object, &["metadata", "ownerReferences"]) {
            let uid = string_at(reference, &["uid"]).unwrap_or_default().to_owned();
            match self.owner(&object, reference) {
                OwnerState::Unknown => return,
                OwnerState::Gone => gone.push(uid),
                OwnerState::Waiting => waiting.push(uid),
                OwnerState::There => there.push(uid),
            }
        }
        if there.is_empty() && waiting.is_empty() && gone.is_empty() {
            return;
        }
        if !there.is_empty() {
            // Owners that wait for dependents would wait for ever for one that stays.
            gone.append(&mut waiting);
            if !gone.is_empty() {
                self.keep_references(&place, &object, |owner| gone.iter().all(|gone| gone != owner));
            }
            return;
        }
        let dependents = self.dependents(uid);
        let propagation = if !waiting.is_empty() && !dependents.is_empty() {
            if dependents.iter().any(|dependent| is_waiting(dependent)) {
                self.unblock_owners(&place, &object);
            }
            Propagation::Foreground
        } else {
            // An existing finalizer records the client's choice.
            Propagation::Default
        };
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        // It existed a moment ago, under the same lock: the delete cannot fail.
        let _ = self.delete(&kind, object.namespace(), object.name(), &options, write);
        if *kind.shelf == *NAMESPACES {
            self.empty_namespace(object.name(), write);
        }
    }

    /// Orphans the dependents of an object that is being deleted, or deletes them before it, according to its
    /// finalizers.
    fn go_on_deleting(&mut self, kind: &Kind, place: &Place, object: &Object, write: &Write<'_>) {
        let holds = finalizers(object);
        let has = |finalizer: &str| holds.iter().any(|held| held == finalizer);
        if has(ORPHAN) {
            let uid = object.uid();
            for dependent in self.store.dependents(uid) {
                if let Some(object) = self.store.get(&dependent.0, &dependent.1) {
                    self.keep_references(&dependent, &object, |owner| owner != uid);
                }
            }
            self.drop_finalizer(kind, place, ORPHAN, write);
        } else if has(FOREGROUND) {
            let dependents = self.dependents(object.uid());
            if dependents.iter().any(|dependent| blocks(dependent, object.uid())) {
                for dependent in dependents.iter().filter(|dependent| !dependent.is_terminating()) {
                    self.store.touch(dependent.uid());
                }
            } else {
                self.drop_finalizer(kind, place, FOREGROUND, write);
            }
        }
    }

    fn dependents(&self, uid: &str) -> Vec<std::sync::Arc<Object>> {
        let places = self.store.dependents(uid);
        places.iter().filter_map(|place| self.store.get(&place.0, &place.1)).collect()
    }

    /// Finds an owner by kind and name, in the namespace of the object: owners in other namespaces do not count.
    fn owner(&self, object: &Object, reference: &Value) -> OwnerState {
        let text = |member: &str| string_at(reference, &[member]).unwrap_or_default();
        let Some(kind) = self.registry.by_type(text("apiVersion"), text("kind")) else {
            return OwnerState::Unknown;
        };
        if kind.namespaced && object.namespace().is_empty() {
            return OwnerState::Unknown;
        }
        match self.store.get(&kind.shelf, &kind.key(object.namespace(), text("name"))) {
            Some(owner) if owner.uid() == text("uid") => {
                if is_waiting(&owner) {
                    OwnerState::Waiting
                } else {
                    OwnerState::There
                }
            }
            _ => OwnerState::Gone,
        }
    }

    /// Removes the owner references that `keep` rejects.
    fn keep_references(&mut self, place: &Place, object: &Object, keep: impl Fn(&str) -> bool) {
        let mut value = object.value().clone();
        let kept: Vec<Value> = list_at(&value, &["metadata", "ownerReferences"])
            .iter()
            .filter(|owner| keep(string_at(owner, &["uid"]).unwrap_or_default()))
            .cloned()
            .collect();
        let kept = if kept.is_empty() { Value::Null } else { Value::Array(kept) };
        set_metadata(&mut value, "ownerReferences", kept);
        self.store.put(&place.0, &place.1, value);
    }

    /// Stops all owners from waiting for an object, which breaks cycles of owners.
    fn unblock_owners(&mut self, place: &Place, object: &Object) {
        let mut value = object.value().clone();
        let owners = value.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
            owner.insert("blockOwnerDeletion".to_owned(), json!(false));
        }
        self.store.put(&place.0, &place.1, value);
    }

    fn drop_finalizer(&mut self, kind: &Kind, place: &Place, finalizer: &str, write: &Write<'_>) {
        let Some(object) = self.store.get(&place.0, &place.1) else { return };
        let mut holds = finalizers(&object);
        holds.retain(|held| held != finalizer);
        if holds.is_empty() && *kind.shelf != *NAMESPACES {
            self.remove(kind, &kind.key(metadata(&object, "namespace"), object.name()), write);
            return;
        }
        let mut value = object.value().clone();
        set_finalizers(&mut value, &holds);
        self.store.put(&place.0, &place.1, value);
        self.finish_namespace(object.name(), write);
    }
}

/// Whether an object waits for its dependents to be deleted.
fn is_waiting(object: &Object) -> bool {
    object.is_terminating() && finalizers(object).iter().any(|finalizer| finalizer == FOREGROUND)
}

/// Whether an owner's foreground deletion waits for this dependent.
fn blocks(dependent: &Object, owner: &str) -> bool {
    list_at(dependent, &["metadata", "ownerReferences"]).iter().any(|reference| {
        string_at(reference, &["uid"]) == Some(owner) && reference["blockOwnerDeletion"] == true
    })
}
