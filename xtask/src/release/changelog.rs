//! Release notes: the release's section of CHANGELOG.md, and how its files are verified.

use anyhow::Context as _;

/// The section of a release, without its heading.
///
/// # Errors
/// The release has no section, or an empty one.
pub fn section<'a>(changelog: &'a str, version: &str) -> anyhow::Result<&'a str> {
    let heading = format!("## [{version}]");
    let remedy = || format!("CHANGELOG.md has no section {heading}: write what changed for users");
    let begin = changelog.find(&heading).with_context(remedy)?;
    let body = changelog.get(begin..).and_then(|text| text.split_once('\n')).with_context(remedy)?.1;
    let body = body.split("\n## ").next().unwrap_or(body).trim();
    (!body.is_empty()).then_some(body).with_context(remedy)
}

/// The notes: the section, the digests of the images, and how to verify both.
pub fn notes(section: &str, tag: &str, commit: &str, images: &[(String, String)]) -> String {
    let rows: String = images.iter().map(|(name, digest)| format!("| `{name}` | `{digest}` |\n")).collect();
    format!(
        "# Cerulean {tag}\n\nFrom commit {commit}; links are paths in its sources.\n\n{section}\n\n## Images\n\n| image | digest |\n|---|---|\n{rows}\n\
         ## Verify\n\n`sha256sum --check SHA256SUMS` verifies the files. A build of the same commit gives the same bytes \
         (`cargo xtask release`).\n"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-01\n\n### Added\n\n- Disks.\n\n\
        ## [0.1.0]\n\n### Added\n\n- Images.\n";

    #[test]
    fn notes_have_the_section_of_their_release_alone() {
        let disks = section(CHANGELOG, "0.2.0").unwrap();
        assert_eq!(disks, "### Added\n\n- Disks.");
        assert_eq!(section(CHANGELOG, "0.1.0").unwrap(), "### Added\n\n- Images.");
        let images = [("health-probe-proxy".to_owned(), "sha256:12".to_owned())];
        let notes = notes(disks, "v0.2.0", "894fce43dc47", &images);
        assert!(
            notes.contains("- Disks.") && notes.contains("| `health-probe-proxy` | `sha256:12` |"),
            "{notes}"
        );
    }

    #[test]
    fn a_release_without_a_section_is_refused() {
        for version in ["Unreleased", "0.3.0"] {
            let problem = section(CHANGELOG, version).unwrap_err().to_string();
            assert!(problem.contains(&format!("no section ## [{version}]")), "{problem}");
        }
    }
}
