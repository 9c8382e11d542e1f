//! Create.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Stage, State, Tracking, Write, date_managed_fields, decode, metadata as rules, namespace as namespaces,
    rfc3339_seconds,
};
use crate::admission;
use crate::conversion::{answer, read_back, to_stored};
use crate::object::{Object, is_terminating, metadata, set_metadata};
use crate::patch;
use crate::registry::{Kind, StatusRule};
use crate::status::ApiError;
use crate::wire;

/// Metadata of a new object that only the server sets.
const SYSTEM_METADATA: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

impl State {
    /// Stores a new object. `object` is in the form of `kind`.
    pub(crate) fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        object: Value,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        self.create_tracked(kind, namespace, object, Tracking::Changes, write)
    }

    pub(super) fn create_tracked(
        &mut self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        tracking: Tracking,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        rules::settle_type(kind, &mut object)?;
        decode::body(kind, &mut object, write.fields)?;
        rules::settle_namespace(kind, &mut object, namespace)?;
        if !matches!(metadata(&object, "resourceVersion"), "" | "0") {
            return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        if kind.namespaced {
            self.check_namespace(kind, &object, namespace)?;
        }
        rules::validate(kind, &object)?;
        if kind.status == StatusRule::Subresource
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
        }
        for member in SYSTEM_METADATA {
            set_metadata(&mut object, member, Value::Null);
        }
        admission::convert(kind, &mut object);
        // Values that the server sets below have no owner.
        if tracking == Tracking::Changes {
            let track =
                |subject: &patch::Subject<'_>| patch::track_update(subject, None, &mut object, write.manager);
            self.registry.subject(kind, "", track)?;
        }
        date_managed_fields(&mut object, write.now);
        if write.stage == Stage::Proposal {
            return Ok(Arc::new(Object::new(object, 0)));
        }
        self.settle_new(kind, namespace, object, write)
    }

    /// Completes, validates and stores a new object, as its client wants it or as hooks have changed it.
    pub(crate) fn settle_new(
        &mut self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        self.check_definition(kind, &object)?;
        if kind.namespaced {
            self.check_namespace(kind, &object, namespace)?;
        }
        self.settle_name(kind, &mut object);
        rules::validate(kind, &object)?;
        let name = metadata(&object, "name").to_owned();
        let key = kind.key(namespace, &name);
        if self.store.has(&kind.shelf, &key) {
            return Err(ApiError::already_exists(kind, &name));
        }
        if write.stage != Stage::Drafted {
            set_metadata(&mut object, "uid", Value::from(self.new_uid()));
            set_metadata(&mut object, "creationTimestamp", Value::from(rfc3339_seconds(write.now)));
        }
        set_metadata(&mut object, "generation", if kind.generation { json!(1) } else { Value::Null });
        self.settle_namespace_object(kind, &mut object);
        admission::on_create(kind, &mut object, &mut self.allocators)
            .map_err(|causes| ApiError::invalid_causes(kind, &name, &causes))?;
        rules::date_phase(kind, None, &mut object, write.now);
        rules::drop_empty(&mut object);
        wire::complete(kind, &mut object);
        self.settle_definition(kind, &mut object, write.now);
        let drafts = write.stage == Stage::Draft;
        let shown = if drafts { None } else { read_back(kind, &object)? };
        if write.dry_run || drafts {
            admission::on_delete(kind, &object, &mut self.allocators);
            return Ok(Arc::new(Object::new(shown.unwrap_or(object), self.store.version())));
        }
        to_stored(kind, &mut object)?;
        let object = self.store.put(&kind.shelf, &key, object);
        self.definition_written(kind, &object);
        self.plan_expiry(kind, &key, &object);
        if *kind.shelf == *namespaces::SHELF {
            self.furnish_namespace(&key, write);
        }
        self.tend(write);
        answer(kind, &object, shown)
    }

    fn check_namespace(&self, kind: &Kind, object: &Value, namespace: &str) -> Result<(), ApiError> {
        let name = metadata(object, "name");
        match self.store.get("namespaces", namespace) {
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
        // This is the only kind that needs no name.
        if kind.is("", "LimitRange") && metadata(object, "name").is_empty() && prefix.is_empty() {
            set_metadata(object, "name", Value::from(self.new_uid()));
            return;
        }
        if !metadata(object, "name").is_empty() || prefix.is_empty() {
            return;
        }
        // A name that is also a label has at most 63 characters, and the suffix takes five of them.
        let kept: String = prefix.chars().take(58).collect();
        loop {
            let name = format!("{kept}{}", self.name_suffix());
            if !self.store.has(&kind.shelf, &kind.key(metadata(object, "namespace"), &name)) {
                set_metadata(object, "name", Value::from(name));
                return;
            }
        }
    }
}
