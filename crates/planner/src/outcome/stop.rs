//! Why planning of one Service cannot continue.

use super::refusal::Refusal;
use super::wait::Wait;

/// Why a sequence cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The Service cannot be served.
    Refused(Refusal),
    /// Azure's state is not complete yet.
    NotYet(Wait),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
