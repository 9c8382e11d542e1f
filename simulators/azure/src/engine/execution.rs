//! How one request's work is to run.

use std::time::Duration;

use super::operation::{OperationStyle, Status};

/// How one request's work is to run: chosen by faults, and by builders that want no delay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Execution {
    /// Finish before answering.
    pub(crate) at_once: bool,
    /// End so, rather than well.
    pub(crate) ending: Option<Status>,
    pub(crate) stall: bool,
    pub(crate) latency: Option<Duration>,
    /// How the operation can be followed.
    pub(crate) operation_style: OperationStyle,
    /// The principal of the actor who asks; `None` for clients.
    pub(crate) by: Option<String>,
}

/// An operation that was started (or was over at once).
pub(crate) struct Started {
    pub(crate) key: String,
    pub(crate) latency: Option<Duration>,
}
