//! Codes of refusals: status, code, and whose they are, declared in one line where the rule is:
//! `const IN_USE: Code = Code::azures(409, "InUse");`. `docs/azure-coverage.md` lists all such lines.

/// Where it is known from that Azure refuses something so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A recorded conversation, Azure's public documents, or the source of one of Azure's clients.
    Azures,
    /// Azure refuses it; code and words are ours.
    Ours,
}

/// A refusal before it is known what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: &'static str,
    /// Whose they are.
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
