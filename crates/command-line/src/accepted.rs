//! Flags that are accepted and change nothing, because manifests pass them: each under the reason for it, which the log and
//! `--help` give.

use clap::builder::{ArgAction, ArgPredicate};
use clap::{Arg, ArgMatches};
use program::go_values::truth;

use crate::given;

/// How an accepted flag takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// As any text, in the same word or in the next.
    Value,
    /// As a truth value, in the same word or not at all.
    Boolean,
}

/// Flags without an effect, by reason.
#[derive(Debug, Clone, Copy)]
pub struct Accepted(pub &'static [(&'static str, &'static [(&'static str, Takes)])]);

impl Accepted {
    /// The flags for a command, each reason with a heading of its own.
    pub fn arguments(self) -> impl Iterator<Item = Arg> {
        self.0.iter().flat_map(|(reason, flags)| {
            flags.iter().map(move |(name, takes)| {
                let argument = Arg::new(*name)
                    .long(*name)
                    .help_heading(format!("Accepted without effect: {reason}"))
                    .value_name("VALUE")
                    .action(ArgAction::Set);
                match takes {
                    Takes::Value => argument.allow_hyphen_values(true),
                    Takes::Boolean => argument
                        .num_args(0..=1)
                        .require_equals(true)
                        .default_missing_value("true")
                        .default_value_if(*name, ArgPredicate::IsPresent, None)
                        .value_parser(truth),
                }
            })
        })
    }

    /// Those that somebody gave, under the reason why they change nothing.
    pub fn given(self, matches: &ArgMatches) -> Vec<(Vec<&'static str>, &'static str)> {
        let of_reason = |(reason, flags): &(&'static str, &'static [(&'static str, Takes)])| {
            let given: Vec<&str> =
                flags.iter().map(|(name, _)| *name).filter(|name| given(matches, name)).collect();
            (!given.is_empty()).then_some((given, *reason))
        };
        self.0.iter().filter_map(of_reason).collect()
    }
}
