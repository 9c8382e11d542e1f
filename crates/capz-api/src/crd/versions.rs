//! The versions of a kind, and the warnings of those that are deprecated. All of them have the same schema.

use serde_json::{Value, json};

use super::kinds::{GROUP, VERSION};

/// The version in which the kinds with raw resources were introduced.
const FIRST: &str = "v1alpha1";

/// A served version.
pub(super) struct Version {
    name: &'static str,
    /// The warning to clients that use it, if it is deprecated.
    warning: Option<String>,
}

/// The versions of a kind. The first one is stored.
pub(super) fn of(kind: &str) -> Vec<Version> {
    let stored = Version { name: VERSION, warning: None };
    if let Some(rest) = kind.strip_prefix("AzureManaged") {
        let warning = format!(
            "{kind} is deprecated, like all AzureManaged kinds: move to AzureASOManaged{rest} of {GROUP}/{VERSION}"
        );
        return vec![Version { warning: Some(warning), ..stored }];
    }
    if kind.starts_with("AzureASOManaged") {
        let warning = format!(
            "{GROUP}/{FIRST} of {kind} is deprecated: use {GROUP}/{VERSION}, which has the same members"
        );
        return vec![stored, Version { name: FIRST, warning: Some(warning) }];
    }
    vec![stored]
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
