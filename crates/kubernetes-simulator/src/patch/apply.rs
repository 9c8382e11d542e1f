//! Server-side apply: the applied configuration is the whole of what its manager wants. Fields it
//! names are set, fields it named before and no longer does are removed unless somebody else owns
//! them too, and fields that others own are not changed without `force`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::PatchError;
use super::field_set::{FieldSet, PathElement, compare, element_of, items};
use super::managed_fields::{self, Entry};
use super::schema::{self, List};

pub(super) fn apply(
    kind: &str,
    subresource: Option<&str>,
    current: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, PatchError> {
    let subresource = subresource.unwrap_or_default();
    let Value::Object(configuration) = applied else {
        return Err(PatchError::Invalid("an applied configuration must be an object".into()));
    };
    for member in ["apiVersion", "kind"] {
        if !configuration.get(member).is_some_and(Value::is_string) {
            return Err(PatchError::Invalid(format!("an applied configuration must have {member}")));
        }
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(PatchError::Invalid("metadata.managedFields must be nil".into()));
    }
    let wanted = own_part(kind, subresource, configuration, current.is_none());
    let named = managed_fields::ownable(&wanted);
    let named = FieldSet::of_applied(kind, &named)
        .map_err(|error| PatchError::Invalid(format!("failed to create typed patch object: {}", error.0)))?;

    let live = current.cloned().unwrap_or_else(|| json!({}));
    let mut entries = managed_fields::read(kind, &live);
    if current.is_some() && entries.is_empty() {
        entries.push(before_first_apply(kind, &live));
    }
    let position = entries.iter().position(|entry| entry.is(manager, "Apply", subresource));
    let previous = position.map(|at| entries.remove(at));
    let mut merged = merge(kind, "", Some(&live), &wanted);
    if let Some(previous) = &previous {
        let mut kept = named.clone();
        for entry in &entries {
            kept.union(&entry.fields);
        }
        let mut dropped = previous.fields.clone();
        dropped.subtract(&named);
        prune(kind, "", &mut merged, &dropped, &kept);
    }

    let difference = compare(kind, &managed_fields::ownable(&live), &managed_fields::ownable(&merged));
    let mut conflicts = vec![];
    for entry in &mut entries {
        entry.fields.subtract(&difference.removed);
        let contested = entry.fields.intersection(&difference.changed);
        if contested.is_empty() {
            continue;
        }
        if force {
            entry.fields.subtract(&contested);
        } else {
            let who = entry.describe();
            for path in contested.paths() {
                conflicts.push((who.clone(), format!("conflict with {who}: {path}")));
            }
        }
    }
    if !conflicts.is_empty() {
        conflicts.sort_by(|one, other| one.0.cmp(&other.0));
        return Err(PatchError::Conflict(conflicts.into_iter().map(|(_, conflict)| conflict).collect()));
    }

    let unchanged = previous.as_ref().is_some_and(|previous| previous.fields == named);
    let entry = Entry {
        manager: manager.to_owned(),
        operation: "Apply".into(),
        api_version: configuration.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
        subresource: subresource.to_owned(),
        time: previous.filter(|_| unchanged).and_then(|previous| previous.time),
        fields: named,
    };
    entries.insert(position.unwrap_or(entries.len()).min(entries.len()), entry);
    managed_fields::write(&mut merged, &entries);
    Ok(merged)
}

/// What of the configuration concerns the addressed part of the object: the status belongs to the
/// `status` sub-resource alone, where the kind has one.
fn own_part(kind: &str, subresource: &str, configuration: &Map<String, Value>, creates: bool) -> Value {
    let mut part = configuration.clone();
    match subresource {
        "" if has_status(kind) => {
            part.remove("status");
        }
        "status" => part.retain(|member, _| matches!(member.as_str(), "apiVersion" | "kind" | "status")),
        _ => {}
    }
    if let Some(Value::Object(metadata)) = part.get_mut("metadata") {
        metadata.remove("managedFields");
        if !creates {
            // Set by the server; a configuration may carry them as preconditions at most.
            for member in ["resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"] {
                metadata.remove(member);
            }
        }
    }
    Value::Object(part)
}

fn has_status(kind: &str) -> bool {
    !matches!(
        kind,
        "Secret" | "ConfigMap" | "Event" | "EndpointSlice" | "Endpoints" | "Lease" | "ServiceAccount"
    )
}

/// Whoever made an object without managed fields owns all of it, under this name.
fn before_first_apply(kind: &str, live: &Value) -> Entry {
    let nothing = json!({"metadata": {}, "spec": {}, "status": {}});
    Entry {
        manager: "before-first-apply".into(),
        operation: "Update".into(),
        api_version: live.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
        subresource: String::new(),
        time: None,
        fields: compare(kind, &nothing, &managed_fields::ownable(live)).changed,
    }
}

fn merge(kind: &str, path: &str, live: Option<&Value>, applied: &Value) -> Value {
    match applied {
        Value::Object(wanted) if !schema::atomic_map(kind, path) => {
            let mut merged = live.and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, value) in wanted {
                if value.is_null() {
                    merged.remove(name);
                } else {
                    let value = merge(kind, &schema::join(path, name), merged.get(name), value);
                    merged.insert(name.clone(), value);
                }
            }
            Value::Object(merged)
        }
        Value::Array(wanted) => {
            let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Value::Array(merge_list(kind, path, live, wanted))
        }
        other => other.clone(),
    }
}

