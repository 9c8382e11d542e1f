//! Terminal failures, which last until the declaration changes, with messages for the object's owner.

/// The reason of a terminal failure, in the one word that status and events use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The declaration is invalid: an unknown size, an image that does not exist.
    InvalidConfiguration,
    /// Azure failed to create it.
    CreateError,
    /// It existed, and is gone.
    UpdateError,
    /// It was changed in an unsupported way.
    UnsupportedChange,
}

impl Reason {
    /// The value of `status.failureReason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidConfiguration => "InvalidConfiguration",
            Self::CreateError => "CreateError",
            Self::UpdateError => "UpdateError",
            Self::UnsupportedChange => "UnsupportedChange",
        }
    }

    /// The reason of the event.
    pub fn event(self) -> &'static str {
        match self {
            Self::InvalidConfiguration => "SKUNotFound",
            Self::CreateError => "ReconcileError",
            Self::UpdateError => "VMDeleted",
            Self::UnsupportedChange => "UserAssignedIdentityMissing",
        }
    }
}

/// A failure that lasts until the declaration changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Terminal {
    /// The reason, in one word.
    pub reason: Reason,
    /// The cause, and what to change.
    pub message: String,
}

impl Terminal {
    /// A failed creation.
    pub fn create(message: impl Into<String>) -> Self {
        Self { reason: Reason::CreateError, message: message.into() }
    }

    /// An invalid declaration.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self { reason: Reason::InvalidConfiguration, message: message.into() }
    }
}
