//! A program to run, and what it answers.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::time::Duration;

/// How much of a program's output an error has, in bytes.
const OUTPUT_LIMIT: usize = 400;

/// A program with its arguments, run directly and never through a shell. What it prints of itself has no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Those arguments that are secret, by their place.
    secret: BTreeSet<usize>,
    /// Variables that it has beside those of this process; their values may be secret.
    pub environment: Vec<(String, String)>,
    /// How long it may take; it is killed then, with all that it started.
    pub limit: Duration,
}

impl Command {
    /// A program without arguments.
    pub fn new(program: impl Into<String>, limit: Duration) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            secret: BTreeSet::new(),
            environment: Vec::new(),
            limit,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds an argument that is not printed. Other programs of the machine may see it: for programs alone that take a secret in
    /// no other way.
    #[must_use]
    pub fn secret_argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.secret.insert(self.arguments.len());
        self.argument(argument)
    }

    /// Adds several arguments.
    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::argument)
    }

    /// A text without the secrets of the command.
    pub fn withheld(&self, text: &str) -> String {
        let arguments = self.secret.iter().filter_map(|at| self.arguments.get(*at));
        let arguments = arguments.map(|secret| secret.to_string_lossy().into_owned());
        let values = self.environment.iter().map(|(_, value)| value.clone());
        let mut secrets: Vec<String> = arguments.chain(values).filter(|secret| !secret.is_empty()).collect();
        // One may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "<withheld>"))
    }

    /// Adds a variable, whose value is not printed.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        self.arguments.iter().enumerate().try_for_each(|(at, argument)| match self.secret.contains(&at) {
            true => f.write_str(" <withheld>"),
            false => write!(f, " {}", argument.display()),
        })
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; absent if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with this code.
    pub fn has_code(&self, code: i32) -> bool {
        self.code == Some(code)
    }

    /// How it ended, and the end of what it printed: for errors.
    pub fn summary(&self) -> String {
        let ending = self.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let text = [self.stdout.trim(), self.stderr.trim()].join("\n");
        let text = text.trim();
        let start = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_LIMIT));
        let text = text[start..].split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() { ending } else { format!("{ending}: {text}") }
    }
}

/// A program did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It is not in the image.
    #[error("program {0} is not installed; use an image that has it")]
    Missing(String),
    /// The system refuses to start it.
    #[error("cannot run {command}: {source}")]
    Start {
        /// The command.
        command: Command,
        /// The system's words.
        source: io::Error,
    },
    /// It took too long and was killed.
    #[error("{command} did not end within {} s and was killed; what it works on may not answer", .0.limit.as_secs(), command = .0)]
    Timeout(Command),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_end_of_a_long_output() {
        let output =
            Output { code: Some(8), stdout: "x\n".repeat(1_000), stderr: "no such\n device\n".into() };
        let summary = output.summary();
        assert!(
            summary.starts_with("exit code 8: x x") && summary.ends_with("x no such device"),
            "{summary}"
        );
        assert!(summary.len() < 450, "{summary}");
        assert_eq!(Output::default().summary(), "a signal");
    }

    #[test]
    fn a_command_prints_as_it_would_be_typed() {
        let command = Command::new("fsck", Duration::ZERO).argument("-n").arguments(["/dev/sdc"]);
        assert_eq!(command.to_string(), "fsck -n /dev/sdc");
    }

    #[test]
    fn a_command_prints_no_secret() {
        let command =
            Command::new("auth", Duration::ZERO).argument("set").secret_argument("ey").variable("K", "key=");
        assert_eq!(format!("{command} {command:?}"), "auth set <withheld> Command(auth set <withheld>)");
        assert_eq!(command.withheld("bad token ey, key= is set"), "bad token <withheld>, <withheld> is set");
    }
}
