//! What can be wrong with a configuration, and how it is said.

use std::fmt;

/// One thing that is wrong, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key as documented, such as `loadBalancerSku`.
    pub key: String,
    /// The value as found; `(hidden)` for secrets, empty when the key is not set.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to change.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(
        key: impl Into<String>,
        value: impl fmt::Display,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), value: value.to_string(), reason: reason.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ": {} ({})", self.reason, self.remedy)
    }
}

/// A setting that is valid and that this release does not carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The key as documented.
    pub key: &'static str,
    /// The value as found.
    pub value: String,
    /// What to set instead, or what to keep using.
    pub remedy: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: not supported by this release ({})", self.key, self.value, self.remedy)
    }
}

/// Why a document gives no configuration. Its text is one line and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is neither YAML nor JSON. The parser's own words are left out, because they may quote
    /// the line, and the line may hold a secret.
    #[error("the cloud config is neither valid YAML nor JSON: {}", place(*line, *column))]
    Syntax {
        /// Line, from 1; 0 when unknown.
        line: u64,
        /// Column, from 1; 0 when unknown.
        column: u64,
    },
    /// The document is a list or a bare value where keys and values belong.
    #[error("the cloud config is {found}: it must be a mapping from keys to values")]
    NotAMapping {
        /// What was found: `a list`, `a text`, ...
        found: &'static str,
    },
    /// Keys with impossible values or in impossible combinations; every one that was found.
    #[error("the cloud config is invalid: {}", join(.0))]
    Invalid(Vec<Problem>),
}

fn place(line: u64, column: u64) -> String {
    if line == 0 {
        "check that the file is complete".to_owned()
    } else {
        format!("check line {line}, column {column}")
    }
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}
