//! Flags as Go's package reads them: one dash is as good as two.

use std::ffi::OsString;

/// A flag with two dashes. `-v 5` stays: it is a flag of one letter in both spellings.
pub fn with_two_dashes(argument: OsString) -> OsString {
    let Some(text) = argument.to_str() else { return argument };
    let Some(name) = text.strip_prefix('-').filter(|name| !name.starts_with('-')) else { return argument };
    let is_flag = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_long = name.split('=').next().is_some_and(|name| name.len() > 1) || name.contains('=');
    if is_flag && is_long { OsString::from(format!("--{name}")) } else { argument }
}

/// Whether an argument is `--version` in any form.
pub fn is_version(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text == "--version" || text.starts_with("--version="))
}
