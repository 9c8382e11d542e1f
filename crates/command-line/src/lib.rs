//! Command lines as manifests of Go programs have them: every flag of the program that ours replaces is known, those without
//! an effect each with the reason, and one start tells all that is wrong with what was given, with what to pass instead.

mod accepted;
mod problem;
mod reading;
mod refusal;

pub use accepted::{Accepted, Takes};
pub use cloud_config::keys::nearest;
pub use problem::Problem;
pub use reading::{describe, read};
pub use refusal::{Part, Refused, end, last_words};

use clap::ArgMatches;

/// What a command line asks for instead of running.
#[derive(Debug)]
pub enum Instead {
    /// Print this text and end well.
    Print(String),
    /// One line that says what is wrong with the command line.
    Refuse(String),
}

/// Whether somebody gave a flag. Those with an effect are known by their fields.
pub fn given(matches: &ArgMatches, flag: &str) -> bool {
    let field = flag.replace('-', "_");
    let is_field = matches.ids().any(|id| id.as_str() == field);
    matches.value_source(if is_field { &field } else { flag }) == Some(clap::parser::ValueSource::CommandLine)
}
