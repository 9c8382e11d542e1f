//! `metadata.managedFields`: the managers that last wrote each field.

use serde_json::{Map, Value, json};

use super::field_set::{FieldSet, PathElement};
use super::typed::{Difference, compare, reconcile};
use super::types::{PatchError, PatchTarget};
use crate::object::set_metadata;
use crate::wire;

/// Beyond this number, the oldest entries of ordinary writes are joined under this name.
const MAX_UPDATE_ENTRIES: usize = 10;
const JOINED: &str = "ancient-changes";

/// Metadata that only the server sets has no owner.
const SERVERS: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// One entry: the fields of one manager, by one operation, in one subresource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    /// `Apply` or `Update`.
    pub(super) operation: String,
    pub(super) api_version: String,
    /// Empty for the main resource.
    pub(super) subresource: String,
    /// The time of the last write; null for a manager whose writes never changed anything, and `None` for an entry that
    /// is being written.
    pub(super) time: Option<Value>,
    pub(super) fields: FieldSet,
}

impl Entry {
    /// Whether this is the entry of a manager and operation. A manager that applies has one entry for all versions.
    pub(super) fn is(&self, subject: &PatchTarget<'_>, manager: &str, operation: &str) -> bool {
        self.manager == manager
            && self.operation == operation
            && self.subresource == subject.subresource
            && (operation == "Apply" || self.api_version == subject.api_version)
    }

    /// The manager as conflict messages name it.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == "Update" {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// The entries of `object`, by its current schemas. Entries of versions that are no longer served are left out.
pub(super) fn read(subject: &PatchTarget<'_>, object: &Value) -> Vec<Entry> {
    let text = |entry: &Value, member: &str| {
        entry.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let documents = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut entries = Vec::new();
    for document in documents.into_iter().flatten() {
        let mut entry = Entry {
            manager: text(document, "manager"),
            operation: text(document, "operation"),
            api_version: text(document, "apiVersion"),
            subresource: text(document, "subresource"),
            time: Some(document.get("time").cloned().unwrap_or_default()),
            fields: document.get("fieldsV1").map(FieldSet::from_fields_v1).unwrap_or_default(),
        };
        let Some(schema) = subject.schema_at(&entry.api_version) else { continue };
        reconcile(schema, &mut entry.fields);
        entries.push(entry);
    }
    entries
}

/// Writes the non-empty entries into `object`, in the server's order; without any entry the member is removed.
pub(super) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    let time = |entry: &Entry| match &entry.time {
        None => "~".to_owned(),
        Some(time) => time.as_str().unwrap_or_default().to_owned(),
    };
    entries.sort_by_cached_key(|entry| {
        (
            entry.operation.clone(),
            time(entry),
            entry.manager.clone(),
            entry.api_version.clone(),
            entry.subresource.clone(),
        )
    });
    let list: Vec<Value> = entries.iter().map(document).collect();
    set_metadata(object, "managedFields", if list.is_empty() { Value::Null } else { Value::Array(list) });
}

fn document(entry: &Entry) -> Value {
    let mut document = json!({
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields.to_fields_v1(),
    });
    if let Value::Object(document) = &mut document {
        if !entry.subresource.is_empty() {
            document.insert("subresource".into(), Value::from(entry.subresource.as_str()));
        }
        if let Some(time) = &entry.time {
            document.insert("time".into(), time.clone());
        }
    }
    document
}

/// Removes from a set the fields that have no owner, and those that the addressed part does not write.
pub(super) fn keep_ownable(subject: &PatchTarget<'_>, fields: &mut FieldSet) {
    fields.retain_members(|name| !matches!(name, "apiVersion" | "kind") && subject.scope.contains(name));
    for (element, child) in fields.elements_mut() {
        if *element == PathElement::Field("metadata".to_owned()) {
            child.retain_members(|name| !SERVERS.contains(&name));
            child.disown();
        }
    }
    fields.compact();
}

/// The object with all members that its type always has.
fn whole(subject: &PatchTarget<'_>, object: &Value) -> Value {
    let mut object = object.clone();
    set_metadata(&mut object, "managedFields", Value::Null);
    if let Some(kind) = subject.structures {
        wire::complete(kind, &mut object);
    }
    object
}

/// The entries from which an ordinary write starts.
fn entries_before(subject: &PatchTarget<'_>, old: Option<&Value>, new: &Value) -> Option<Vec<Entry>> {
    let live = || old.map(|old| read(subject, old)).unwrap_or_default();
    let given = new.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = match given {
        Some(given) if subject.subresource.is_empty() => {
            let reset = given.iter().all(|entry| entry.as_object().is_none_or(Map::is_empty));
            if reset && given.len() < 2 { Vec::new() } else { read(subject, new) }
        }
        _ => live(),
    };
    // An empty record stays empty until the first apply.
    (old.is_none() || !entries.is_empty()).then_some(entries)
}

/// Gives the fields that an ordinary write (create, update, any patch but apply) changed to its `manager`, and removes
/// them from all other managers.
///
/// `old` is the object before (`None` for a creation) and `new` the one to be stored, with the `managedFields` that the
/// client sent: no value leaves the record as it is, an empty list clears it. Entries without a time get one later.
///
/// # Errors
/// An object cannot be converted to the version of an entry.
pub(crate) fn track_update(
    subject: &PatchTarget<'_>,
    old: Option<&Value>,
    new: &mut Value,
    manager: &str,
) -> Result<(), PatchError> {
    let Some(mut entries) = entries_before(subject, old, new) else {
        set_metadata(new, "managedFields", Value::Null);
        return Ok(());
    };
    let before = whole(subject, old.unwrap_or(&json!({ "metadata": {} })));
    let after = whole(subject, new);
    let mut difference = compare(subject.schema, &before, &after);
    keep_ownable(subject, &mut difference.changed);
    for entry in &mut entries {
        take(subject, entry, (&before, &after), &difference)?;
    }
    if !difference.changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is(subject, manager, "Update")) {
            Some(entry) => {
                entry.fields.union(&difference.changed);
                entry.time = None;
            }
            None => entries.push(Entry {
                manager: manager.to_owned(),
                operation: "Update".into(),
                api_version: subject.api_version.to_owned(),
                subresource: subject.subresource.to_owned(),
                time: None,
                fields: difference.changed,
            }),
        }
    }
    join_oldest(&mut entries);
    write(new, entries);
    Ok(())
}

