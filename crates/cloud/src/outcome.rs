//! A cloud's answers to the controllers: plain values without documents of any cloud.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use k8s::{Notice, ObjectKey};
use logical_time::LogicalTime;

/// Whether something exists. Unknown is not absent: it never deletes, taints or resizes anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existence<T> {
    /// It exists.
    Present(T),
    /// The cloud said that it does not exist.
    Absent(Proof),
    /// It could not be determined; the text says why.
    Unknown(String),
}

impl<T> Existence<T> {
    /// The value, if it is known to exist.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent(_) | Self::Unknown(_) => None,
        }
    }
}

/// The machine that the cloud was asked about, its answer, and when. A deletion because of an absence logs this
/// evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The machine's id as the cloud spells it.
    pub machine: String,
    /// The cloud's answer, verbatim.
    pub answer: String,
    /// When the cloud was asked.
    pub read: LogicalTime,
}

/// The result of a successful [`LoadBalancers::ensure`](crate::LoadBalancers::ensure).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ensured {
    /// The addresses for the status: one per frontend, then additional ones.
    pub addresses: Vec<IpAddr>,
    /// Notices for the owner.
    pub notices: Vec<Notice>,
}

/// Why a Service could not be provisioned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Terminal: the same input is refused again, so there is no retry until the Service changes. The text holds the
    /// cloud's own words (or the planner's) and what to change.
    #[error("{message}")]
    Refused {
        /// What was refused, the quoted reason, and the remedy.
        message: String,
        /// Further notices for the owner.
        notices: Vec<Notice>,
    },
    /// Temporary: may work later.
    #[error("{message}")]
    Retry {
        /// What went wrong.
        message: String,
        /// How long to wait, if the cloud said so; otherwise the queue's backoff decides.
        after: Option<Duration>,
        /// Further notices for the owner.
        notices: Vec<Notice>,
    },
}

/// Why not all load balancers match the Nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct UpdateError {
    /// What went wrong, and when to try again.
    pub error: ServiceError,
    /// The Services on the load balancers that could not be changed, each with its error; Services on other load
    /// balancers have what they want. `None` if the affected Services are unknown.
    pub services: Option<BTreeMap<ObjectKey, String>>,
}

impl From<ServiceError> for UpdateError {
    /// An error that may affect all Services.
    fn from(error: ServiceError) -> Self {
        Self { error, services: None }
    }
}

/// A Service that had what it wanted, and whose parts in the cloud were then found changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    /// The Service.
    pub service: ObjectKey,
    /// Notices for its owner.
    pub notices: Vec<Notice>,
    /// Whether it has to be ensured again: not everything was repaired, or its addresses may have changed.
    pub ensure: bool,
}

/// The result of comparing everything that Services have in the cloud with what they want.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// The differences found since the previous comparison, counted by kind of resource.
    pub differences: BTreeMap<&'static str, u64>,
    /// How long to wait for the next comparison, if it is due early because something was left as it is.
    pub next: Option<Duration>,
    /// Why not everything could be read or repaired.
    pub failure: Option<ServiceError>,
}
