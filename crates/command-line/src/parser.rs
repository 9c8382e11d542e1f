//! Parses a command line to its end: invalid arguments are reported and removed, so that one start reports all problems
//! (NODE-276).

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command};
use cloud_config::keys::nearest;

use crate::problem::Problem;

/// Why a program ends without running.
#[derive(Debug)]
pub enum EarlyExit {
    /// Print this text and exit successfully.
    Print(String),
    /// Print this line about a wrong command line and exit with an error.
    Refuse(String),
}

/// Parses a command line, which begins with the program's name. Returns the matches and the problems of invalid
/// arguments.
///
/// # Errors
/// Help was requested, or a word is ambiguous.
pub fn parse(
    command: &Command,
    mut arguments: Vec<OsString>,
) -> Result<(ArgMatches, Vec<Problem>), EarlyExit> {
    let mut problems = Vec::new();
    // Each round removes one invalid argument.
    loop {
        let error = match command.clone().try_get_matches_from(&arguments) {
            Ok(matches) => return Ok((matches, problems)),
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                return Err(EarlyExit::Print(error.render().to_string()));
            }
            Err(error) => error,
        };
        let refused = || EarlyExit::Refuse(describe(&error));
        let invalid = InvalidArgument::of(&error, &arguments).ok_or_else(refused)?;
        problems.push(invalid.problem(command, &error));
        arguments.drain(invalid.at..invalid.at + invalid.count);
    }
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// The argument that an error is about.
struct InvalidArgument {
    /// The flag with its dashes, or a positional word.
    name: String,
    value: Option<String>,
    /// The index of its first word.
    at: usize,
    /// The number of its words.
    count: usize,
}

impl InvalidArgument {
    fn of(error: &clap::Error, arguments: &[OsString]) -> Option<Self> {
        // Clap writes `--flag <VALUE>` or `-v, --v <VALUE>` for a known flag.
        let argument = context(error, ContextKind::InvalidArg)?;
        let names: Vec<&str> =
            argument.split([' ', ',', '=', '[']).filter(|word| word.starts_with('-')).collect();
        let mut names = if names.is_empty() { vec![argument] } else { names };
        if names.contains(&"--v") {
            names.insert(0, "-v");
        }
        let value = context(error, ContextKind::InvalidValue).filter(|value| !value.is_empty());
        let texts: Vec<&str> = arguments.iter().map(|text| text.to_str().unwrap_or_default()).collect();
        let fits = |own: &str| value.is_none_or(|value| value == own);
        for (at, text) in texts.iter().enumerate().skip(1) {
            let named = |name: &&&str| {
                text.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || is_value(name, rest))
            };
            let Some(name) = names.iter().find(named) else { continue };
            let rest = text.strip_prefix(*name).unwrap_or_default();
            let invalid = |value: Option<&str>, count| {
                let name = names.last().unwrap_or(name);
                Some(Self { name: (*name).to_owned(), value: value.map(str::to_owned), at, count })
            };
            if !rest.is_empty() {
                let own = rest.strip_prefix('=').unwrap_or(rest);
                if fits(own) {
                    return invalid(Some(own), 1);
                }
                continue;
            }
            // A word after an unknown flag is taken for its value.
            let next = texts.get(at + 1).filter(|_| name.starts_with('-'));
            match (value, next) {
                (Some(value), Some(next)) if value == *next => return invalid(Some(next), 2),
                (Some(_), _) => {}
                (None, Some(next))
                    if error.kind() == ErrorKind::UnknownArgument && !next.starts_with('-') =>
                {
                    return invalid(Some(next), 2);
                }
                (None, _) => return invalid(None, 1),
            }
        }
        None
    }

    fn problem(&self, command: &Command, error: &clap::Error) -> Problem {
        let given = match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        };
        let problem = |reason: String, arguments: Vec<String>, note: &str| Problem {
            given: given.clone(),
            reason,
            arguments,
            note: note.to_owned(),
        };
        if error.kind() == ErrorKind::UnknownArgument {
            let Some(name) = self.name.strip_prefix("--") else {
                return problem("unknown argument".to_owned(), Vec::new(), "--help lists the flags");
            };
            let names = command.get_arguments().filter_map(Arg::get_long);
            return match nearest(name, names) {
                Some(meant) => {
                    let value = self.value.as_ref().map_or_else(String::new, |value| format!("={value}"));
                    let reason = format!("unknown flag; did you mean --{meant}?");
                    problem(reason, vec![format!("--{meant}{value}")], "")
                }
                None => problem("unknown flag".to_owned(), Vec::new(), "--help lists the flags"),
            };
        }
        let reason = match (error.source().map(ToString::to_string), &self.value) {
            (Some(text), _) if text.contains("invalid digit") => "is no whole number".to_owned(),
            (Some(text), _) => text,
            (None, None) => "needs a value".to_owned(),
            (None, Some(_)) => describe(error),
        };
        problem(reason, remedy(command, &self.name, self.value.as_deref()), "")
    }
}

/// Whether the rest of a word after a flag's name is its value.
fn is_value(name: &str, rest: &str) -> bool {
    rest.starts_with('=') || name.len() == 2 && name.starts_with('-') && !name.starts_with("--")
}

/// The flag with a valid value: its default, or, for a number where a duration belongs, as many seconds.
fn remedy(command: &Command, name: &str, value: Option<&str>) -> Vec<String> {
    let long = name.trim_start_matches('-');
    let Some(argument) = command.get_arguments().find(|argument| argument.get_long() == Some(long)) else {
        return Vec::new();
    };
    let default = argument.get_default_values().first().and_then(|default| default.to_str());
    let is_duration = default.is_some_and(|default| program::go_values::duration(default).is_ok());
    let seconds = value.filter(|value| is_duration && value.bytes().all(|byte| byte.is_ascii_digit()));
    let example = match seconds {
        Some(seconds) => format!("{seconds}s"),
        None => default.unwrap_or("true").to_owned(),
    };
    vec![format!("--{long}={example}")]
}

/// Clap's sentence about an invalid command line, without usage and tips.
pub fn describe(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph: Vec<&str> =
        text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let sentence = paragraph.join(" ");
    format!("{}; --help lists the flags", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}
