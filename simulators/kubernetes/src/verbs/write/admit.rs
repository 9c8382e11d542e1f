//! The second stage of a write: the proposed object is completed and validated. Mutating hooks have seen it before,
//! validating hooks see the result.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::builtin::Generation;
use crate::object::{
    Object, finalizers, is_terminating, metadata, metadata_value, rfc3339_seconds, set_metadata, string_at,
};
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::shelves::NAMESPACES;
use crate::verbs::state::{State, Write};
use crate::verbs::write::metadata as rules;
use crate::verbs::write::parts::{Part, keep_identity, keep_other_part};
use crate::verbs::write::propose::Proposal;
use crate::{admission, wire};

/// An object that may be stored.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) object: Value,
    /// The object that it replaces; `None` for a creation.
    pub(crate) current: Option<Arc<Object>>,
    pub(crate) part: Part,
    pub(crate) namespace: String,
}

impl Admitted {
    pub(crate) fn name(&self) -> &str {
        metadata(&self.object, "name")
    }
}

impl State {
    /// Completes and validates a proposal. `None` if the object that it replaces has changed since.
    ///
    /// # Errors
    /// The object is refused.
    pub(crate) fn admit(
        &mut self,
        kind: &Kind,
        proposal: Proposal,
        write: &Write<'_>,
    ) -> Result<Option<Admitted>, ApiError> {
        let Proposal { mut object, current, part, namespace } = proposal;
        match &current {
            Some(current) if self.has_changed(kind, current)? => return Ok(None),
            Some(current) => self.admit_replacement(kind, current, &mut object, part, write)?,
            None => self.admit_new(kind, &namespace, &mut object, write)?,
        }
        Ok(Some(Admitted { object, current, part, namespace }))
    }

    /// Whether an object is no longer the one that was read.
    pub(crate) fn has_changed(&self, kind: &Kind, read: &Object) -> Result<bool, ApiError> {
        Ok(self.get(kind, read.namespace(), read.name())?.version() != read.version())
    }

    fn admit_new(
        &mut self,
        kind: &Kind,
        namespace: &str,
        object: &mut Value,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        self.check_parents(kind, namespace, object)?;
        self.settle_name(kind, object);
        rules::validate(kind, object)?;
        self.check_name(kind, namespace, object)?;
        set_metadata(object, "uid", Value::from(self.new_uid()));
        set_metadata(object, "creationTimestamp", Value::from(rfc3339_seconds(write.now)));
        let counts = kind.generation != Generation::None;
        set_metadata(object, "generation", if counts { json!(1) } else { Value::Null });
        self.settle(kind, None, object, write)
    }

    /// Validates that an object may be created: its definition and its namespace are not going.
    pub(crate) fn check_parents(&self, kind: &Kind, namespace: &str, object: &Value) -> Result<(), ApiError> {
        self.check_definition(kind, object)?;
        if kind.namespaced {
            self.check_namespace(kind, object, namespace)?;
        }
        Ok(())
    }

    /// Validates that no object has this name yet.
    pub(crate) fn check_name(&self, kind: &Kind, namespace: &str, object: &Value) -> Result<(), ApiError> {
        let name = metadata(object, "name");
        if self.store.has(&kind.shelf, &kind.key(namespace, name)) {
            return Err(ApiError::already_exists(kind, name));
        }
        Ok(())
    }

    fn admit_replacement(
        &mut self,
        kind: &Kind,
        current: &Object,
        object: &mut Value,
        part: Part,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        // Hooks cannot change what the server alone decides.
        keep_identity(current, object);
        keep_other_part(kind, current, object, part);
        if is_terminating(current) {
            refuse_new_finalizers(kind, current, object)?;
        }
        rules::validate(kind, object)?;
        self.settle(kind, Some(current), object, write)?;
        let changed = match kind.generation {
            Generation::None | Generation::Constant => false,
            Generation::Specification => changes_specification(current, object),
            Generation::SpecificationAndAnnotations => {
                changes_specification(current, object)
                    || metadata_value(current, "annotations") != metadata_value(object, "annotations")
            }
        };
        if changed && part == Part::Main {
            let generation = metadata_value(current, "generation").as_u64().unwrap_or(0) + 1;
            set_metadata(object, "generation", Value::from(generation));
        }
        Ok(())
    }

    /// What creation and replacement share.
    fn settle(
        &mut self,
        kind: &Kind,
        old: Option<&Value>,
        object: &mut Value,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        admission::admit(kind, old, object, &mut self.allocators)
            .map_err(|causes| ApiError::invalid_causes(kind, metadata(object, "name"), &causes))?;
        if let Some(builtin) = kind.builtin() {
            (builtin.date_status)(old, object, write.now);
        }
        rules::drop_empty(object);
        wire::complete(kind, object);
        Ok(())
    }

    pub(crate) fn check_namespace(
        &self,
        kind: &Kind,
        object: &Value,
        namespace: &str,
    ) -> Result<(), ApiError> {
        let name = metadata(object, "name");
        match self.store.get(NAMESPACES, namespace) {
            Some(found) if is_terminating(&found) => {
                Err(ApiError::namespace_terminating(kind, name, namespace))
            }
            Some(_) => Ok(()),
            None => {
                let namespaces = self.registry.by_name("namespaces");
                Err(namespaces
                    .map_or_else(ApiError::no_such_resource, |row| ApiError::not_found(&row, namespace)))
            }
        }
    }

    fn settle_name(&mut self, kind: &Kind, object: &mut Value) {
        let prefix = metadata(object, "generateName").to_owned();
        let generates = kind.builtin().is_some_and(|builtin| builtin.generates_name);
        if generates && metadata(object, "name").is_empty() && prefix.is_empty() {
            set_metadata(object, "name", Value::from(self.new_uid()));
            return;
        }
        if !metadata(object, "name").is_empty() || prefix.is_empty() {
            return;
        }
        // A name that is also a label has at most 63 characters, and the suffix takes five of them.
        let stem: String = prefix.chars().take(58).collect();
        loop {
            let name = format!("{stem}{}", self.name_suffix());
            if !self.store.has(&kind.shelf, &kind.key(metadata(object, "namespace"), &name)) {
                set_metadata(object, "name", Value::from(name));
                return;
            }
        }
    }
}

fn refuse_new_finalizers(kind: &Kind, current: &Value, proposed: &Value) -> Result<(), ApiError> {
    let had = finalizers(current);
    let new: Vec<String> =
        finalizers(proposed).into_iter().filter(|finalizer| !had.contains(finalizer)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let list = new.iter().map(|finalizer| format!("{finalizer:?}")).collect::<Vec<_>>().join(", ");
    let message = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
    );
    let name = string_at(current, &["metadata", "name"]).unwrap_or_default();
    Err(ApiError::invalid(kind, name, "metadata.finalizers", &message))
}

fn changes_specification(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let counts = |name: &str| name != "metadata" && name != "status";
    old.iter().any(|(name, value)| counts(name) && new.get(name) != Some(value))
        || new.keys().any(|name| counts(name) && !old.contains_key(name))
}
