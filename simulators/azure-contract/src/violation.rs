//! In what a document departs from the contract.

use std::fmt;

/// Which way a document goes. It decides which members count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// A whole document that is sent: what is read-only is passed over, what is required must be there.
    Request,
    /// A part of a document that is sent (`PATCH`): nothing is required.
    Patch,
    /// A document that Azure shows: what is only written must not be there.
    Answer,
}

impl Side {
    /// Whether the document is sent to Azure.
    pub(crate) fn is_sent(self) -> bool {
        self != Self::Answer
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Patch => "patch",
            Self::Answer => "answer",
        })
    }
}

/// What is wrong with one member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The contract has no such member.
    #[error("is not in the contract")]
    Unknown,
    /// The contract has it in other letters.
    #[error("is spelled '{0}' in the contract")]
    LetterCase(String),
    /// It is required in a request.
    #[error("is required and absent")]
    Missing,
    /// It is written, and never shown.
    #[error("is shown, though it is only written")]
    WriteOnly,
    /// It has another JSON type; what it is, and what it should be.
    #[error("is of JSON type {0}, not {1}")]
    JsonType(&'static str, &'static str),
    /// It is not among the values of a closed enumeration.
    #[error("is {0}, which is not one of the contract's values")]
    Value(String),
    /// A text is too short or too long.
    #[error("has {0} characters, which is out of bounds")]
    Length(usize),
    /// A number is too small or too large.
    #[error("is {0}, which is out of range")]
    Range(i64),
    /// A text has another form.
    #[error("is '{0}', which does not match the contract's pattern")]
    Pattern(String),
}

/// One departure from the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The member, such as `properties.frontendIPConfigurations[].zones`. Items of lists have no number, and members
    /// with names of the user's choice are `*`.
    pub member: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let member = if self.member.is_empty() { "the document" } else { &self.member };
        write!(f, "{member} {}", self.problem)
    }
}
