//! The parts of an object, each of which a write changes alone.

use serde_json::{Map, Value};

use crate::object::{metadata_value, set_metadata};
use crate::registry::Kind;
use crate::verbs::shelves;

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
    /// The part that a subresource is.
    pub(crate) fn of(subresource: &str) -> Self {
        match subresource {
            "status" => Self::Status,
            "finalize" => Self::Finalize,
            _ => Self::Main,
        }
    }

    /// Name of the subresource; empty for the main one.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Finalize => "finalize",
        }
    }
}

/// Restores metadata that the server alone decides.
pub(crate) fn keep_identity(current: &Value, proposed: &mut Value) {
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
pub(crate) fn keep_other_part(kind: &Kind, current: &Value, proposed: &mut Value, part: Part) {
    if !kind.has_status() {
        return;
    }
    let (Some(current), Some(members)) = (current.as_object(), proposed.as_object_mut()) else { return };
    match part {
        // The specification of a namespace has a subresource of its own.
        Part::Main if *kind.shelf == *shelves::NAMESPACES => {
            put_back(members, current, "status");
            put_back(members, current, "spec");
        }
        Part::Main | Part::Finalize => put_back(members, current, "status"),
        Part::Status => {
            // Built-in kinds accept metadata in status updates, which service controllers rely on to set their
            // finalizer.
            let free: &[&str] = if kind.is_custom() { &["status"] } else { &["status", "metadata"] };
            let managed = members.get("metadata").and_then(|metadata| metadata.get("managedFields")).cloned();
            let names: Vec<String> = members.keys().chain(current.keys()).cloned().collect();
            for name in names.iter().filter(|name| !free.contains(&name.as_str())) {
                put_back(members, current, name);
            }
            if let (true, Some(managed)) = (kind.is_custom(), managed)
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
