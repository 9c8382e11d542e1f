//! CustomResourceDefinitions: accepted as they come, established at once. Custom resources are stored
//! as they are, without pruning, defaulting or validation by the schema.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{DeleteOptions, State, Write, rfc3339_seconds};
use crate::object::{Object, list_at, string_at};
use crate::registry::Kind;

pub(super) const SHELF: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Sets the status of a new definition: names accepted, established.
pub(super) fn establish(definition: &mut Value, now: Timestamp) {
    let time = rfc3339_seconds(now);
    let mut names =
        crate::object::value_at(definition, &["spec", "names"]).cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = names.as_object_mut() {
        let kind = members.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        members.entry("singular").or_insert_with(|| Value::from(kind.to_lowercase()));
        members.entry("listKind").or_insert_with(|| Value::from(format!("{kind}List")));
    }
    let stored: Vec<&str> = list_at(definition, &["spec", "versions"])
        .iter()
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| string_at(version, &["name"]))
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time });
    let status = json!({
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
    if let Some(members) = definition.as_object_mut() {
        if let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("names".to_owned(), names);
        }
        members.insert("status".to_owned(), status);
    }
}

impl State {
    /// Serves what a stored definition defines.
    pub(super) fn definition_written(&mut self, kind: &Kind, definition: &Object) {
        if *kind.shelf == *SHELF {
            self.registry.register_definition(definition);
        }
    }

    /// Removes all objects of a definition that is gone, and stops serving them.
    pub(super) fn definition_removed(&mut self, kind: &Kind, definition: &Object, write: &Write<'_>) {
        if *kind.shelf != *SHELF {
            return;
        }
        if let Some(custom) = self.registry.by_shelf(definition.name()) {
            for key in self.store.keys(&custom.shelf) {
                let Some(object) = self.store.get(&custom.shelf, &key).cloned() else { continue };
                // An object may have gone with its owner meanwhile; gone is what is wanted.
                let _ =
                    self.delete(&custom, object.namespace(), object.name(), &DeleteOptions::default(), write);
            }
        }
        self.registry.forget_definition(definition);
    }
}
