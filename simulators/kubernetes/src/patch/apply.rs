//! Server-side apply: the applied configuration is the complete intent of its manager. Fields in it are set, fields
//! that it contained before and no longer does are removed unless another manager owns them too, and fields that other
//! managers own are not changed without `force`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field_set::FieldSet;
use super::managed_fields::{self, Entry, difference_at, keep_ownable};
use super::typed::{check, compare, empty, fields, merge, remove, with_named_members};
use super::types::{PatchError, PatchTarget};
use crate::object::go::group_version_kind;
use crate::object::{metadata, metadata_value, set_metadata};

/// The manager of all fields that existed before the first apply.
const BEFORE: &str = "before-first-apply";

pub(super) fn apply(
    subject: &PatchTarget<'_>,
    current: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, PatchError> {
    check_configuration(subject, applied)?;
    let applied = &in_scope(subject, applied);
    let live = current.cloned().unwrap_or_else(|| json!({ "metadata": {} }));
    let mut entries = managed_fields::read(subject, &live);
    let mut bare = live.clone();
    set_metadata(&mut bare, "managedFields", Value::Null);
    if current.is_some() && entries.is_empty() {
        let mut before = bare.clone();
        managed_fields::track_update(subject, None, &mut before, BEFORE)?;
        entries = managed_fields::read(subject, &before);
        entries.iter_mut().for_each(|entry| entry.time = None);
    }
    let position = entries.iter().position(|entry| entry.is(subject, manager, "Apply"));
    let previous = position.map(|at| entries.remove(at));
    let mut named = fields(subject.schema, applied);
    let mut merged = merge(subject.schema, Some(&bare), applied);
    if let Some(previous) = previous.as_ref().filter(|previous| !previous.fields.is_empty()) {
        merged = prune(subject, &merged, previous, &entries, &named)?;
    }
    keep_ownable(subject, &mut named);
    keep_system_metadata(&bare, &mut merged);
    let changes = settle_owners(subject, (&bare, &merged), &mut entries, force)?;

    entries.push(Entry {
        manager: manager.to_owned(),
        operation: "Apply".into(),
        api_version: subject.api_version.to_owned(),
        subresource: subject.subresource.to_owned(),
        // The time of the manager's latest change.
        time: if changes {
            None
        } else {
            Some(previous.and_then(|previous| previous.time).unwrap_or_default())
        },
        fields: named,
    });
    managed_fields::write(&mut merged, entries);
    Ok(merged)
}

/// The part of the configuration that the addressed part of the object may contain.
fn in_scope(subject: &PatchTarget<'_>, applied: &Value) -> Value {
    let mut applied = applied.clone();
    if let Value::Object(members) = &mut applied {
        let identity = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata");
        members.retain(|name, _| identity(name) || subject.scope.contains(name));
    }
    applied
}

/// Validates a configuration.
fn check_configuration(subject: &PatchTarget<'_>, applied: &Value) -> Result<(), PatchError> {
    let Value::Object(configuration) = applied else {
        return Err(PatchError::Invalid("an applied configuration must be an object".into()));
    };
    let text = |member: &str| configuration.get(member).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != subject.api_version || kind != subject.kind {
        let given = group_version_kind(applied);
        return Err(PatchError::Invalid(format!("invalid object type: {given}")));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(PatchError::Invalid("metadata.managedFields must be nil".into()));
    }
    let errors = check(subject.schema, applied);
    let errors = match errors.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let namespace = metadata(applied, "namespace");
    let named = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    Err(PatchError::Untyped(format!(
        "failed to create typed patch object ({named}{}; {}): {errors}",
        metadata(applied, "name"),
        group_version_kind(applied)
    )))
}

/// Restores metadata that a configuration cannot change: it may carry the version and the UID as preconditions only.
fn keep_system_metadata(live: &Value, merged: &mut Value) {
    for member in ["creationTimestamp", "deletionTimestamp", "generation", "selfLink"] {
        set_metadata(merged, member, metadata_value(live, member));
    }
}

/// Removes from `merged` the fields that its manager applied before and no longer does, unless they are still owned: by
/// another manager, or by the same one through another part of its configuration.
fn prune(
    subject: &PatchTarget<'_>,
    merged: &Value,
    previous: &Entry,
    others: &[Entry],
    named: &FieldSet,
) -> Result<Value, PatchError> {
    let Some((converted, schema)) = subject.at_version(merged, &previous.api_version)? else {
        return Ok(merged.clone());
    };
    let converted = converted.into_owned();
    let nothing = || json!({});
    let last = with_named_members(schema, &previous.fields);
    let pruned = empty(schema, &converted, &last).unwrap_or_else(nothing);
    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    owned.entry(subject.api_version).or_default().union(named);
    for entry in others {
        owned.entry(&entry.api_version).or_default().union(&entry.fields);
    }
    let mut pruned = pruned;
    for (api_version, managed) in owned {
        let all = subject.at_version(&converted, api_version)?;
        let kept = subject.at_version(&pruned, api_version)?;
        let (Some((all, schema)), Some((kept, _))) = (all, kept) else { continue };
        let mut gone = with_named_members(schema, &fields(schema, &all));
        let mut stays = with_named_members(schema, &fields(schema, &kept));
        stays.union(&with_named_members(schema, &managed));
        gone.subtract(&stays);
        let kept = empty(schema, &all, &gone).unwrap_or_else(nothing);
        pruned = match subject.at_version(&kept, &previous.api_version)? {
            Some((kept, _)) => kept.into_owned(),
            None => kept,
        };
    }
    // Fields that the manager never applied stay, too: they have no owner, or belong to an ordinary write.
    let mut gone = with_named_members(schema, &fields(schema, &converted));
    gone.subtract(&with_named_members(schema, &fields(schema, &pruned)));
    let pruned = remove(schema, &converted, &gone.intersection(&last)).unwrap_or_else(nothing);
    Ok(match subject.at_version(&pruned, subject.api_version)? {
        Some((pruned, _)) => pruned.into_owned(),
        None => pruned,
    })
}

/// Takes the fields that this write changes and removes from other managers. Returns whether there are any.
///
/// # Errors
/// The conflicts, if it changes fields of other managers without `force`.
fn settle_owners(
    subject: &PatchTarget<'_>,
    (live, merged): (&Value, &Value),
    entries: &mut Vec<Entry>,
    force: bool,
) -> Result<bool, PatchError> {
    let mut conflicts = vec![];
    let mut own = compare(subject.schema, live, merged);
    keep_ownable(subject, &mut own.changed);
    let changes = !own.changed.is_empty() || !own.removed.is_empty();
    let mut kept = Vec::with_capacity(entries.len());
    for mut entry in entries.drain(..) {
        let other;
        let difference = if entry.api_version == subject.api_version {
            &own
        } else {
            match difference_at(subject, &entry.api_version, live, merged)? {
                Some(difference) => other = difference,
                None => continue,
            }
            &other
        };
        let contested = entry.fields.intersection(&difference.changed);
        if !contested.is_empty() && !force {
            let who = entry.describe();
            for path in contested.paths() {
                conflicts.push((who.clone(), format!("conflict with {who}: {path}")));
            }
        }
        entry.fields.subtract(&contested);
        entry.fields.subtract(&difference.removed);
        kept.push(entry);
    }
    *entries = kept;
    if conflicts.is_empty() {
        return Ok(changes);
    }
    conflicts.sort_by(|one, other| one.0.cmp(&other.0));
    Err(PatchError::Conflict(conflicts.into_iter().map(|(_, conflict)| conflict).collect()))
}
