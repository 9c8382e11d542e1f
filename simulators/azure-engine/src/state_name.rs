//! What a type calls where its resources are in their life (`provisioningState`).

use super::store::State;

/// The names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateNames {
    /// It is being made; some say what they wait for, as in `ResolvingDns`.
    pub creating: &'static str,
    /// It is being changed.
    pub updating: &'static str,
    /// It is going.
    pub deleting: &'static str,
    /// It is ready.
    pub succeeded: &'static str,
    /// Its last operation failed.
    pub failed: &'static str,
    /// Its last operation was cancelled.
    pub canceled: &'static str,
    /// What is shown while an action runs: (action in any case, word), such as `("stop", "Stopping")`.
    pub during_actions: &'static [(&'static str, &'static str)],
}

impl StateNames {
    /// What most types call them.
    pub const USUAL: Self = Self {
        creating: "Creating",
        updating: "Updating",
        deleting: "Deleting",
        succeeded: "Succeeded",
        failed: "Failed",
        canceled: "Failed",
        during_actions: &[],
    };

    /// The name of a state.
    pub fn of(&self, state: State) -> &'static str {
        match state {
            State::Creating => self.creating,
            State::Updating => self.updating,
            State::Deleting => self.deleting,
            State::Succeeded => self.succeeded,
            State::Failed => self.failed,
            State::Canceled => self.canceled,
        }
    }

    /// What is shown while an action runs, where that is not the usual name.
    pub fn during(&self, action: &str) -> Option<&'static str> {
        let found = self.during_actions.iter().find(|(name, _)| name.eq_ignore_ascii_case(action));
        found.map(|(_, word)| *word)
    }
}
