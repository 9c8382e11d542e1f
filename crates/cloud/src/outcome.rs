//! What a cloud answers to the controllers: plain values, no cloud's own documents in them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use k8s::{Notice, ObjectKey};

use crate::LogicalTime;

/// Whether something is there. Unknown is not absent: it never deletes, taints or resizes anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existence<T> {
    /// It is there.
    Present(T),
    /// The cloud said that it is not there.
    Absent(Proof),
    /// Nobody could say; the text tells why.
    Unknown(String),
}

impl<T> Existence<T> {
    /// The value, where it is known to be there.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent(_) | Self::Unknown(_) => None,
        }
    }
}

/// Which machine the cloud was asked about, what it answered, and when. Whoever deletes something because of an
/// absence can say on whose word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The machine's id in the cloud's own terms.
    pub machine: String,
    /// What the cloud answered, in its own words.
    pub answer: String,
    /// When the cloud was asked.
    pub read: LogicalTime,
}

/// What a Service has after a successful [`LoadBalancers::ensure`](crate::LoadBalancers::ensure).
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
    /// The text holds the cloud's own words (or the planner's) and what to change.
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
        /// How long to wait, where the cloud said so; otherwise the queue's back-off decides.
        after: Option<Duration>,
        /// What to tell the owner besides.
        notices: Vec<Notice>,
    },
}

/// Why not all load balancers are as the Nodes are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct UpdateError {
    /// What went wrong, and when to try again.
    pub error: ServiceError,
    /// The Services on the load balancers that could not be changed, each with what went wrong there: those on others
    /// have what they should. Absent where nobody can tell whom it concerns.
    pub services: Option<BTreeMap<ObjectKey, String>>,
}

impl From<ServiceError> for UpdateError {
    /// An error that may concern everybody.
    fn from(error: ServiceError) -> Self {
        Self { error, services: None }
    }
}

/// A Service whose parts in the cloud were found to be other than it wants them, although it had what it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    /// The Service.
    pub service: ObjectKey,
    /// What to tell its owner.
    pub notices: Vec<Notice>,
    /// Whether it has to be ensured again: not everything was repaired, or its addresses may be others now.
    pub ensure: bool,
}

/// What came of another look at what all Services have in the cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// How many differences were found since the look before, by the kind of resource.
    pub differences: BTreeMap<&'static str, u64>,
    /// When to look again before it is time, because something is left as it is until then.
    pub next: Option<Duration>,
    /// Why not everything could be looked at or repaired.
    pub failure: Option<ServiceError>,
}
