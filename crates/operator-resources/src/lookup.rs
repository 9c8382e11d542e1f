//! What is known of other objects of the namespace.

use std::fmt;

use crate::reference::ObjectName;

/// What is known of other objects of the same namespace. `None` means: not yet.
pub trait Lookup {
    /// The ID in Azure of an object of the operator's kinds.
    fn id(&self, object: &ObjectName) -> Option<String>;

    /// The value of a key of a Secret, as text.
    fn secret(&self, name: &str, key: &str) -> Option<String>;

    /// All keys and values of a Secret, as text.
    fn whole_secret(&self, name: &str) -> Option<Vec<(String, String)>>;

    /// The version of a Secret, which differs once it has changed.
    fn secret_version(&self, _name: &str) -> Option<String> {
        None
    }

    /// The value of a key of a ConfigMap.
    fn config_map(&self, name: &str, key: &str) -> Option<String>;
}

/// What has to be known first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// The ID of an object.
    Object(ObjectName),
    /// A key of a Secret.
    Secret {
        /// The Secret's name.
        name: String,
        /// The key; absent if all are needed.
        key: Option<String>,
    },
    /// A key of a ConfigMap.
    ConfigMap {
        /// The ConfigMap's name.
        name: String,
        /// The key.
        key: String,
    },
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => write!(f, "{object}"),
            Self::Secret { name, key: Some(key) } => write!(f, "key {key} of Secret {name}"),
            Self::Secret { name, key: None } => write!(f, "Secret {name}"),
            Self::ConfigMap { name, key } => write!(f, "key {key} of ConfigMap {name}"),
        }
    }
}
