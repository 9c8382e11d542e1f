//! The administrative state of a pool's entry (10.2).

use azure_types::LoadBalancerBackendAddress;

/// The administrative state of an entry, which overrides its probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AdminState {
    /// The probe decides. Also the state of an entry for which Azure reports none.
    None,
    /// The member takes new connections; set by an operator.
    Up,
    /// The member takes no new connections; existing ones continue.
    Down,
}

impl AdminState {
    /// The state of an entry.
    pub fn of(entry: &LoadBalancerBackendAddress) -> Self {
        match entry.properties.as_ref().and_then(|properties| properties.admin_state.as_ref()) {
            Some(word) if word.is("Down") => Self::Down,
            Some(word) if word.is("Up") => Self::Up,
            _ => Self::None,
        }
    }

    /// Azure's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Up => "Up",
            Self::Down => "Down",
        }
    }

    /// The next state. `Down` on a node that does not drain is left over from an earlier drain; `was_up` says that an
    /// operator had set the entry to `Up` before. An operator's `Up` stays (10.7).
    pub(crate) fn next(self, drains: bool, was_up: bool) -> Self {
        match (self, drains) {
            (_, true) => Self::Down,
            (Self::Down, false) if was_up => Self::Up,
            (Self::Down, false) => Self::None,
            (state, false) => state,
        }
    }
}
