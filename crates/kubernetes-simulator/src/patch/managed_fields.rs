//! `metadata.managedFields`: who wrote which fields last.

use serde_json::{Map, Value, json};

use super::field_set::{FieldSet, compare};

/// One entry: the fields of one manager, by one kind of write, in one sub-resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: String,
    /// `Apply` or `Update`.
    pub(super) operation: String,
    pub(super) api_version: String,
    /// Empty for the main resource.
    pub(super) subresource: String,
    pub(super) time: Option<Value>,
    pub(super) fields: FieldSet,
}

impl Entry {
    pub(super) fn is(&self, manager: &str, operation: &str, subresource: &str) -> bool {
        self.manager == manager && self.operation == operation && self.subresource == subresource
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

/// The entries of `object`.
pub(super) fn read(kind: &str, object: &Value) -> Vec<Entry> {
    let text = |entry: &Value, member: &str| {
        entry.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|entry| Entry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: entry.get("time").cloned(),
            fields: {
                let mut fields = entry.get("fieldsV1").map(FieldSet::from_fields_v1).unwrap_or_default();
                fields.expand(kind, object);
                fields
            },
        })
        .collect()
}

/// Writes the entries that own something into `object`; none at all removes the member.
pub(super) fn write(object: &mut Value, entries: &[Entry]) {
    let list: Vec<Value> = entries
        .iter()
        .filter(|entry| !entry.fields.is_empty())
        .map(|entry| {
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
        })
        .collect();
    let Value::Object(object) = object else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(metadata) = metadata else { return };
    if list.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".into(), Value::Array(list));
    }
}

/// The parts of an object that managers can own.
pub(super) fn ownable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(map) = &mut object {
        map.remove("apiVersion");
        map.remove("kind");
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            for name in [
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
            ] {
                metadata.remove(name);
            }
            // Not stored when empty, so nobody's.
            metadata.retain(|_, value| match value {
                Value::Object(map) => !map.is_empty(),
                Value::Array(list) => !list.is_empty(),
                other => !other.is_null(),
            });
            if metadata.is_empty() {
                map.remove("metadata");
            }
        }
    }
    object
}

/// Gives the fields that an ordinary write (create, update, any patch but apply) changed to its
/// `manager`, and takes them from everybody else.
///
/// `old` is the object before (`None` for a creation) and `new` the one to be stored, whose
/// `managedFields` are set from those of `old`. Times are left out unless the caller sets them.
pub fn track_update(
    kind: &str,
    subresource: Option<&str>,
    old: Option<&Value>,
    new: &mut Value,
    manager: &str,
) {
    let subresource = subresource.unwrap_or_default();
    // The sections of an object are always there; only what is in them is somebody's.
    let sections = |mut object: Value| {
        if let Value::Object(members) = &mut object {
            for section in ["metadata", "spec", "status"] {
                members.entry(section).or_insert_with(|| json!({}));
            }
        }
        object
    };
    let before = sections(old.map_or_else(|| json!({}), ownable));
    let mut entries = old.map(|old| read(kind, old)).unwrap_or_default();
    let difference = compare(kind, &before, &sections(ownable(new)));
    if !difference.changed.is_empty() || !difference.removed.is_empty() {
        for entry in &mut entries {
            entry.fields.subtract(&difference.removed);
            if !entry.is(manager, "Update", subresource) {
                entry.fields.subtract(&difference.changed);
            }
        }
    }
    if !difference.changed.is_empty() {
        let api_version = new.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        match entries.iter_mut().find(|entry| entry.is(manager, "Update", subresource)) {
            Some(entry) => {
                entry.fields.union(&difference.changed);
                entry.api_version = api_version;
                entry.time = None;
            }
            None => entries.push(Entry {
                manager: manager.to_owned(),
                operation: "Update".into(),
                api_version,
                subresource: subresource.to_owned(),
                time: None,
                fields: difference.changed,
            }),
        }
    }
    write(new, &entries);
}
