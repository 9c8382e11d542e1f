//! Update and patch: each builds a proposed object from the current one; the rest is common.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    Stage, State, Tracking, Write, date_managed_fields, decode, metadata as rules, namespace, pod, scale,
};
use crate::admission;
use crate::conversion::{answer, read_back, to_stored};
use crate::object::{Object, finalizers, is_terminating, metadata, metadata_value, set_metadata, string_at};
use crate::patch::{self, PatchType};
use crate::registry::Kind;
use crate::status::ApiError;
use crate::wire;

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that is a subresource.
    Main,
    /// The finalizers in the specification of a namespace.
    Finalize,
    /// The status subresource: everything but the specification; of custom resources the status alone.
    Status,
}

impl Part {
    /// Name of the subresource; empty for the main one.
    fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
        }
    }
}

impl State {
    /// Replaces an object, or creates it if the kind allows that. The flag says which.
    pub(crate) fn update(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        part: Part,
        mut proposed: Value,
        write: &Write<'_>,
    ) -> Result<(Arc<Object>, bool), ApiError> {
        rules::settle_type(kind, &mut proposed)?;
        decode::body(kind, &mut proposed, write.fields)?;
        let given = metadata(&proposed, "name");
        if given.is_empty() && kind.custom {
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
                return Ok((self.create(kind, namespace, proposed, write)?, true));
            }
            Err(error) => return Err(error),
        };
        let uid = metadata(&proposed, "uid");
        if !uid.is_empty() && uid != current.uid() {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                folder_in_etcd(kind),
                kind.key(namespace, name),
                current.uid()
            );
            return Err(ApiError::conflict(kind, name, &why));
        }
        let version = metadata(&proposed, "resourceVersion");
        if matches!(version, "" | "0") && !kind.unconditional_update {
            return Err(ApiError::version_required(kind, name));
        }
        Ok((self.replace(kind, &current, proposed, part, Tracking::Changes, write)?, false))
    }

    /// Patches an object; server-side apply may also create it. The flag says whether it did.
    pub(crate) fn patch(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        part: Part,
        (body, how): (&Value, &PatchType),
        write: &Write<'_>,
    ) -> Result<(Arc<Object>, bool), ApiError> {
        let applies = matches!(how, PatchType::Apply { .. });
        let tracking = if applies { Tracking::Applied } else { Tracking::Changes };
        let current = self.get(kind, namespace, name);
        let current = match current {
            Ok(current) => Some(current),
            Err(error) if applies && part == Part::Main && error.code == 404 => None,
            Err(error) => return Err(error),
        };
        let proposed = self.registry.subject(kind, part.subresource(), |subject| {
            patch::patch(subject, current.as_deref().map(Object::value), body, how)
        })?;
        let Some(current) = current else {
            let mut proposed = proposed;
            let given = metadata(&proposed, "name");
            if given.is_empty() {
                set_metadata(&mut proposed, "name", Value::from(name));
            } else if given != name {
                return Err(other_name(name, given));
            }
            return Ok((self.create_tracked(kind, namespace, proposed, tracking, write)?, true));
        };
        let mut proposed = proposed;
        rules::settle_type(kind, &mut proposed)?;
        let shown = |object: &Value| match how {
            PatchType::Strategic => decode::go_text(body),
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
        Ok((self.replace(kind, &current, proposed, part, tracking, write)?, false))
    }

    /// Sets an object's replicas to those of a Scale.
    pub(crate) fn scale(
        &mut self,
        kind: &Kind,
        current: &Arc<Object>,
        wanted: &Value,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        scale::validate(kind, current.name(), wanted)?;
        let mut proposed = current.value().clone();
        let version = metadata(wanted, "resourceVersion");
        if !matches!(version, "" | "0") {
            set_metadata(&mut proposed, "resourceVersion", Value::from(version));
        }
        scale::put(kind, &mut proposed, scale::wanted(wanted));
        self.replace(kind, current, proposed, Part::Main, Tracking::Changes, write)
    }

    /// Stores `proposed` in place of `current`, without the parts that this write may not change. Both are in the form
    /// of `kind`. Stores nothing if they are equal.
    fn replace(
        &mut self,
        kind: &Kind,
        current: &Arc<Object>,
        mut proposed: Value,
        part: Part,
        tracking: Tracking,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        let name = current.name().to_owned();
        let version = metadata(&proposed, "resourceVersion");
        if !matches!(version, "" | "0") && version != metadata(current, "resourceVersion") {
            return Err(ApiError::modified(kind, &name));
        }
        admission::convert(kind, &mut proposed);
        keep_identity(current, &mut proposed);
        keep_other_part(kind, current, &mut proposed, part);
        rules::validate(kind, &proposed)?;
        if tracking == Tracking::Changes {
            self.registry.subject(kind, part.subresource(), |subject| {
                patch::track_update(subject, Some(current.value()), &mut proposed, write.manager)
            })?;
        }
        date_managed_fields(&mut proposed, write.now);
        if write.stage == Stage::Proposal {
            return Ok(Arc::new(Object::new(proposed, current.version())));
        }
        self.settle_replacement(kind, current, proposed, part, write)
    }

    /// Completes, validates and stores the replacement of `current`, as its client wants it or as hooks have changed
    /// it.
    pub(crate) fn settle_replacement(
        &mut self,
        kind: &Kind,
        current: &Arc<Object>,
        mut proposed: Value,
        part: Part,
        write: &Write<'_>,
    ) -> Result<Arc<Object>, ApiError> {
        let name = current.name().to_owned();
        // Hooks cannot change what the server alone decides.
        keep_identity(current, &mut proposed);
        keep_other_part(kind, current, &mut proposed, part);
        if is_terminating(current) {
            refuse_new_finalizers(kind, current, &proposed)?;
        }
        rules::validate(kind, &proposed)?;
        admission::on_update(kind, current, &mut proposed, &mut self.allocators)
            .map_err(|causes| ApiError::invalid_causes(kind, &name, &causes))?;
        rules::date_phase(kind, Some(current), &mut proposed, write.now);
        rules::drop_empty(&mut proposed);
        wire::complete(kind, &mut proposed);
        if part == Part::Main {
            self.settle_definition(kind, &mut proposed, write.now);
        }
        // A change of a Deployment's annotations increases its generation, too: its controller reads them.
        let noted = kind.is("apps", "Deployment")
            && metadata_value(current, "annotations") != metadata_value(&proposed, "annotations");
        // The generation of a PriorityClass never changes.
        let counts = kind.generation && !kind.is("scheduling.k8s.io", "PriorityClass");
        if counts && part == Part::Main && (noted || changes_specification(current, &proposed)) {
            let generation = metadata_value(current, "generation").as_u64().unwrap_or(0) + 1;
            set_metadata(&mut proposed, "generation", Value::from(generation));
        }
        let drafts = write.stage == Stage::Draft;
        let shown = if drafts { None } else { read_back(kind, &proposed)? };
        if write.dry_run || drafts {
            // The allocations of the proposed object are released, and the current one gets its own again: every
            // address and port in it is explicit and was free a moment ago.
            admission::on_delete(kind, &proposed, &mut self.allocators);
            let _ = admission::on_create(kind, &mut current.value().clone(), &mut self.allocators);
            return Ok(Arc::new(Object::new(shown.unwrap_or(proposed), current.version())));
        }
        let finishes = is_terminating(&proposed)
            && finalizers(&proposed).is_empty()
            && pod::remaining(&proposed).unwrap_or_default() == 0;
        let key = kind.key(current.namespace(), &name);
        // Any update rewrites a custom object that is stored in another version, or without new defaults.
        let lies = if kind.custom { self.store.get(&kind.shelf, &key) } else { None };
        let as_shown = lies.is_none() && same(current, &proposed);
        to_stored(kind, &mut proposed)?;
        if !finishes && (as_shown || lies.is_some_and(|lies| same(&lies, &proposed))) {
            return Ok(Arc::clone(current));
        }
        if finishes && *kind.shelf != *namespace::SHELF {
            // Watchers do not see the removal of the last finalizer itself: they see the deletion.
            self.store.replace_unseen(&kind.shelf, &key, proposed.clone());
            self.remove(kind, &key, write);
            self.tend(write);
            return answer(kind, &Arc::new(Object::new(proposed, self.store.version())), shown);
        }
        let object = self.store.put(&kind.shelf, &key, proposed);
        self.definition_written(kind, &object);
        self.plan_expiry(kind, &key, &object);
        let served = answer(kind, &object, shown)?;
        self.finish_namespace(&name_of_namespace(kind, &object), write);
        self.tend(write);
        Ok(served)
    }
}

