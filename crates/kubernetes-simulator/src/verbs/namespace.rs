//! The life of a namespace: what kube-controller-manager's namespace controller does.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{DeleteOptions, Deletion, State, Write, rfc3339_seconds};
use crate::object::{Object, finalizers, metadata, set_metadata};
use crate::registry::Kind;
use crate::status::ApiError;

/// Namespaces that every cluster has.
pub(crate) const INITIAL: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Namespaces that cannot be deleted.
const IMMORTAL: &[&str] = &["default", "kube-public", "kube-system"];

pub(crate) const SHELF: &str = "namespaces";

/// How long the contents of a deleted namespace stay when the deletion came over HTTP, so that clients
/// that delete a namespace and then its contents find these, as they do in a cluster.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

impl State {
    /// The members that a new namespace gets.
    pub(super) fn settle_namespace_object(&mut self, kind: &Kind, object: &mut Value) {
        if *kind.shelf != *SHELF {
            return;
        }
        let name = metadata(object, "name").to_owned();
        let mut labels = crate::object::metadata_value(object, "labels");
        if !labels.is_object() {
            labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
        }
        set_metadata(object, "labels", labels);
        if let Some(members) = object.as_object_mut() {
            members.insert("spec".to_owned(), json!({ "finalizers": ["kubernetes"] }));
            members.insert("status".to_owned(), json!({ "phase": "Active" }));
        }
    }

    /// Marks a namespace as terminating. Its contents go with [`State::empty_namespace`].
    pub(super) fn delete_namespace(
        &mut self,
        kind: &Kind,
        current: &Arc<Object>,
        write: &Write<'_>,
    ) -> Result<Deletion, ApiError> {
        let name = current.name().to_owned();
        if IMMORTAL.contains(&name.as_str()) {
            return Err(ApiError::forbidden(kind, &name, "this namespace may not be deleted"));
        }
        if write.dry_run {
            return Ok(Deletion::Waiting(Arc::clone(current)));
        }
        if !current.is_terminating() {
            let mut marked = current.value().clone();
            set_metadata(&mut marked, "deletionTimestamp", Value::from(rfc3339_seconds(write.now)));
            if let Some(members) = marked.as_object_mut() {
                members.insert("status".to_owned(), json!({ "phase": "Terminating" }));
            }
            self.store.put(&kind.shelf, name.clone(), marked);
        }
        self.get(kind, "", &name).map(Deletion::Waiting)
    }

    /// Deletes everything in a terminating namespace, and the namespace itself once nothing is left.
    pub(crate) fn empty_namespace(&mut self, name: &str, write: &Write<'_>) {
        if !self.store.get(SHELF, name).is_some_and(|namespace| namespace.is_terminating()) {
            return;
        }
        for (shelf, key) in self.store.in_namespace(name) {
            let Some(object) = self.store.get(&shelf, &key).cloned() else { continue };
            let Some(kind) = self.registry.by_shelf(&shelf) else { continue };
            // A dependent may have gone with its owner meanwhile; gone is what is wanted.
            let _ = self.delete(&kind, object.namespace(), object.name(), &DeleteOptions::default(), write);
        }
        self.finish_namespace(name, write);
    }

    /// Removes a terminating namespace once nothing is left in it.
    pub(super) fn finish_namespace(&mut self, name: &str, write: &Write<'_>) {
        let Some(namespace) = (if name.is_empty() { None } else { self.store.get(SHELF, name) }) else {
            return;
        };
        let done = namespace.is_terminating()
            && finalizers(namespace).is_empty()
            && self.store.in_namespace(name).is_empty();
        if done && let Some(kind) = self.registry.by_shelf(SHELF) {
            self.remove(&kind, name, write);
        }
    }
}
