//! Codes of refusals: status, code and origin, declared where the rule is: `Code::azures(409, "InUse").says(…)`, or a
//! constant where several rules have it. `docs/azure-coverage.md` lists all of them.

/// The evidence that Azure refuses something with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A recorded conversation, Azure's public documents, or the source of one of Azure's clients.
    Azures,
    /// Azure refuses it; code and message are ours.
    Ours,
}

/// A refusal without its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: &'static str,
    /// The evidence for status and code.
    pub evidence: Evidence,
}

impl Code {
    /// A code of Azure's.
    pub const fn azures(status: u16, code: &'static str) -> Self {
        Self { status, code, evidence: Evidence::Azures }
    }

    /// A code of ours.
    pub const fn ours(status: u16, code: &'static str) -> Self {
        Self { status, code, evidence: Evidence::Ours }
    }
}
