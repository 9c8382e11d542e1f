//! The first stage of a write: what its client wants to store. A create, an update, a patch and a scale each build it
//! from the request and from the stored object; nothing is changed.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission;
use crate::kinds::builtin::StatusRule;
use crate::object::go::go_text;
use crate::object::{Object, metadata, rfc3339_seconds, set_metadata};
use crate::patch::{self, PatchType};
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::state::{State, Write};
use crate::verbs::write::metadata as rules;
use crate::verbs::write::parts::{Part, keep_identity, keep_other_part};
use crate::verbs::write::{decode, scale};

/// The object that a write would store, as its client wants it.
#[derive(Debug, Clone)]
pub(crate) struct Proposal {
    pub(crate) object: Value,
    /// The object that it replaces; `None` for a creation.
    pub(crate) current: Option<Arc<Object>>,
    pub(crate) part: Part,
    pub(crate) namespace: String,
}

/// How a write is recorded in `metadata.managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// An ordinary write: the writer owns what it changes.
    Changes,
    /// Server-side apply has recorded the owners already.
    Applied,
}

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
    /// Proposes a new object. `object` is in the form of `kind`.
    pub(crate) fn propose_create(
        &self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        tracking: Tracking,
        write: &Write<'_>,
    ) -> Result<Proposal, ApiError> {
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
        admission::prepare(kind, &mut object);
        // Values that the server sets below have no owner.
        if tracking == Tracking::Changes {
            let track = |subject: &patch::PatchTarget<'_>| {
                patch::track_update(subject, None, &mut object, write.manager)
            };
            self.registry.subject(kind, "", track)?;
        }
        date_managed_fields(&mut object, write.now);
        Ok(Proposal { object, current: None, part: Part::Main, namespace: namespace.to_owned() })
    }

    /// Proposes to replace an object, or to create it if the kind allows that.
    pub(crate) fn propose_update(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        part: Part,
        mut proposed: Value,
        write: &Write<'_>,
    ) -> Result<Proposal, ApiError> {
        rules::settle_type(kind, &mut proposed)?;
        decode::body(kind, &mut proposed, write.fields)?;
        let given = metadata(&proposed, "name");
        if given.is_empty() && kind.is_custom() {
            return Err(ApiError::bad_request("name must be provided"));
        }
        if given.is_empty() {
            set_metadata(&mut proposed, "name", Value::from(name));
        } else if given != name {
            return Err(other_name(name, given));
        }
        rules::settle_namespace(kind, &mut proposed, namespace)?;
        let current = match self.get(kind, namespace, name) {
            Ok(current) => current,
            Err(_) if kind.create_on_update && part == Part::Main => {
                set_metadata(&mut proposed, "resourceVersion", Value::Null);
                return self.propose_create(kind, namespace, proposed, Tracking::Changes, write);
            }
            Err(error) => return Err(error),
        };
        let uid = metadata(&proposed, "uid");
        if !uid.is_empty() && uid != current.uid() {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                directory_in_etcd(kind),
                kind.key(namespace, name),
                current.uid()
            );
            return Err(ApiError::conflict(kind, name, &why));
        }
        let version = metadata(&proposed, "resourceVersion");
        if matches!(version, "" | "0") && !kind.unconditional_update {
            return Err(ApiError::version_required(kind, name));
        }
        self.propose_replacement(kind, current, proposed, part, Tracking::Changes, write)
    }

    /// Proposes to patch an object; server-side apply may also create it.
    pub(crate) fn propose_patch(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        part: Part,
        (body, how): (&Value, &PatchType),
        write: &Write<'_>,
    ) -> Result<Proposal, ApiError> {
        let applies = matches!(how, PatchType::Apply { .. });
        let tracking = if applies { Tracking::Applied } else { Tracking::Changes };
        let current = self.get(kind, namespace, name);
        let current = match current {
            Ok(current) => Some(current),
            Err(error) if applies && part == Part::Main && error.code == 404 => None,
            Err(error) => return Err(error),
        };
        let mut proposed = self.registry.subject(kind, part.subresource(), |subject| {
            patch::patch(subject, current.as_deref().map(Object::value), body, how)
        })?;
        let Some(current) = current else {
            let given = metadata(&proposed, "name");
            if given.is_empty() {
                set_metadata(&mut proposed, "name", Value::from(name));
            } else if given != name {
                return Err(other_name(name, given));
            }
            return self.propose_create(kind, namespace, proposed, tracking, write);
        };
        rules::settle_type(kind, &mut proposed)?;
        let shown = |object: &Value| match how {
            PatchType::Strategic => go_text(body),
            _ => object.to_string(),
        };
        decode::patched(kind, &mut proposed, shown, write.fields)?;
        let given = metadata(&proposed, "name");
        if given != name {
            return Err(other_name(name, given));
        }
        let uid = metadata(&proposed, "uid");
        if !uid.is_empty() && uid != current.uid() {
            let message = format!("Invalid value: {uid:?}: field is immutable");
            return Err(ApiError::invalid(kind, name, "metadata.uid", &message));
        }
        let given = metadata(&proposed, "namespace");
        if kind.namespaced && !given.is_empty() && given != namespace {
            return Err(ApiError::bad_request(format!(
                "the namespace of the object ({given}) does not match the namespace on the request ({namespace})"
            )));
        }
        rules::settle_namespace(kind, &mut proposed, namespace)?;
        self.propose_replacement(kind, current, proposed, part, tracking, write)
    }

    /// Proposes to set an object's replicas to those of a Scale.
    pub(crate) fn propose_scale(
        &self,
        kind: &Kind,
        current: &Arc<Object>,
        scale: &Value,
        write: &Write<'_>,
    ) -> Result<Proposal, ApiError> {
        scale::validate(kind, current.name(), scale)?;
        let mut proposed = current.value().clone();
        let version = metadata(scale, "resourceVersion");
        if !matches!(version, "" | "0") {
            set_metadata(&mut proposed, "resourceVersion", Value::from(version));
        }
        scale::put(kind, &mut proposed, scale::replicas(scale));
        self.propose_replacement(kind, Arc::clone(current), proposed, Part::Main, Tracking::Changes, write)
    }

    /// Proposes to store `object` in place of `current`, without the parts that this write may not change. Both are in
    /// the form of `kind`.
    fn propose_replacement(
        &self,
        kind: &Kind,
        current: Arc<Object>,
        mut object: Value,
        part: Part,
        tracking: Tracking,
        write: &Write<'_>,
    ) -> Result<Proposal, ApiError> {
        let version = metadata(&object, "resourceVersion");
        if !matches!(version, "" | "0") && version != metadata(&current, "resourceVersion") {
            return Err(ApiError::modified(kind, current.name()));
        }
        admission::prepare(kind, &mut object);
        keep_identity(&current, &mut object);
        keep_other_part(kind, &current, &mut object, part);
        rules::validate(kind, &object)?;
        if tracking == Tracking::Changes {
            self.registry.subject(kind, part.subresource(), |subject| {
                patch::track_update(subject, Some(current.value()), &mut object, write.manager)
            })?;
        }
        date_managed_fields(&mut object, write.now);
        let namespace = current.namespace().to_owned();
        Ok(Proposal { object, current: Some(current), part, namespace })
    }
}

/// The directory of a kind's objects in etcd.
fn directory_in_etcd(kind: &Kind) -> String {
    match kind.builtin() {
        None => format!("{}/{}", kind.group, kind.plural),
        Some(builtin) => builtin.etcd_directory.unwrap_or(builtin.plural).to_owned(),
    }
}

fn other_name(name: &str, given: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({name})"
    ))
}

/// Sets the time of new entries in `metadata.managedFields`.
fn date_managed_fields(object: &mut Value, now: Timestamp) {
    let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) else {
        return;
    };
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        if entry.entry("time").or_insert_with(|| Value::from(rfc3339_seconds(now))).is_null() {
            entry.remove("time");
        }
    }
}
