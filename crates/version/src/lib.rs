//! The release and the commit that programs are built from, as `--version` and the first line of a log show them.
//!
//! Programs alone depend on it, because it is compiled anew for each commit.

use std::fmt;

/// The release, such as `0.1.0`.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// The commit in twelve digits; empty if the sources were built without git and without `CERULEAN_COMMIT`.
pub const COMMIT: &str = env!("CERULEAN_COMMIT");

/// Release and commit in one line, such as `0.1.0 (commit 894fce43dc47)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Version;

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(RELEASE)?;
        match COMMIT {
            "" => Ok(()),
            commit => write!(f, " (commit {commit})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_release_and_commit() {
        let text = Version.to_string();
        assert!(text.starts_with(RELEASE), "{text}");
        assert!(COMMIT.is_empty() || text.ends_with(&format!("(commit {COMMIT})")), "{text}");
        assert!(COMMIT.chars().all(|digit| digit.is_ascii_hexdigit()), "{COMMIT}");
    }
}
