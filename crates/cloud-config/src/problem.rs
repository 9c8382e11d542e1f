//! Problems of a configuration, their texts, and their remedies.

use std::fmt;

use crate::encoding::EncodingError;

/// One problem, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key as documented, such as `loadBalancerSku`.
    pub key: String,
    /// The value as found; `(hidden)` for secrets, empty when the key is not set.
    pub value: String,
    /// The reason.
    pub reason: String,
    /// The change that solves it. A document with this change no longer has this problem, and gets no other one from
    /// it.
    pub remedy: Remedy,
}

/// Changes of the document, as data, so that a test can apply them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// All of these changes are needed.
    pub edits: Vec<Edit>,
    /// The end of the sentence: a consequence, or an exception; may be empty.
    pub note: &'static str,
}

/// One change of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Set a key to this value.
    Set {
        /// The key.
        key: String,
        /// The value, without quotes.
        value: String,
    },
    /// Set a key to a value that only the user knows.
    Give {
        /// The key.
        key: String,
        /// A description of the value: `the id of the subscription`.
        what: String,
    },
    /// Remove a key.
    Remove {
        /// The key.
        key: String,
    },
}

impl Remedy {
    pub(crate) fn set(key: &str, value: impl fmt::Display) -> Self {
        Self { edits: vec![Edit::Set { key: key.to_owned(), value: value.to_string() }], note: "" }
    }

    pub(crate) fn give(key: &str, what: impl Into<String>) -> Self {
        Self { edits: vec![Edit::Give { key: key.to_owned(), what: what.into() }], note: "" }
    }

    pub(crate) fn remove(key: &str) -> Self {
        Self { edits: vec![Edit::Remove { key: key.to_owned() }], note: "" }
    }

    pub(crate) fn and(mut self, other: Self) -> Self {
        self.edits.extend(other.edits);
        self
    }

    pub(crate) fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, edit) in self.edits.iter().enumerate() {
            let joint = if index == 0 { "" } else { " and " };
            match edit {
                Edit::Set { key, value } => write!(f, "{joint}set {key} to {value}")?,
                Edit::Give { key, what } => write!(f, "{joint}set {key} to {what}")?,
                Edit::Remove { key } => write!(f, "{joint}remove {key}")?,
            }
        }
        f.write_str(self.note)
    }
}

impl Problem {
    pub(crate) fn new(
        key: impl Into<String>,
        value: impl fmt::Display,
        reason: impl Into<String>,
        remedy: Remedy,
    ) -> Self {
        Self { key: key.into(), value: value.to_string(), reason: reason.into(), remedy }
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

/// Why a document is not a configuration. Its text is one line and contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The bytes are not a text.
    #[error("the cloud config is neither UTF-8 text nor UTF-16 with a byte order mark: save it as UTF-8")]
    Encoding(#[from] EncodingError),
    /// The text is neither YAML nor JSON.
    #[error("the cloud config is neither valid YAML nor JSON: {}{what}", place(*line, *column, key.as_deref()))]
    Syntax {
        /// Line, from 1; 0 if unknown.
        line: u64,
        /// Column, from 1; 0 if unknown.
        column: u64,
        /// The last key before that position, if it is a known one. Nothing else of the document is shown, because it
        /// may be a secret.
        key: Option<&'static str>,
        /// The parser's finding.
        what: String,
    },
    /// The document is a list or a scalar instead of a mapping.
    #[error("the cloud config is {found}: it must be a mapping from keys to values")]
    NotAMapping {
        /// What was found: `a list`, `a text`, ...
        found: &'static str,
    },
    /// Keys with invalid values, or with values that this release does not support; all that were found.
    #[error("the cloud config is refused: {}", join(.0))]
    Invalid(Vec<Problem>),
}

fn place(line: u64, column: u64, key: Option<&str>) -> String {
    let near = key.map(|key| format!(", near {key}")).unwrap_or_default();
    if line == 0 { String::new() } else { format!("line {line}, column {column}{near}: ") }
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}
