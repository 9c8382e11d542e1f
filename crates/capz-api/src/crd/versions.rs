//! The versions of a kind. All of them have the same schema.

use serde_json::{Value, json};

use super::kinds::{GROUP, Kind, VERSION};

/// The version in which the kinds with raw resources began.
const FIRST: &str = "v1alpha1";

/// A served version.
pub(super) struct Version {
    name: &'static str,
    /// The warning to clients, if it is deprecated.
    warning: Option<String>,
}

/// The versions of a kind. The first one is stored.
pub(super) fn of(kind: &Kind) -> Vec<Version> {
    let mut versions = vec![Version { name: VERSION, warning: kind.deprecation() }];
    if kind.name.starts_with("AzureASOManaged") {
        let words = format!(
            "{FIRST} of {} is deprecated: write {GROUP}/{VERSION}, which has the same members",
            kind.name
        );
        versions.push(Version { name: FIRST, warning: Some(words) });
    }
    versions
}

impl Version {
    /// Its entry in a definition, without its schema.
    pub(super) fn value(&self) -> Value {
        let mut version = json!({ "name": self.name, "served": true, "storage": self.name == VERSION });
        if let Some(warning) = &self.warning {
            version["deprecated"] = json!(true);
            version["deprecationWarning"] = json!(warning);
        }
        version
    }
}
