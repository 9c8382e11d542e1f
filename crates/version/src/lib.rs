//! The release, the commit and its date that programs are built from, as `--version` and the first line of a log show them.
//!
//! Programs alone depend on it, because it is compiled anew for each commit.

use std::fmt;

/// The release, such as `0.1.0`.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// The commit in twelve digits; empty if the sources were built without git and without `CERULEAN_COMMIT`.
pub const COMMIT: &str = env!("CERULEAN_COMMIT");
/// The date of the commit, or `SOURCE_DATE_EPOCH`, such as `2026-11-30T02:12:40Z`; empty if neither is known. It is the date of
/// the build that is the same in each build of one commit.
pub const DATE: &str = env!("CERULEAN_DATE");

/// Release, commit and date in one line, such as `0.1.0 (commit 894fce43dc47, built 2026-11-30T02:12:40Z)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Version;

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, COMMIT, DATE)
    }
}

/// The line, of what is known.
fn write(f: &mut impl fmt::Write, commit: &str, date: &str) -> fmt::Result {
    f.write_str(RELEASE)?;
    match (commit, date) {
        ("", "") => Ok(()),
        (commit, "") => write!(f, " (commit {commit})"),
        ("", date) => write!(f, " (built {date})"),
        (commit, date) => write!(f, " (commit {commit}, built {date})"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_version_names_what_is_known_of_its_sources() {
        let (commit, date) = ("894fce43dc47", "2026-11-30T02:12:40Z");
        for (commit, date, expected) in [
            (commit, date, " (commit 894fce43dc47, built 2026-11-30T02:12:40Z)"),
            (commit, "", " (commit 894fce43dc47)"),
            ("", date, " (built 2026-11-30T02:12:40Z)"),
            ("", "", ""),
        ] {
            let mut text = String::new();
            write(&mut text, commit, date).unwrap();
            assert_eq!(text, format!("{RELEASE}{expected}"));
        }
    }

    #[test]
    fn commit_and_date_are_those_of_the_build() {
        assert!(COMMIT.chars().all(|digit| digit.is_ascii_hexdigit()), "{COMMIT}");
        assert!(DATE.is_empty() || (DATE.len() == 20 && DATE.ends_with('Z')), "{DATE}");
    }
}
