//! What will not work until somebody changes what is declared, in words for this somebody.

/// Why something will not work, in the one word that status and events have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// What is declared cannot be made sense of: an unknown size, an image that does not exist.
    InvalidConfiguration,
    /// Azure would not make it so.
    CreateError,
    /// It was there, and is gone.
    UpdateError,
    /// It was changed in a way that nobody supports.
    UnsupportedChange,
}

impl Reason {
    /// As `status.failureReason` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidConfiguration => "InvalidConfiguration",
            Self::CreateError => "CreateError",
            Self::UpdateError => "UpdateError",
            Self::UnsupportedChange => "UnsupportedChange",
        }
    }

    /// The reason of the event that goes with it.
    pub fn event(self) -> &'static str {
        match self {
            Self::InvalidConfiguration => "SKUNotFound",
            Self::CreateError => "ReconcileError",
            Self::UpdateError => "VMDeleted",
            Self::UnsupportedChange => "UserAssignedIdentityMissing",
        }
    }
}

/// What will not work until somebody changes what is declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Terminal {
    /// Why, in one word.
    pub reason: Reason,
    /// Why, and what to change.
    pub message: String,
}

impl Terminal {
    /// Azure would not make it.
    pub fn create(message: impl Into<String>) -> Self {
        Self { reason: Reason::CreateError, message: message.into() }
    }

    /// What is declared makes no sense.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self { reason: Reason::InvalidConfiguration, message: message.into() }
    }
}
