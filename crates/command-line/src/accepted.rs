//! Flags that are accepted without effect because manifests pass them, grouped by reason. The log and `--help` give the
//! reason.

use clap::builder::{ArgAction, ArgPredicate};
use clap::{Arg, ArgMatches};
use program::go_values::truth;

use crate::given;

/// How an accepted flag takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Any text, in the same word or in the next.
    Value,
    /// A boolean, in the same word or not at all.
    Boolean,
}

/// Flags without an effect, by reason.
#[derive(Debug, Clone, Copy)]
pub struct Accepted(pub &'static [(&'static str, &'static [(&'static str, Takes)])]);

impl Accepted {
    /// The flags as arguments of a command, with one heading per reason.
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

    /// The flags that the command line sets, by the reason why they have no effect.
    pub fn given(self, matches: &ArgMatches) -> Vec<(Vec<&'static str>, &'static str)> {
        let of_reason = |(reason, flags): &(&'static str, &'static [(&'static str, Takes)])| {
            let given: Vec<&str> =
                flags.iter().map(|(name, _)| *name).filter(|name| given(matches, name)).collect();
            (!given.is_empty()).then_some((given, *reason))
        };
        self.0.iter().filter_map(of_reason).collect()
    }
}
