//! The life of a CustomResourceDefinition: accepted names, served kinds, and the deletion of its objects
//! (kube-apiserver's controllers for definitions do this later, here it happens at once).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::object::{
    Object, finalizers, list_at, metadata, rfc3339_seconds, set_finalizers, string_at, value_at,
};
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::delete::DeleteOptions;
use crate::verbs::lifecycle::finalizer::CLEANUP;
use crate::verbs::shelves::DEFINITIONS;
use crate::verbs::state::{State, Write};

/// Sets a condition; the words are its reason and its message. `lastTransitionTime` is the time of the last change of
/// its status.
fn set_condition(definition: &mut Value, kind: &str, holds: bool, words: (&str, &str), now: Timestamp) {
    let status = if holds { "True" } else { "False" };
    let same = |other: &Value| string_at(other, &["type"]) == Some(kind);
    let mut conditions = list_at(definition, &["status", "conditions"]).to_vec();
    let before = conditions.iter().find(|other| same(other) && other["status"] == status);
    let since =
        before.map_or_else(|| Value::from(rfc3339_seconds(now)), |other| other["lastTransitionTime"].clone());
    let (reason, message) = words;
    let new = json!({ "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since });
    match conditions.iter_mut().find(|other| same(other)) {
        Some(other) => *other = new,
        None => conditions.push(new),
    }
    set_status(definition, "conditions", Value::Array(conditions));
}

fn set_status(definition: &mut Value, member: &str, value: Value) {
    let Some(members) = definition.as_object_mut() else { return };
    if let Some(status) = members.entry("status").or_insert_with(|| json!({})).as_object_mut() {
        status.insert(member.to_owned(), value);
    }
}

fn is_true(definition: &Value, condition: &str) -> bool {
    list_at(definition, &["status", "conditions"]).iter().any(|other| {
        string_at(other, &["type"]) == Some(condition) && string_at(other, &["status"]) == Some("True")
    })
}

/// Adds the current storage version to `storedVersions`.
fn note_stored_version(definition: &mut Value) {
    let storage = list_at(definition, &["spec", "versions"])
        .iter()
        .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .and_then(|version| string_at(version, &["name"]))
        .map(Value::from);
    let mut stored = list_at(definition, &["status", "storedVersions"]).to_vec();
    stored.extend(storage.filter(|storage| !stored.contains(storage)));
    set_status(definition, "storedVersions", Value::Array(stored));
}

/// The names of other definitions in a group: of resources, and of kinds.
#[derive(Debug, Default)]
struct TakenNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Accepts the names that no other definition has. Returns whether all of them are accepted.
fn grant_names(definition: &mut Value, taken: &TakenNames, now: Timestamp) {
    let wanted = value_at(definition, &["spec", "names"]).cloned().unwrap_or_default();
    let had = value_at(definition, &["status", "acceptedNames"]).cloned().unwrap_or_else(|| json!({}));
    let mut granted: Map<String, Value> = had.as_object().cloned().unwrap_or_default();
    let mut conflict: Option<(&str, String)> = None;
    let names = [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ];
    for (member, reason, taken) in names {
        let Some(name) = wanted.get(member) else {
            granted.remove(member);
            continue;
        };
        let had: Vec<&str> = texts(had.get(member));
        let in_use: Vec<String> = texts(Some(name))
            .into_iter()
            .filter(|name| !had.contains(name) && taken.contains(*name))
            .map(|name| format!("{name:?} is already in use"))
            .collect();
        match in_use.as_slice() {
            [] => drop(granted.insert(member.to_owned(), name.clone())),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    match wanted.get("categories") {
        Some(categories) => drop(granted.insert("categories".to_owned(), categories.clone())),
        None => drop(granted.remove("categories")),
    }
    for member in ["kind", "plural"] {
        granted.entry(member).or_insert_with(|| "".into());
    }
    set_status(definition, "acceptedNames", Value::Object(granted));
    let (names, established) = match &conflict {
        Some((reason, message)) => {
            ((*reason, message.as_str()), ("NotAccepted", "not all names are accepted"))
        }
        None => (
            ("NoConflicts", "no conflicts found"),
            ("InitialNamesAccepted", "the initial names have been accepted"),
        ),
    };
    set_condition(definition, "NamesAccepted", conflict.is_none(), names, now);
    if !is_true(definition, "Established") {
        set_condition(definition, "Established", conflict.is_none(), established, now);
    }
}

/// A text, or all texts of a list.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

impl State {
    /// Completes the status of a definition before it is stored.
    pub(crate) fn settle_definition(&self, kind: &Kind, definition: &mut Value, now: Timestamp) {
        if *kind.shelf != *DEFINITIONS {
            return;
        }
        note_stored_version(definition);
        let taken = self.taken_names(metadata(definition, "name"), definition);
        grant_names(definition, &taken, now);
    }

    fn taken_names(&self, name: &str, definition: &Value) -> TakenNames {
        let group = string_at(definition, &["spec", "group"]);
        let mut taken = TakenNames::default();
        for key in self.store.keys(DEFINITIONS) {
            let Some(other) = self.store.get(DEFINITIONS, &key) else { continue };
            if other.name() == name || string_at(&other, &["spec", "group"]) != group {
                continue;
            }
            let accepted = value_at(&other, &["status", "acceptedNames"]);
            let of = |member: &str| texts(accepted.and_then(|names| names.get(member)));
            let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
            for member in ["plural", "singular", "shortNames"] {
                taken.resources.extend(owned(of(member)));
            }
            for member in ["kind", "listKind"] {
                taken.kinds.extend(owned(of(member)));
            }
        }
        taken
    }

    /// Serves the kinds of a stored definition, once its names are accepted.
    pub(crate) fn definition_written(&mut self, kind: &Kind, definition: &Object) {
        if *kind.shelf == *DEFINITIONS
            && is_true(definition, "Established")
            && self.registry.register_definition(definition)
        {
            // Watches of these objects restart.
            self.store.wake(definition.name());
        }
    }

    /// Refuses new objects of a definition that is being deleted.
    pub(crate) fn check_definition(&self, kind: &Kind, object: &Value) -> Result<(), ApiError> {
        let definition = if kind.is_custom() { self.store.get(DEFINITIONS, &kind.shelf) } else { None };
        if definition.is_some_and(|definition| definition.is_terminating()) {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(kind, metadata(object, "name"), message));
        }
        Ok(())
    }

    /// Starts the deletion of a marked definition: its objects are deleted, and the definition goes with the last of
    /// them.
    pub(crate) fn clean_definition(&mut self, kind: &Kind, name: &str, write: &Write<'_>) {
        let Some(definition) = self.store.get(DEFINITIONS, name).filter(|found| found.is_terminating())
        else {
            return;
        };
        let mut marked = definition.value().clone();
        let words = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
        set_condition(&mut marked, "Terminating", true, words, write.now);
        self.store.put(&kind.shelf, name, marked);
        if let Some(custom) = self.registry.by_shelf(name) {
            for key in self.store.keys(&custom.shelf) {
                let Some(object) = self.store.get(&custom.shelf, &key) else { continue };
                // The object may have been deleted with its owner meanwhile, which is fine.
                let _ =
                    self.delete(&custom, object.namespace(), object.name(), &DeleteOptions::default(), write);
            }
        }
        self.finish_definition(name, write);
    }

    /// Removes a definition that is being deleted once it has no objects left.
    pub(crate) fn finish_definition(&mut self, name: &str, write: &Write<'_>) {
        let Some(definition) = self.store.get(DEFINITIONS, name) else { return };
        let mut held = finalizers(&definition);
        let waits = definition.is_terminating() && held.iter().any(|finalizer| finalizer == CLEANUP);
        if !waits || !self.store.keys(name).is_empty() {
            return;
        }
        let Some(kind) = self.registry.by_shelf(DEFINITIONS) else { return };
        let mut done = definition.value().clone();
        held.retain(|finalizer| finalizer != CLEANUP);
        set_finalizers(&mut done, &held);
        if held.is_empty() {
            self.store.replace_unseen(&kind.shelf, name, done);
            self.remove(&kind, name, write);
        } else {
            let words = ("InstanceDeletionCompleted", "removed all instances");
            set_condition(&mut done, "Terminating", false, words, write.now);
            self.store.put(&kind.shelf, name, done);
        }
    }

    /// Stops serving the kinds of a deleted definition, and releases its names for other definitions.
    pub(crate) fn definition_removed(&mut self, kind: &Kind, definition: &Object, write: &Write<'_>) {
        if kind.is_custom() {
            self.finish_definition(&kind.shelf, write);
        }
        if *kind.shelf != *DEFINITIONS {
            return;
        }
        self.registry.forget_definition(definition);
        self.store.wake(definition.name());
        let group = string_at(definition, &["spec", "group"]);
        for key in self.store.keys(DEFINITIONS) {
            let Some(other) = self.store.get(DEFINITIONS, &key) else { continue };
            if string_at(&other, &["spec", "group"]) != group || is_true(&other, "NamesAccepted") {
                continue;
            }
            let mut value = other.value().clone();
            self.settle_definition(kind, &mut value, write.now);
            let other = self.store.put(&kind.shelf, &key, value);
            self.definition_written(kind, &other);
        }
    }
}
