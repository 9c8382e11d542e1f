//! A valid object of each built-in kind, for tests.

use serde_json::{Value, json};

use super::builtin::BuiltinKind;
use super::table::KINDS;

/// A valid object of a built-in kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The object, with its type and a name.
    pub object: Value,
    /// Name of the kind in paths.
    pub plural: &'static str,
    /// Whether the object belongs into a namespace.
    pub namespaced: bool,
}

impl Example {
    fn of(kind: &BuiltinKind) -> Self {
        // A test reads all of them.
        let mut object: Value = serde_json::from_str(kind.example).unwrap_or_default();
        let api_version = match kind.group {
            "" => kind.version.to_owned(),
            group => format!("{group}/{}", kind.version),
        };
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.kind.into();
        if object.get("metadata").is_none() {
            object["metadata"] = json!({ "name": "example" });
        }
        Self { object, plural: kind.plural, namespaced: kind.namespaced }
    }

    /// The path of the kind's objects in a namespace.
    #[must_use]
    pub fn path(&self, namespace: &str) -> String {
        let api_version = self.object["apiVersion"].as_str().unwrap_or_default();
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let place = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        format!("{root}/{api_version}{place}/{}", self.plural)
    }
}

/// A valid object of each kind that is stored, in each of its versions.
pub fn examples() -> impl Iterator<Item = Example> {
    KINDS.iter().filter(|kind| !kind.is_review).map(|kind| Example::of(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_and_every_default_is_json() {
        for kind in KINDS {
            assert!(serde_json::from_str::<Value>(kind.example).is_ok(), "{}", kind.kind);
            let shared = kind.shared_defaults.iter().flat_map(|(_, rows)| rows.iter());
            for (path, value) in kind.defaults.iter().chain(shared) {
                assert!(serde_json::from_str::<Value>(value).is_ok(), "{}: {path}", kind.kind);
            }
        }
    }
}
