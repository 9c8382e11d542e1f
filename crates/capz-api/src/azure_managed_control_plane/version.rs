//! Versions of Kubernetes: their form, and which of two is older.

use crate::field_error::Field;

/// Validates the form of a version: v, three numbers with dots, and letters, digits and `-_.+`.
pub(super) fn check(version: &str, field: &Field<'_>) {
    let words = "it must be a version of Kubernetes such as v1.31.1";
    field.invalid_if(!is_version(version), version, words);
}

fn is_version(text: &str) -> bool {
    let mut parts = text.strip_prefix('v').unwrap_or_default().splitn(3, '.');
    let is_number = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let is_rest = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
    };
    parts.next().is_some_and(is_number)
        && parts.next().is_some_and(is_number)
        && parts.next().is_some_and(is_rest)
}

/// The precedence of a version (semver.org, 11): its numbers, then its pre-release.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Precedence<'a> {
    numbers: Vec<u64>,
    is_release: bool,
    pre_release: Vec<Part<'a>>,
}

/// A part of a pre-release; numbers come before words.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Word(&'a str),
}

impl<'a> Precedence<'a> {
    /// That of a text, if it is a version.
    fn of(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(text, _)| text);
        let (numbers, pre_release) = text.split_once('-').map_or((text, None), |(n, pre)| (n, Some(pre)));
        let part = |text: &'a str| text.parse().map_or(Part::Word(text), Part::Number);
        Some(Self {
            numbers: numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?,
            is_release: pre_release.is_none(),
            pre_release: pre_release.into_iter().flat_map(|text| text.split('.')).map(part).collect(),
        })
    }
}

/// Whether a version is older than another one. A text that is no version is older than all versions.
pub(super) fn is_older(version: &str, other: &str) -> bool {
    Precedence::of(version) < Precedence::of(other)
}

#[cfg(test)]
mod tests {
    use super::{is_older, is_version};

    /// CAPZ-165.
    #[test]
    fn versions_have_three_numbers() {
        for text in ["v1.24.6", "v0.0.0", "v1.31.1-rc.1", "v1.31.1+k3s1", "v1.31.1_a"] {
            assert!(is_version(text), "{text}");
        }
        for text in ["", "v", "vfoo", "1.24.6", "v1.24", "v01.2.3", "v1.02.3", "v1.2.x", "v1.2.3 ", "v1..3"] {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn older_versions_come_first() {
        let ordered = [
            "vfoo",
            "v1.9.9",
            "1.24.6",
            "v1.24.10-alpha.1",
            "v1.24.10-alpha.2",
            "v1.24.10-alpha.10",
            "v1.24.10-beta",
            "v1.24.10",
            "v1.25.0",
        ];
        for (index, older) in ordered.iter().enumerate() {
            for (other, newer) in ordered.iter().enumerate() {
                assert_eq!(is_older(older, newer), index < other, "{older} {newer}");
            }
        }
        assert!(!is_older("v1.24.6", "1.24.6+k3s1") && !is_older("1.24.6+k3s1", "v1.24.6"));
    }
}
