//! What is exported of a resource: from where, and to what kind of object.

/// What keeps an exported value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Keeper {
    /// Its kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// Where an exported value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The answer to `POST <id>/<action>`.
    Call {
        /// The action.
        action: &'static str,
        /// The JSON pointer to the value in the answer.
        member: &'static str,
        /// Whether the value is encoded in Base64.
        is_base64: bool,
    },
    /// The document that Azure shows, at this JSON pointer.
    Member(&'static str),
    /// The ID of the resource's subscription.
    Subscription,
}
