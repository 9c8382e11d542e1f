//! Owner references: dependents of a deleted object are collected at once, in the same step, where
//! kube-controller-manager's garbage collector takes a moment.

use serde_json::Value;

use super::{DeleteOptions, State, Write, namespace};
use crate::object::{Object, finalizers, metadata, owner_uids, set_finalizers, set_metadata};
use crate::store::Place;

/// The finalizer with which a foreground deletion waits for dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

impl State {
    /// Deletes the dependents of an owner that is gone or goes; those with another living owner only
    /// lose the reference.
    pub(super) fn collect_dependents(&mut self, uid: &str, write: &Write<'_>) {
        if uid.is_empty() {
            return;
        }
        for place in self.store.dependents(uid) {
            let Some(object) = self.store.get(&place.0, &place.1).cloned() else { continue };
            let others =
                owner_uids(&object).any(|owner| owner != uid && self.store.place_of(owner).is_some());
            if others {
                self.drop_reference(&place, &object, uid);
            } else if let Some(kind) = self.registry.by_shelf(&place.0) {
                // It was there a moment ago, under the same lock: the delete cannot fail.
                let _ =
                    self.delete(&kind, object.namespace(), object.name(), &DeleteOptions::default(), write);
                if *kind.shelf == *namespace::SHELF {
                    self.empty_namespace(object.name(), write);
                }
            }
        }
    }

    /// Removes the reference to an owner from all its dependents.
    pub(super) fn orphan_dependents(&mut self, uid: &str) {
        for place in self.store.dependents(uid) {
            if let Some(object) = self.store.get(&place.0, &place.1).cloned() {
                self.drop_reference(&place, &object, uid);
            }
        }
    }

    fn drop_reference(&mut self, place: &Place, object: &Object, uid: &str) {
        let mut value = object.value().clone();
        let kept: Vec<Value> = crate::object::list_at(&value, &["metadata", "ownerReferences"])
            .iter()
            .filter(|owner| owner.get("uid").and_then(Value::as_str) != Some(uid))
            .cloned()
            .collect();
        set_metadata(
            &mut value,
            "ownerReferences",
            if kept.is_empty() { Value::Null } else { Value::Array(kept) },
        );
        self.store.put(&place.0, place.1.clone(), value);
    }

    /// Lets owners go that waited, in a foreground deletion, for this dependent as their last.
    pub(super) fn release_owners(&mut self, dependent: &Object, write: &Write<'_>) {
        let owners: Vec<String> = owner_uids(dependent).map(str::to_owned).collect();
        for uid in owners {
            if !self.store.dependents(&uid).is_empty() {
                continue;
            }
            let Some((shelf, key)) = self.store.place_of(&uid).cloned() else { continue };
            let Some(owner) = self.store.get(&shelf, &key).cloned() else { continue };
            let mut holds = finalizers(&owner);
            let waited = owner.is_terminating() && holds.iter().any(|finalizer| finalizer == FOREGROUND);
            if !waited {
                continue;
            }
            holds.retain(|finalizer| finalizer != FOREGROUND);
            let Some(kind) = self.registry.by_shelf(&shelf) else { continue };
            if holds.is_empty() {
                self.remove(&kind, &kind.key(metadata(&owner, "namespace"), owner.name()), write);
            } else {
                let mut value = owner.value().clone();
                set_finalizers(&mut value, &holds);
                self.store.put(&shelf, key, value);
            }
        }
    }
}