/// The directory of a kind's objects in etcd: some have historical names.
fn folder_in_etcd(kind: &Kind) -> String {
    match (kind.group.as_str(), kind.plural.as_str()) {
        (group, plural) if kind.custom => format!("{group}/{plural}"),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    }
}

/// The name of a namespace that is being written; empty for all other kinds.
fn name_of_namespace(kind: &Kind, object: &Object) -> String {
    if *kind.shelf == *namespace::SHELF { object.name().to_owned() } else { String::new() }
}

fn other_name(name: &str, given: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({name})"
    ))
}

/// Restores metadata that the server alone decides.
fn keep_identity(current: &Value, proposed: &mut Value) {
    const KEPT: &[&str] = &[
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "selfLink",
    ];
    for member in KEPT {
        set_metadata(proposed, member, metadata_value(current, member));
    }
}

/// Restores the members of the part that is not being written.
fn keep_other_part(kind: &Kind, current: &Value, proposed: &mut Value, part: Part) {
    if !kind.has_status() {
        return;
    }
    let (Some(current), Some(members)) = (current.as_object(), proposed.as_object_mut()) else { return };
    match part {
        // The specification of a namespace has a subresource of its own.
        Part::Main if *kind.shelf == *namespace::SHELF => {
            put_back(members, current, "status");
            put_back(members, current, "spec");
        }
        Part::Main | Part::Finalize => put_back(members, current, "status"),
        Part::Status => {
            // Built-in kinds accept metadata in status updates, which service controllers rely on to set their
            // finalizer.
            let free: &[&str] = if kind.custom { &["status"] } else { &["status", "metadata"] };
            let managed = members.get("metadata").and_then(|metadata| metadata.get("managedFields")).cloned();
            let names: Vec<String> = members.keys().chain(current.keys()).cloned().collect();
            for name in names.iter().filter(|name| !free.contains(&name.as_str())) {
                put_back(members, current, name);
            }
            if let (true, Some(managed)) = (kind.custom, managed)
                && let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut)
            {
                metadata.insert("managedFields".to_owned(), managed);
            }
        }
    }
}

fn put_back(members: &mut Map<String, Value>, current: &Map<String, Value>, name: &str) {
    match current.get(name) {
        Some(value) => members.insert(name.to_owned(), value.clone()),
        None => members.remove(name),
    };
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
