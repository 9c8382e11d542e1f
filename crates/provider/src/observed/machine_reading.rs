//! Azure's answers for single machines.

use cloud::LogicalTime;

/// Azure's answer for a machine that was requested by itself.
#[derive(Debug)]
pub(crate) struct MachineReading {
    /// When it was requested.
    pub(crate) read: LogicalTime,
    pub(crate) answer: MachineAnswer,
}

/// Whether the machine exists.
#[derive(Debug)]
pub(crate) enum MachineAnswer {
    /// It exists. Instances of uniform scale sets are requested without view, so that their power state is unknown.
    Exists { shut_down: bool, fault_domain: Option<i32> },
    /// It does not exist, or is being deleted; with Azure's words.
    Gone(String),
}
