//! What a release is made from: its version, its commit and the date that stands for it. The date of a commit does not
//! change, so that two builds of one commit are equal.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use jiff::Timestamp;

/// The sources of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The release, without `v`.
    pub version: String,
    /// The whole commit.
    pub commit: String,
    /// The date of the commit, or `SOURCE_DATE_EPOCH`.
    pub date: Timestamp,
    /// Where the sources are published, if that is known.
    pub source: Option<String>,
}

impl Provenance {
    /// That of a checkout. `CERULEAN_COMMIT` and `SOURCE_DATE_EPOCH` come first, for sources without git.
    ///
    /// # Errors
    /// There are neither git nor these variables, or the date is not a number of seconds.
    pub fn of(root: &Path, source: Option<String>) -> anyhow::Result<Self> {
        let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let commit = match given("CERULEAN_COMMIT") {
            Some(commit) => commit,
            None => git(root, &["rev-parse", "HEAD"])
                .context("the commit is not known: set CERULEAN_COMMIT, or build in a checkout of git")?,
        };
        let seconds = match given("SOURCE_DATE_EPOCH") {
            Some(seconds) => seconds,
            None => git(root, &["show", "--no-patch", "--format=%ct", "HEAD"]).context(
                "the commit's date is not known: set SOURCE_DATE_EPOCH, or build in a checkout of git",
            )?,
        };
        let date = seconds.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        let date =
            date.with_context(|| format!("SOURCE_DATE_EPOCH is {seconds:?}: give the seconds since 1970"))?;
        let published = Some(env!("CARGO_PKG_REPOSITORY").to_owned()).filter(|url| !url.is_empty());
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), commit, date, source: source.or(published) })
    }

    /// The tag of images and releases, such as `v0.1.0`.
    pub fn tag(&self) -> String {
        format!("v{}", self.version)
    }
}

/// Changed files of a checkout that no commit has; empty without git.
pub fn uncommitted(root: &Path) -> String {
    git(root, &["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default()
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new("git").arg("-C").arg(root).args(arguments).output().context("cannot start git")?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::program::root;

    #[test]
    fn a_checkout_gives_commit_and_date() {
        let of_commit = Provenance::of(&root(), None).unwrap();
        assert_eq!(of_commit.tag(), "v0.1.0");
        assert!(of_commit.commit.len() >= 12, "{of_commit:?}");
        assert!(of_commit.date > Timestamp::UNIX_EPOCH, "{of_commit:?}");
    }
}
