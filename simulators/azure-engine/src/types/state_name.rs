//! A type's names of the states of its resources (`provisioningState`).

use crate::store::State;

/// The names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateNames {
    /// It is being created; some types name the step, as in `ResolvingDns`.
    pub creating: &'static str,
    /// It is being changed.
    pub updating: &'static str,
    /// It is being deleted.
    pub deleting: &'static str,
    /// It is ready.
    pub succeeded: &'static str,
    /// Its last operation failed.
    pub failed: &'static str,
    /// Its last operation was cancelled.
    pub canceled: &'static str,
    /// Names during actions: (action in any case, name), such as `("stop", "Stopping")`.
    pub during_actions: &'static [(&'static str, &'static str)],
}

impl StateNames {
    /// The names of most types.
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

    /// The name during an action, if it is not the usual one.
    pub fn during(&self, action: &str) -> Option<&'static str> {
        let found = self.during_actions.iter().find(|(name, _)| name.eq_ignore_ascii_case(action));
        found.map(|(_, word)| *word)
    }
}
