//! Reasons against a start, as a list with one line each.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// All problems found, by where they stand.
#[derive(Debug)]
pub struct Refused {
    /// Not empty.
    pub parts: Vec<Part>,
}

/// The problems in one place.
#[derive(Debug)]
pub struct Part {
    /// The place, such as `the command line` or the path of azure.json.
    pub place: String,
    /// The problems, each with key, value and remedy.
    pub problems: Vec<String>,
}

impl Refused {
    /// A refusal with a single place.
    pub fn one(place: impl Into<String>, problems: Vec<String>) -> Self {
        Self { parts: vec![Part { place: place.into(), problems }] }
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    /// A heading for each place and a line for each problem. Values come from files and the command line: a line break
    /// in a value must not start a new line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{} is refused:", part.place)?;
            for problem in &part.problems {
                write!(f, "\n  {}", problem.replace(['\n', '\r'], " "))?;
            }
        }
        Ok(())
    }
}

/// The text that a failing process prints: one line per problem of a [`Refused`], one line for any other error.
pub fn last_words(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Refused>() {
        Some(refused) => refused.to_string(),
        None => program::in_one_line(error),
    }
}

/// Ends a program: its result goes to standard output, its error to standard error, after the program's name.
pub fn end(program: &str, outcome: anyhow::Result<String>) -> ExitCode {
    // A closed pipe is the reader's own choice.
    let (code, _closed_pipe) = match outcome {
        Ok(text) => (ExitCode::SUCCESS, io::stdout().write_all(text.as_bytes())),
        Err(problem) => (ExitCode::FAILURE, writeln!(io::stderr(), "{program}: {}", last_words(&problem))),
    };
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_a_line() {
        let mut refused =
            Refused::one("the command line", vec!["--a=1: no".to_owned(), "--b=2: no\nno".to_owned()]);
        refused.parts.extend(Refused::one("/x/azure.json", vec!["vmType=standard: no".to_owned()]).parts);
        assert_eq!(
            refused.to_string(),
            "the command line is refused:\n  --a=1: no\n  --b=2: no no\n/x/azure.json is refused:\n  vmType=standard: no"
        );
    }
}
