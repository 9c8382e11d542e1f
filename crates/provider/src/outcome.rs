//! What the provider answers to the controllers: plain values, no Resource Manager in them.

use std::net::IpAddr;
use std::time::Duration;

use k8s::NodeAddress;
use planner::Notice;

/// Whether something is there. Unknown is not absent: it never deletes, taints or resizes anything
/// (design, rule 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existence<T> {
    /// It is there.
    Present(T),
    /// Azure said that it is not there.
    Absent,
    /// Nobody could say; the text tells why.
    Unknown(String),
}

impl<T> Existence<T> {
    /// The value, where it is known to be there.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }
}

/// A machine as a Node should describe it (`spec/nodes.md` 4.2 and 4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `azure://` and the machine's id with the resource group in lower case.
    pub provider_id: String,
    /// The machine's size, such as `Standard_D4s_v5`; empty where Azure does not say.
    pub instance_type: String,
    /// `<region>-<number>`, or the fault domain's number outside zones.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// Internal address, host name, external address, in this order.
    pub addresses: Vec<NodeAddress>,
    /// Whether the machine is stopped or deallocated and nothing is happening to it.
    pub shut_down: bool,
}

/// What a Service has after a successful [`Provider::ensure`](crate::Provider::ensure).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ensured {
    /// The addresses for the status: one a frontend, then additional ones.
    pub addresses: Vec<IpAddr>,
    /// What to tell the owner.
    pub notices: Vec<Notice>,
}

/// Why a Service could not be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Terminal: the same input gets the same answer, so it is not tried again until the Service changes.
    /// The text holds Azure's own words (or the planner's) and what to change.
    #[error("{message}")]
    Refused {
        /// What was refused, in whose words, and the remedy.
        message: String,
        /// What to tell the owner besides.
        notices: Vec<Notice>,
    },
    /// It may work later.
    #[error("{message}")]
    Retry {
        /// What went wrong.
        message: String,
        /// How long to wait, where Azure said so; otherwise the queue's back-off decides.
        after: Option<Duration>,
        /// What to tell the owner besides.
        notices: Vec<Notice>,
    },
}
