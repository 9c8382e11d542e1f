//! The execution of one request.

use std::time::Duration;

use crate::operation::{OperationStyle, Status};

/// The execution of one request: chosen by faults, and by setups without delays.
#[derive(Debug, Clone, Default)]
pub struct Execution {
    /// Finish before answering.
    pub at_once: bool,
    /// End with this status, rather than success.
    pub ending: Option<Status>,
    /// Never end by itself.
    pub stall: bool,
    /// Take this long, rather than the profile's latency.
    pub latency: Option<Duration>,
    /// How the operation can be followed.
    pub operation_style: OperationStyle,
    /// The principal of the actor that asks; `None` for clients.
    pub by: Option<String>,
    /// The application that asks; `None` where tokens are not verified.
    pub caller: Option<String>,
}

/// An operation that was started (or was over at once).
pub struct Started {
    /// The operation's key.
    pub key: String,
    /// How long it takes; `None` for one that never ends by itself.
    pub latency: Option<Duration>,
}