/// Removes from an entry the fields that a write changed or removed. The difference is that in the writer's version.
fn take(
    subject: &PatchTarget<'_>,
    entry: &mut Entry,
    (before, after): (&Value, &Value),
    difference: &Difference,
) -> Result<(), PatchError> {
    let own;
    let difference = if entry.api_version == subject.api_version {
        difference
    } else {
        own = match difference_at(subject, &entry.api_version, before, after)? {
            Some(difference) => difference,
            None => return Ok(()),
        };
        &own
    };
    entry.fields.subtract(&difference.removed);
    entry.fields.subtract(&difference.changed);
    Ok(())
}

/// The difference between two objects in another version; `None` if that is no longer served.
pub(super) fn difference_at(
    subject: &PatchTarget<'_>,
    api_version: &str,
    before: &Value,
    after: &Value,
) -> Result<Option<Difference>, PatchError> {
    let (before, after) = (subject.at_version(before, api_version)?, subject.at_version(after, api_version)?);
    let (Some((before, schema)), Some((after, _))) = (before, after) else { return Ok(None) };
    let mut difference = compare(schema, &before, &after);
    keep_ownable(subject, &mut difference.changed);
    Ok(Some(difference))
}

/// Joins the oldest entries of ordinary writes in a version if there are too many.
fn join_oldest(entries: &mut Vec<Entry>) {
    let is_update = |entry: &Entry| entry.operation == "Update";
    while entries.iter().filter(|entry| is_update(entry)).count() > MAX_UPDATE_ENTRIES {
        let mut updates: Vec<usize> =
            entries.iter().enumerate().filter(|(_, entry)| is_update(entry)).map(|(at, _)| at).collect();
        let age = |at: &usize| {
            let entry = entries.get(*at);
            let time = entry.and_then(|entry| entry.time.as_ref()?.as_str()).unwrap_or("~");
            (time.to_owned(), entry.map(|entry| entry.manager.clone()))
        };
        updates.sort_by_cached_key(age);
        let version = |at: usize| entries.get(at).map(|entry| entry.api_version.clone());
        let pair = updates.iter().enumerate().find_map(|(index, second)| {
            let first = updates.iter().take(index).find(|first| version(**first) == version(*second))?;
            Some((*first, *second))
        });
        let Some((first, second)) = pair else { return };
        let newer = entries.remove(second);
        let first = if second < first { first - 1 } else { first };
        if let Some(entry) = entries.get_mut(first) {
            entry.fields.union(&newer.fields);
            entry.manager = JOINED.to_owned();
            entry.subresource.clear();
            entry.time = newer.time;
        }
    }
}
