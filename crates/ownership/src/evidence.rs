//! Facts that prove who owns a resource.

use std::fmt;

use serde::Serialize;

/// A fact that a reader can check in Azure or in Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "by", rename_all = "camelCase")]
pub enum Evidence {
    /// A tag that only the owner's program writes.
    Tag {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// An entry in the metadata of a resource without tags, which only the owner's program writes.
    Metadata {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// The whole name is derived from the identity of the owner.
    Name {
        /// The name.
        name: String,
        /// What it is derived from, such as `the UID of the Service`.
        rule: &'static str,
    },
    /// It lies in a resource that the same owner provably owns.
    Within {
        /// The id of that resource.
        resource: String,
    },
    /// It refers to a resource that the same owner provably owns, or is referred to by it.
    Refers {
        /// The id of that resource.
        resource: String,
    },
    /// The owner recorded the resource before it created it.
    Recorded {
        /// The place of the record, such as an annotation's key.
        place: String,
    },
    /// The user named it in the configuration or in the object, and lets the program manage it.
    Declared {
        /// The key that names it.
        key: String,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag { key, value } => write!(f, "tag {key}={value}"),
            Self::Metadata { key, value } => write!(f, "metadata {key}={value}"),
            Self::Name { name, rule } => write!(f, "name {name} is made of {rule}"),
            Self::Within { resource } => write!(f, "lies in {resource}"),
            Self::Refers { resource } => write!(f, "tied to {resource}"),
            Self::Recorded { place } => write!(f, "recorded in {place}"),
            Self::Declared { key } => write!(f, "declared by {key}"),
        }
    }
}
