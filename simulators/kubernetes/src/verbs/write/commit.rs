//! The third stage of a write: the admitted object is checked for conflicts once more, because other writes may have
//! come while hooks were called, and is stored.

use std::sync::Arc;

use serde_json::Value;

use crate::admission;
use crate::conversion::{answer, read_back, to_stored};
use crate::kinds::shared::allocators::Allocations;
use crate::object::{Object, finalizers, is_terminating, metadata};
use crate::patch::PatchType;
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::pod;
use crate::verbs::shelves::NAMESPACES;
use crate::verbs::state::{State, Write};
use crate::verbs::write::admit::Admitted;
use crate::verbs::write::parts::Part;
use crate::verbs::write::propose::{Proposal, Tracking};

/// An object as it is stored, and whether the write created it.
pub(crate) type Outcome = (Arc<Object>, bool);

impl State {
    /// Stores an admitted object. `None` if the object that it replaces has changed since, or if an address or a port
    /// that was free is no longer.
    ///
    /// # Errors
    /// The object may no longer be created, or cannot be converted yet.
    pub(crate) fn commit(
        &mut self,
        kind: &Kind,
        admitted: Admitted,
        write: &Write<'_>,
    ) -> Result<Option<Outcome>, ApiError> {
        let Admitted { object, current, part, namespace } = admitted;
        match current {
            Some(current) if self.has_changed(kind, &current)? => Ok(None),
            Some(current) => {
                let stored = self.commit_replacement(kind, &current, object, part, write)?;
                Ok(stored.map(|stored| (stored, false)))
            }
            None => Ok(self.commit_new(kind, &namespace, object, write)?.map(|stored| (stored, true))),
        }
    }

    fn commit_new(
        &mut self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        write: &Write<'_>,
    ) -> Result<Option<Arc<Object>>, ApiError> {
        self.check_parents(kind, namespace, &object)?;
        self.check_name(kind, namespace, &object)?;
        self.settle_definition(kind, &mut object, write.now);
        let shown = read_back(kind, &object)?;
        if write.dry_run {
            return Ok(Some(Arc::new(Object::new(shown.unwrap_or(object), self.store.version()))));
        }
        let held = admission::allocations(kind, &object);
        to_stored(kind, &mut object)?;
        if !self.allocators.exchange(&Allocations::default(), &held) {
            return Ok(None);
        }
        let key = kind.key(namespace, metadata(&object, "name"));
        let object = self.store.put(&kind.shelf, &key, object);
        self.definition_written(kind, &object);
        self.plan_expiry(kind, &key, &object);
        if *kind.shelf == *NAMESPACES {
            self.furnish_namespace(&key, write);
        }
        self.tend(write);
        answer(kind, &object, shown).map(Some)
    }

    /// Stores nothing if the objects are equal.
    fn commit_replacement(
        &mut self,
        kind: &Kind,
        current: &Arc<Object>,
        mut object: Value,
        part: Part,
        write: &Write<'_>,
    ) -> Result<Option<Arc<Object>>, ApiError> {
        if part == Part::Main {
            self.settle_definition(kind, &mut object, write.now);
        }
        let shown = read_back(kind, &object)?;
        if write.dry_run {
            return Ok(Some(Arc::new(Object::new(shown.unwrap_or(object), current.version()))));
        }
        let finishes = is_terminating(&object)
            && finalizers(&object).is_empty()
            && pod::remaining(&object).unwrap_or_default() == 0;
        let key = kind.key(current.namespace(), current.name());
        // Any update rewrites a custom object that is stored in another version, or without new defaults.
        let stored = if kind.is_custom() { self.store.get(&kind.shelf, &key) } else { None };
        let as_shown = stored.is_none() && same(current, &object);
        let (before, after) = (admission::allocations(kind, current), admission::allocations(kind, &object));
        to_stored(kind, &mut object)?;
        if !finishes && (as_shown || stored.is_some_and(|stored| same(&stored, &object))) {
            return Ok(Some(Arc::clone(current)));
        }
        if !self.allocators.exchange(&before, &after) {
            return Ok(None);
        }
        if finishes && *kind.shelf != *NAMESPACES {
            // Watchers do not see the removal of the last finalizer itself: they see the deletion.
            self.store.replace_unseen(&kind.shelf, &key, object.clone());
            self.remove(kind, &key, write);
            self.tend(write);
            return answer(kind, &Arc::new(Object::new(object, self.store.version())), shown).map(Some);
        }
        let object = self.store.put(&kind.shelf, &key, object);
        self.definition_written(kind, &object);
        self.plan_expiry(kind, &key, &object);
        let served = answer(kind, &object, shown)?;
        if *kind.shelf == *NAMESPACES {
            self.finish_namespace(object.name(), write);
        }
        self.tend(write);
        Ok(Some(served))
    }

    /// Admits and commits a proposal, without hooks.
    ///
    /// # Errors
    /// Those of both stages.
    pub(crate) fn store(
        &mut self,
        kind: &Kind,
        proposal: Proposal,
        write: &Write<'_>,
    ) -> Result<Outcome, ApiError> {
        let name = metadata(&proposal.object, "name").to_owned();
        let committed = match self.admit(kind, proposal, write)? {
            Some(admitted) => self.commit(kind, admitted, write)?,
            None => None,
        };
        committed.ok_or_else(|| ApiError::modified(kind, &name))
    }

    /// Creates an object, without hooks.
    ///
    /// # Errors
    /// The object is refused.
    pub(crate) fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        object: Value,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        let proposal = self.propose_create(kind, namespace, object, Tracking::Changes, write)?;
        self.store(kind, proposal, write).map(|(object, _)| object)
    }

    /// Patches an object, without hooks.
    ///
    /// # Errors
    /// The object does not exist, or the result is refused.
    pub(crate) fn patch(
        &mut self,
        kind: &Kind,
        (namespace, name): (&str, &str),
        part: Part,
        patch: (&Value, &PatchType),
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        let proposal = self.propose_patch(kind, namespace, name, part, patch, write)?;
        self.store(kind, proposal, write).map(|(object, _)| object)
    }
}

/// Whether two versions are equal, ignoring the times in `managedFields`.
fn same(old: &Value, new: &Value) -> bool {
    old == new || {
        let timeless = |object: &Value| {
            let mut object = object.clone();
            if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut)
            {
                for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                    entry.remove("time");
                }
            }
            object
        };
        timeless(old) == timeless(new)
    }
}
