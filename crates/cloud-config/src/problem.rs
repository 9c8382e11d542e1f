//! What can be wrong with a configuration, how it is said, and what to do about it.

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
    /// What to change. A document with this change has this problem no longer, and gets no other by it.
    pub remedy: Remedy,
}

/// Changes of the document, as data, so that a test can follow them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// All of these are to be made.
    pub edits: Vec<Edit>,
    /// How the sentence goes on: what follows, or for whom this is not the way. Empty where that is clear.
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
    /// Set a key to a value that only its owner knows.
    Give {
        /// The key.
        key: String,
        /// What value that is: `the id of the subscription`.
        what: String,
    },
    /// Take a key out.
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

/// Why a document gives no configuration. Its text is one line and holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The bytes are no text.
    #[error("the cloud config is no UTF-8 text, nor UTF-16 with a byte order mark: save it as UTF-8")]
    Encoding,
    /// The text is neither YAML nor JSON.
    #[error("the cloud config is neither valid YAML nor JSON: {}{what}", place(*line, *column, key.as_deref()))]
    Syntax {
        /// Line, from 1; 0 when unknown.
        line: u64,
        /// Column, from 1; 0 when unknown.
        column: u64,
        /// The last key before that place, if it is one that we know. Nothing else of the document is
        /// shown, because it may be a secret.
        key: Option<&'static str>,
        /// What the parser found.
        what: String,
    },
    /// The document is a list or a bare value where keys and values belong.
    #[error("the cloud config is {found}: it must be a mapping from keys to values")]
    NotAMapping {
        /// What was found: `a list`, `a text`, ...
        found: &'static str,
    },
    /// Keys with values that cannot be, or that this release cannot work with; every one that was found.
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
