//! Why an object or a patch is refused.

/// Why an object or a patch cannot be read: with the path, the value and the remedy. It stays until the object changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A member has a value that cannot be read.
    #[error("{path} is {value}: {remedy}")]
    Value {
        /// Its path in the object.
        path: String,
        /// Its value, or the type of a value that may be secret.
        value: String,
        /// What to write.
        remedy: String,
    },
    /// A member is missing.
    #[error("{path} is missing: {remedy}")]
    Missing {
        /// Its path in the object.
        path: String,
        /// What to write.
        remedy: String,
    },
    /// A kind is not served.
    #[error(
        "{path} is {kind} of {group}, which is not served without Azure Service Operator: use one of {served}, or \
         leave the object to the operator"
    )]
    Kind {
        /// Where the object says so.
        path: String,
        /// Its API group.
        group: String,
        /// Its kind.
        kind: String,
        /// The kinds that are served.
        served: String,
    },
    /// Two members state the same member of Azure's document.
    #[error("{first} and {second} state the same: remove one of them")]
    Twice {
        /// The path of the one.
        first: String,
        /// The path of the other.
        second: String,
    },
    /// An owner or a reference leads back to the object itself.
    #[error("{path} leads back to {object}: an object cannot lie in itself")]
    Circle {
        /// The path of the reference.
        path: String,
        /// The object.
        object: String,
    },
}

impl Refusal {
    pub(crate) fn value(path: &str, value: impl ToString, remedy: impl Into<String>) -> Self {
        Self::Value { path: path.to_owned(), value: value.to_string(), remedy: remedy.into() }
    }

    pub(crate) fn missing(path: &str, remedy: impl Into<String>) -> Self {
        Self::Missing { path: path.to_owned(), remedy: remedy.into() }
    }
}