/// Applied items in their order; each item that is the server's alone stays before the shared item
/// that it stood before.
fn merge_list(kind: &str, path: &str, live: &[Value], wanted: &[Value]) -> Vec<Value> {
    let rule = schema::list(kind, path);
    let (Ok(live_items), Ok(wanted_items), false) =
        (items(rule, live), items(rule, wanted), rule == List::Atomic)
    else {
        return wanted.to_vec();
    };
    let id = |item: &Value| element_of(rule, item).ok().flatten();
    let mut own = live.iter().enumerate().peekable();
    let places: BTreeMap<PathElement, usize> =
        live.iter().enumerate().filter_map(|(place, item)| Some((id(item)?, place))).collect();
    let mut merged = Vec::with_capacity(live.len() + wanted.len());
    for item in wanted {
        let Some(element) = id(item) else { continue };
        if let Some(place) = places.get(&element) {
            while let Some((_, left)) = own.next_if(|(at, _)| at < place) {
                if id(left).is_none_or(|element| !wanted_items.contains_key(&element)) {
                    merged.push(left.clone());
                }
            }
        }
        merged.push(match item {
            Value::Object(_) => merge(kind, path, live_items.get(&element).copied(), item),
            value => value.clone(),
        });
    }
    for (_, left) in own {
        if id(left).is_none_or(|element| !wanted_items.contains_key(&element)) {
            merged.push(left.clone());
        }
    }
    merged
}

/// Removes from `value` what is in `dropped` and not, itself or in part, in `kept`.
fn prune(kind: &str, path: &str, value: &mut Value, dropped: &FieldSet, kept: &FieldSet) {
    let empty = FieldSet::default();
    for (element, gone) in dropped.elements() {
        let keep = kept.at(element).unwrap_or(&empty);
        match (element, &mut *value) {
            (PathElement::Field(name), Value::Object(map)) => {
                let at = schema::join(path, name);
                if gone.is_member() && keep.is_empty() {
                    map.remove(name);
                } else if let Some(child) = map.get_mut(name) {
                    prune(kind, &at, child, gone, keep);
                    let emptied = match child {
                        Value::Object(map) => map.is_empty(),
                        Value::Array(list) => list.is_empty(),
                        _ => false,
                    };
                    if emptied && keep.is_empty() {
                        map.remove(name);
                    }
                }
            }
            (element, Value::Array(list)) => {
                let rule = schema::list(kind, path);
                let Some(place) = list
                    .iter()
                    .position(|item| element_of(rule, item).ok().flatten().as_ref() == Some(element))
                else {
                    continue;
                };
                // An item belongs to those who own it as such: whoever set one of its members alone
                // does not keep it.
                if gone.is_member() && !keep.is_member() {
                    list.remove(place);
                } else if let Some(item) = list.get_mut(place) {
                    let keys: Map<String, Value> = match (rule, &*item) {
                        (List::Keyed(keys), Value::Object(map)) => keys
                            .iter()
                            .filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone())))
                            .collect(),
                        _ => Map::new(),
                    };
                    prune(kind, path, item, gone, keep);
                    // An item without its keys would be another item.
                    if let Value::Object(map) = item {
                        map.extend(keys);
                    }
                }
            }
            _ => {}
        }
    }
}
