//! Delete: finalizers, preconditions and the propagation to dependents.

use std::sync::Arc;

use serde_json::Value;

use super::lifecycle::finalizer::{CLEANUP, FOREGROUND, ORPHAN};
use super::pod;
use super::shelves;
use super::state::{State, Write};
use crate::admission;
use crate::conversion::{answer, read_back, serve, to_stored};
use crate::kinds::builtin::Generation;
use crate::object::{Object, finalizers, metadata, metadata_value, set_finalizers, set_metadata};
use crate::registry::Kind;
use crate::status::ApiError;

/// The fate of the objects that name the deleted one as their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Propagation {
    /// According to a finalizer of the object, or to the default of its kind.
    #[default]
    Default,
    /// They are deleted after it.
    Background,
    /// They are deleted first; until then the object stays, marked as terminating.
    Foreground,
    /// They stay and lose the reference.
    Orphan,
}

/// The supported `DeleteOptions`.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Propagation,
    /// A pod's grace period in seconds; `None` for the pod's own.
    pub(crate) grace: Option<u64>,
}

/// The result of a delete.
#[derive(Debug)]
pub(crate) enum Deletion {
    /// The object is gone; its last state.
    Removed(Arc<Object>),
    /// Finalizers hold it; its state now.
    Waiting(Arc<Object>),
}

/// The finalizers of an object that is being deleted: of the garbage collector's finalizers, it has exactly those that
/// the deletion requests.
fn holds(kind: &Kind, object: &Object, propagation: Propagation) -> Vec<String> {
    let mut held = finalizers(object);
    let has = |finalizer: &str| held.iter().any(|other| other == finalizer);
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
        Propagation::Default if has(FOREGROUND) => Some(FOREGROUND),
        Propagation::Default
            if has(ORPHAN) || kind.builtin().is_some_and(|builtin| builtin.orphans_dependents) =>
        {
            Some(ORPHAN)
        }
        Propagation::Default => None,
    };
    held.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    held.extend(wanted.map(str::to_owned));
    held
}

/// Counts the deletion as a change of the specification.
fn count_deletion(object: &mut Value) {
    let generation = metadata_value(object, "generation").as_u64().unwrap_or(0) + 1;
    set_metadata(object, "generation", Value::from(generation));
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
        if *kind.shelf == *shelves::NAMESPACES {
            return self.delete_namespace(kind, &current, write);
        }
        if write.dry_run {
            return Ok(Deletion::Removed(current));
        }
        let key = kind.key(namespace, name);
        let mut holds = holds(kind, &current, options.propagation);
        let defines = *kind.shelf == *shelves::DEFINITIONS;
        let first = !current.is_terminating();
        if defines && first && !holds.iter().any(|finalizer| finalizer == CLEANUP) {
            holds.push(CLEANUP.to_owned());
        }
        let grace = pod::grace(kind, &current, options.grace);
        if holds.is_empty() && grace == 0 {
            let last = self.remove(kind, &key, write);
            self.tend(write);
            let last = match last {
                Some(last) => serve(kind, &last)?,
                None => current,
            };
            // A pod is marked although it has no grace period.
            return Ok(Deletion::Removed(match *kind.shelf == *shelves::PODS && first {
                true => {
                    let mut marked = last.value().clone();
                    pod::mark(&mut marked, 0, write);
                    count_deletion(&mut marked);
                    Arc::new(Object::new(marked, last.version()))
                }
                false => last,
            }));
        }
        let shorter = pod::remaining(&current).is_some_and(|before| grace < before);
        let mut marked = current;
        if first || shorter || finalizers(&marked) != holds {
            // Objects with a conversion webhook are written in the current storage version; all others stay in theirs.
            let stored = if kind.is_converted() { None } else { self.store.get(&kind.shelf, &key) };
            let mut value = stored.as_ref().unwrap_or(&marked).value().clone();
            set_finalizers(&mut value, &holds);
            if first || shorter {
                pod::mark(&mut value, grace, write);
            }
            if kind.generation != Generation::None && first {
                count_deletion(&mut value);
            }
            let shown = read_back(kind, &value)?;
            if shown.is_some() {
                to_stored(kind, &mut value)?;
            }
            // Garbage collection may remove the object right below: the response is its marked state.
            marked = answer(kind, &self.store.put(&kind.shelf, &key, value), shown)?;
        }
        if defines && first {
            self.clean_definition(kind, name, write);
        }
        self.tend(write);
        Ok(Deletion::Waiting(marked))
    }

    /// Deletes an object for a client; the contents of a namespace go with it, and `at_once` if no client can expect to
    /// see them.
    pub(crate) fn delete_with_contents(
        &mut self,
        kind: &Kind,
        (namespace, name): (&str, &str),
        options: &DeleteOptions,
        at_once: bool,
        write: &Write<'_>,
    ) -> Result<Deletion, ApiError> {
        let deletion = self.delete(kind, namespace, name, options, write)?;
        if !write.dry_run && *kind.shelf == *shelves::NAMESPACES {
            self.plan_emptying(name, at_once, write);
        }
        Ok(deletion)
    }

    /// Removes an object from the store, with all consequences.
    pub(crate) fn remove(&mut self, kind: &Kind, key: &str, write: &Write<'_>) -> Option<Arc<Object>> {
        let last = self.store.remove(&kind.shelf, key)?;
        self.allocators.release(&admission::allocations(kind, &last));
        self.definition_removed(kind, &last, write);
        self.finish_namespace(last.namespace(), write);
        self.refurnish_namespace(kind, &last, write);
        Some(last)
    }
}
