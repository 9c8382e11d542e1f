//! Delete: finalizers, preconditions and what happens to dependents.

use std::sync::Arc;

use serde_json::Value;

use super::{State, Write, garbage, namespace, rfc3339_seconds};
use crate::admission;
use crate::object::{Object, finalizers, metadata, serve, set_finalizers, set_metadata};
use crate::registry::Kind;
use crate::status::ApiError;

/// What becomes of the objects that name the deleted one as their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted first; until then the object stays, marked as terminating.
    Foreground,
    /// They stay and lose the reference.
    Orphan,
}

/// The `DeleteOptions` that matter here.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Propagation,
}

/// What a delete did.
#[derive(Debug)]
pub(crate) enum Deletion {
    /// The object is gone; its last state.
    Removed(Arc<Object>),
    /// Finalizers hold it; its state now.
    Waiting(Arc<Object>),
}

impl State {
    pub(crate) fn delete(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        write: &Write<'_>,
    ) -> Result<Deletion, ApiError> {
        let current = self.get(kind, namespace, name)?;
        if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != current.uid()) {
            return Err(ApiError::precondition(
                kind,
                name,
                &format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have \
                     been deleted and then recreated",
                    current.uid()
                ),
            ));
        }
        let version = metadata(&current, "resourceVersion");
        if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
            return Err(ApiError::precondition(
                kind,
                name,
                &format!(
                    "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
                     ({version}). The object might have been modified"
                ),
            ));
        }
        if *kind.shelf == *namespace::SHELF {
            return self.delete_namespace(kind, &current, write);
        }
        if write.dry_run {
            return Ok(Deletion::Removed(current));
        }
        let key = kind.key(namespace, name);
        let mut holds = finalizers(&current);
        match options.propagation {
            Propagation::Background => {}
            Propagation::Orphan => self.orphan_dependents(current.uid()),
            Propagation::Foreground => {
                let waits = !self.store.dependents(current.uid()).is_empty();
                if waits && !holds.iter().any(|finalizer| finalizer == garbage::FOREGROUND) {
                    holds.push(garbage::FOREGROUND.to_owned());
                }
            }
        }
        if holds.is_empty() {
            return Ok(match self.remove(kind, &key, write) {
                Some(last) => Deletion::Removed(serve(kind, &last)),
                None => Deletion::Removed(current),
            });
        }
        if !current.is_terminating() {
            let mut marked =
                self.store.get(&kind.shelf, &key).map_or(Value::Null, |object| object.value().clone());
            set_finalizers(&mut marked, &holds);
            set_metadata(&mut marked, "deletionTimestamp", Value::from(rfc3339_seconds(write.now)));
            set_metadata(&mut marked, "deletionGracePeriodSeconds", Value::from(0));
            if kind.generation {
                let generation =
                    crate::object::metadata_value(&marked, "generation").as_u64().unwrap_or(0) + 1;
                set_metadata(&mut marked, "generation", Value::from(generation));
            }
            self.store.put(&kind.shelf, key.clone(), marked);
        }
        if options.propagation == Propagation::Foreground {
            self.collect_dependents(current.uid(), write);
        }
        Ok(match self.store.get(&kind.shelf, &key) {
            Some(object) => Deletion::Waiting(serve(kind, object)),
            None => Deletion::Removed(current),
        })
    }

    /// Takes an object out of the store, with everything that follows from it.
    pub(super) fn remove(&mut self, kind: &Kind, key: &str, write: &Write<'_>) -> Option<Arc<Object>> {
        let last = self.store.remove(&kind.shelf, key)?;
        admission::on_delete(&kind.kind, &last, &mut self.allocators);
        self.definition_removed(kind, &last, write);
        self.collect_dependents(last.uid(), write);
        self.release_owners(&last, write);
        self.finish_namespace(last.namespace(), write);
        Some(last)
    }
}
