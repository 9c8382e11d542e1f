//! Versions of Kubernetes as users write them: `v1.31.1`, `1.31`, ` 1.31.1+k3s1`.

use std::cmp::Ordering;
use std::fmt;

/// A version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesVersion {
    numbers: [u64; 3],
    /// The part after the numbers, with its `-` or `+`.
    suffix: String,
}

/// A text that is not a version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse Kubernetes version {0:?}: write it like v1.31.1")]
pub struct VersionError(String);

impl KubernetesVersion {
    /// Parses a version. A leading `v` and surrounding spaces are ignored, and a missing patch or minor version is 0.
    ///
    /// # Errors
    /// The text is not a version.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError(text.to_owned());
        let plain = text.trim();
        let plain = plain.strip_prefix('v').unwrap_or(plain);
        let (numbers, suffix) = plain.split_at(plain.find(['-', '+']).unwrap_or(plain.len()));
        let parts: Vec<&str> = numbers.split('.').collect();
        // A suffix is valid only after three numbers.
        if parts.len() > 3 || (parts.len() < 3 && !suffix.is_empty()) {
            return Err(error());
        }
        let mut version = Self { numbers: [0; 3], suffix: suffix.to_owned() };
        for (number, part) in version.numbers.iter_mut().zip(&parts) {
            *number = part.parse().map_err(|_| error())?;
        }
        if suffix.is_empty() || is_suffix(suffix) { Ok(version) } else { Err(error()) }
    }
}

impl PartialOrd for KubernetesVersion {
    /// By the numbers; then a pre-release comes before its release. What follows a `+` does not count, but two versions
    /// that differ only there are not equal, and have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let before_release = |version: &Self| {
            let suffix = version.suffix.split('+').next().unwrap_or_default();
            suffix.strip_prefix('-').map(str::to_owned)
        };
        let ordered = self.numbers.cmp(&other.numbers).then_with(|| {
            match (before_release(self), before_release(other)) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(own), Some(other)) => compare_parts(&own, &other),
            }
        });
        (ordered != Ordering::Equal || self == other).then_some(ordered)
    }
}

/// The order of two pre-releases: part by part, numbers as numbers.
fn compare_parts(own: &str, other: &str) -> Ordering {
    let key = |part: &str| match part.parse::<u64>() {
        Ok(number) => (0, number, String::new()),
        Err(_) => (1, 0, part.to_owned()),
    };
    own.split('.').map(key).cmp(other.split('.').map(key))
}

/// Whether it is `-` or `+`, followed by parts of letters, digits and hyphens separated by dots; one `+` may follow a
/// `-`.
fn is_suffix(text: &str) -> bool {
    let (before, build) = match text.split_once('+') {
        Some((before, build)) => (before, Some(build)),
        None => (text, None),
    };
    let are_parts = |text: &str| {
        text.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    (before.is_empty() || before.strip_prefix('-').is_some_and(are_parts)) && build.is_none_or(are_parts)
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}{}", self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_people_write_them() {
        for (text, version) in [
            ("v1.31.1", "1.31.1"),
            (" 1.31", "1.31.0"),
            ("1", "1.0.0"),
            ("v01.031.1 ", "1.31.1"),
            ("v1.31.1+1234", "1.31.1+1234"),
            ("1.32.0-alpha.1", "1.32.0-alpha.1"),
            ("1.32.0-rc.1+k3s.2-a", "1.32.0-rc.1+k3s.2-a"),
        ] {
            assert_eq!(KubernetesVersion::parse(text).unwrap().to_string(), version, "{text}");
        }
        for text in
            ["", "v", "1.31.1.2", "1.x.1", "1.31+a", "1.31.1-", "1.31.1+", "1.31.1-a..b", "1.-2.3", "latest"]
        {
            let error = KubernetesVersion::parse(text).unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}
