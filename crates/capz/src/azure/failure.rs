//! Why a reconcile has not reached its goals, and when it is retried.

use std::time::Duration;

use arm::Error;
use capz_planner::GoalError;
use capz_planner::terminal::Terminal;

use crate::kubernetes::patch::PatchError;

/// The wait after a throttled answer without a time.
const THROTTLED: Duration = Duration::from_secs(60);

/// Why goals were not reached.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// Temporary: retry after `after`.
    #[error("{words}")]
    Later {
        /// When to retry.
        after: Duration,
        /// The message.
        words: String,
    },
    /// Permanent until the spec or Azure changes.
    #[error("{0}")]
    Refused(String),
    /// Terminal: not retried before the spec changes.
    #[error("{0}")]
    Terminal(Terminal),
    /// The desired state has changed meanwhile.
    #[error("the declaration has changed: reconciling again")]
    Changed,
}

/// The reason of a failed deletion. It stays until the next attempt has reached Azure.
pub const DELETION_FAILED: &str = "DeletionFailed";

impl From<GoalError> for Failure {
    fn from(error: GoalError) -> Self {
        match error {
            GoalError::Terminal(terminal) => Self::Terminal(terminal),
            GoalError::NotNow(words) => Self::Refused(words),
        }
    }
}

impl Failure {
    /// The reason and message for a condition; `None` for failures that pass. Existing resources keep running while
    /// Azure cannot be read, so such a refusal is not reported for them.
    pub fn condition(&self, deleting: bool, is_there: bool) -> Option<(&'static str, &str)> {
        let reason = if deleting { DELETION_FAILED } else { "Failed" };
        match self {
            Self::Terminal(terminal) => Some((reason, &terminal.message)),
            Self::Refused(words) if deleting || !is_there => Some((reason, words)),
            _ => None,
        }
    }

    /// Classifies an error of Azure's.
    pub fn of(error: &Error, requeue: Duration) -> Self {
        if error.is_throttled() {
            let after = error.retry_after().unwrap_or(THROTTLED);
            return Self::Later { after, words: error.full_text() };
        }
        if error.is_transient() || error.is_conflict_in_progress() {
            let after = error.retry_after().unwrap_or(requeue);
            return Self::Later { after, words: error.full_text() };
        }
        Self::Refused(error.full_text())
    }

    /// Classifies a failed write: another writer was faster, or the API server has to be asked again.
    pub fn of_write(error: &PatchError, requeue: Duration) -> Self {
        if error.is_conflict() || error.is_not_found() {
            return Self::Changed;
        }
        Self::Later { after: requeue, words: error.to_string() }
    }
}
