//! What goes wrong at a step.

/// What goes wrong at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails without any effect.
    Fail,
    /// It fails after it had its effect.
    FailAfter,
    /// The process dies before it.
    DieBefore,
    /// The process dies after it.
    DieAfter,
}
