//! Command lines written for Go programs. Every flag of the replaced program is known; flags without effect have a
//! reason. One start reports everything that is wrong with the command line, and what to pass instead.

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

/// What to do instead of running.
#[derive(Debug)]
pub enum Instead {
    /// Print this text and exit successfully.
    Print(String),
    /// Print this line about a wrong command line and exit with an error.
    Refuse(String),
}

/// Whether the command line sets a flag. Flags with an effect are found by their fields.
pub fn given(matches: &ArgMatches, flag: &str) -> bool {
    let field = flag.replace('-', "_");
    let is_field = matches.ids().any(|id| id.as_str() == field);
    matches.value_source(if is_field { &field } else { flag }) == Some(clap::parser::ValueSource::CommandLine)
}
