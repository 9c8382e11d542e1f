//! What waits for a machine's list.

use volume_planner::attach::intent::{Attach, Detach};

/// A disk is wanted in the list, or out of it.
#[derive(Debug, Clone)]
pub(crate) enum DiskIntent {
    /// It is to be attached.
    Attach(Box<Attach>),
    /// It is to be detached.
    Detach {
        /// The number of the request in the order of arrival.
        arrival: u64,
        /// The disk, and whether Azure waits for the machine.
        detach: Detach,
    },
}

impl DiskIntent {
    /// The number of the request: a repeated request is another one, even if it leads to the same list.
    pub(super) fn arrival(&self) -> u64 {
        match self {
            Self::Attach(attach) => attach.arrival,
            Self::Detach { arrival, .. } => *arrival,
        }
    }

    pub(super) fn is_forced(&self) -> bool {
        matches!(self, Self::Detach { detach, .. } if detach.is_forced)
    }
}
