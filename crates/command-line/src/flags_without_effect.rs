//! Flags that are accepted without effect because manifests pass them, grouped by reason. The log and `--help` give the
//! reason.

use clap::builder::{ArgAction, ArgPredicate};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use program::go_values::truth;

/// How a flag takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagValue {
    /// Any text, in the same word or in the next.
    Text,
    /// A boolean, in the same word or not at all.
    Boolean,
}

/// Flags without an effect, by reason.
#[derive(Debug, Clone, Copy)]
pub struct FlagsWithoutEffect(pub &'static [(&'static str, &'static [(&'static str, FlagValue)])]);

impl FlagsWithoutEffect {
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
                    FlagValue::Text => argument.allow_hyphen_values(true),
                    FlagValue::Boolean => argument
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
    pub fn set_by(self, matches: &ArgMatches) -> Vec<(Vec<&'static str>, &'static str)> {
        let of_reason = |(reason, flags): &(&'static str, &'static [(&'static str, FlagValue)])| {
            let set: Vec<&str> =
                flags.iter().map(|(name, _)| *name).filter(|name| is_set(matches, name)).collect();
            (!set.is_empty()).then_some((set, *reason))
        };
        self.0.iter().filter_map(of_reason).collect()
    }
}

/// Whether the command line sets a flag. Flags with an effect are found by their fields.
pub fn is_set(matches: &ArgMatches, flag: &str) -> bool {
    let field = flag.replace('-', "_");
    let is_field = matches.ids().any(|id| id.as_str() == field);
    matches.value_source(if is_field { &field } else { flag }) == Some(ValueSource::CommandLine)
}
