//! Why a program does not start, with a line for each problem.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// All problems, by the input that has them.
#[derive(Debug)]
pub struct StartRefusal {
    /// Not empty.
    pub inputs: Vec<InputRefusal>,
}

/// The problems of one input.
#[derive(Debug)]
pub struct InputRefusal {
    /// The input, such as `the command line` or the path of azure.json.
    pub name: String,
    /// The problems, each with key, value and remedy.
    pub problems: Vec<String>,
}

impl StartRefusal {
    /// A refusal because of a single input.
    pub fn one(input: impl Into<String>, problems: Vec<String>) -> Self {
        Self { inputs: vec![InputRefusal { name: input.into(), problems }] }
    }
}

impl std::error::Error for StartRefusal {}

impl fmt::Display for StartRefusal {
    /// A heading for each input and a line for each problem. Values come from files and the command line: a line break
    /// in a value must not start a new line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, input) in self.inputs.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{} is refused:", input.name)?;
            for problem in &input.problems {
                write!(f, "\n  {}", problem.replace(['\n', '\r'], " "))?;
            }
        }
        Ok(())
    }
}

/// The text that a failing process prints: one line per problem of a [`StartRefusal`], one line for any other error.
pub fn last_words(error: &anyhow::Error) -> String {
    match error.downcast_ref::<StartRefusal>() {
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
            StartRefusal::one("the command line", vec!["--a=1: no".to_owned(), "--b=2: no\nno".to_owned()]);
        refused
            .inputs
            .extend(StartRefusal::one("/x/azure.json", vec!["vmType=standard: no".to_owned()]).inputs);
        assert_eq!(
            refused.to_string(),
            "the command line is refused:\n  --a=1: no\n  --b=2: no no\n/x/azure.json is refused:\n  vmType=standard: no"
        );
    }
}
