//! A problem of a command line, with flag, value and remedy.

use std::fmt;
use std::time::Duration;

/// A problem of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The flag with its value as given; the flag alone if the value is empty.
    pub given: String,
    /// What is wrong with it.
    pub reason: String,
    /// Arguments that fix it, in place of those with the same names.
    pub arguments: Vec<String>,
    /// The rest of the sentence about the remedy: further steps, or when the remedy does not apply.
    pub note: String,
}

impl Problem {
    /// A flag whose value is wrong for this reason, and what to pass instead.
    pub fn new(flag: &str, value: impl fmt::Display, reason: impl Into<String>, arguments: &[&str]) -> Self {
        let value = value.to_string();
        let given = if value.is_empty() { format!("--{flag}") } else { format!("--{flag}={value}") };
        Self {
            given,
            reason: reason.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            note: String::new(),
        }
    }

    /// Sets the rest of the sentence about the remedy.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Invalid durations of leader election, with the defaults as the remedy.
    pub fn with_election(lease: Duration, reason: String) -> Self {
        let remedy = [
            "--leader-elect-lease-duration=15s",
            "--leader-elect-renew-deadline=10s",
            "--leader-elect-retry-period=2s",
        ];
        let lease = format!("{}s", lease.as_secs_f64());
        Self::new("leader-elect-lease-duration", lease, reason, &remedy).note(", the defaults")
    }

    /// A problem with the minimum TLS version; an empty one means the default.
    pub fn with_tls_version(version: &str) -> Option<Self> {
        if ["", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"].contains(&version) {
            return None;
        }
        let reason = "is not one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13";
        Some(Self::new("tls-min-version", version, reason, &["--tls-min-version=VersionTLS12"]))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (", self.given, self.reason)?;
        if !self.arguments.is_empty() {
            write!(f, "pass {}", self.arguments.join(" "))?;
        }
        write!(f, "{})", self.note)
    }
}
