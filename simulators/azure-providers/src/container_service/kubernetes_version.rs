//! Versions of Kubernetes that clusters and pools can have, and their upgrades ("Supported Kubernetes versions in Azure
//! Kubernetes Service (AKS)").

use std::fmt;

use azure_engine::refusal::{Code, Result};
use serde_json::{Value, json};

use super::words::NOT_ALLOWED;

const INCOMPATIBLE: Code = Code::azures(400, "NodePoolMcVersionIncompatible");

/// A minor version with its patches, the oldest first, and whether only long-term support has it.
struct Minor {
    minor: u32,
    patches: &'static [u32],
    long_term: bool,
}

/// The available versions; the recorded conversation has 1.30.9 where none is named. Newer ones are there for clusters
/// of today.
const MINORS: [Minor; 7] = [
    Minor { minor: 28, patches: &[5, 9, 13, 14, 15], long_term: true },
    Minor { minor: 29, patches: &[2, 4, 7, 8, 9, 10, 11, 12, 13], long_term: false },
    Minor { minor: 30, patches: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], long_term: false },
    Minor { minor: 31, patches: &[1, 2, 3, 4, 5, 6, 7, 8, 9], long_term: false },
    Minor { minor: 32, patches: &[0, 1, 2, 3, 4, 5, 6], long_term: false },
    Minor { minor: 33, patches: &[0, 1, 2, 3], long_term: false },
    Minor { minor: 34, patches: &[0, 1], long_term: false },
];

/// The minor version of clusters that ask for none.
const USUAL: u32 = 30;

/// How many minor versions a pool may be behind its control plane (Kubernetes' version skew policy).
const MAX_SKEW: u32 = 3;

/// A version with its patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    minor: u32,
    patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}", self.minor, self.patch)
    }
}

impl Version {
    /// Reads a stored version, which has its patch.
    pub(super) fn stored(text: &str) -> Option<Self> {
        let (minor, patch) = parts(text)?;
        Some(Self { minor, patch: patch? })
    }
}

fn parts(text: &str) -> Option<(u32, Option<u32>)> {
    let mut numbers = text.strip_prefix("1.")?.split('.').map(|part| part.parse::<u32>().ok());
    let minor = numbers.next()??;
    let patch = match numbers.next() {
        None => None,
        Some(patch) => Some(patch?),
    };
    numbers.next().is_none().then_some((minor, patch))
}

/// The version where a client names none.
pub(super) fn usual() -> String {
    format!("1.{USUAL}")
}

/// The version that a client's text stands for: a text without a patch is the newest of its minor version, or stays
/// what it is.
///
/// # Errors There is no such version.
pub(super) fn resolve(text: &str, current: Option<Version>) -> Result<Version> {
    let unknown = || {
        Code::azures(400, "K8sVersionNotSupported").says(format_args!(
            "Version {text} is not supported in this region. Please use [az aks get-versions] command to get the \
             supported version list in this region. For more information, please check \
             https://aka.ms/supported-version-list"
        ))
    };
    let (minor, patch) = parts(text).ok_or_else(unknown)?;
    if let Some(current) =
        current.filter(|current| current.minor == minor && patch.is_none_or(|patch| patch == current.patch))
    {
        return Ok(current);
    }
    let known = MINORS.iter().find(|known| known.minor == minor).ok_or_else(unknown)?;
    let newest = known.patches.last().copied().ok_or_else(unknown)?;
    let patch = patch.unwrap_or(newest);
    if !known.patches.contains(&patch) {
        return Err(unknown());
    }
    Ok(Version { minor, patch })
}

/// The versions that a control plane can be upgraded to, the oldest first: newer patches, and all of the next minor
/// version.
pub(super) fn upgrades(from: Version) -> Vec<Version> {
    let fits = |version: &Version| *version > from && version.minor <= from.minor + 1;
    all().filter(fits).collect()
}

fn all() -> impl DoubleEndedIterator<Item = Version> {
    MINORS
        .iter()
        .flat_map(|known| known.patches.iter().map(|patch| Version { minor: known.minor, patch: *patch }))
}

/// Whether a control plane can be upgraded from one version to another.
///
/// # Errors It would be a downgrade, or skip a minor version.
pub(super) fn check_upgrade(from: Version, to: Version) -> Result<()> {
    let upgrades = upgrades(from);
    if from == to || upgrades.contains(&to) {
        return Ok(());
    }
    let list: Vec<String> = upgrades.iter().rev().map(Version::to_string).collect();
    Err(NOT_ALLOWED.says(format_args!(
        "Upgrading Kubernetes version {from} to {to} is not allowed. Available upgrades: [{}]. Please see \
         https://aka.ms/aks-supported-k8s-ver for version details.",
        list.join(" ")
    )))
}

/// Whether a pool of one version works with a control plane of another.
///
/// # Errors
/// It is newer, or too old.
pub(super) fn check_skew(pool: Version, control_plane: Version) -> Result<()> {
    let (node, control) = (pool.minor, control_plane.minor);
    let what =
        format!("Node pool version {pool} and control plane version {control_plane} are incompatible.");
    let more = "For more information, please check https://aka.ms/version-skew-policy";
    INCOMPATIBLE.says_when(node > control, format_args!(
            "{what} Minor version of node pool version {node} is bigger than control plane version {control}. {more}"
        ))?;
    INCOMPATIBLE.says_when(
        pool > control_plane,
        format_args!(
            "{what} Patch version of node pool version {} is bigger than control plane version {}. {more}",
            pool.patch, control_plane.patch
        ),
    )?;
    INCOMPATIBLE.says_when(node + MAX_SKEW < control, format_args!(
            "{what} Minor version of node pool cannot be more than {MAX_SKEW} versions less than control plane's \
             version. Minor version of node pool is {node} and control plane is {control}."
        ))
}

/// Whether a pool can be upgraded from one version to another.
///
/// # Errors It would be a downgrade.
pub(super) fn check_pool_upgrade(from: Version, to: Version) -> Result<()> {
    if to >= from {
        return Ok(());
    }
    Err(NOT_ALLOWED.says(format_args!(
        "Downgrading agent pool version {from} to {to} is not allowed. For more information, please check \
         https://aka.ms/version-skew-policy"
    )))
}

/// The entries of an upgrade profile for one version.
pub(super) fn upgrade_list(from: Version, at_most: Option<Version>) -> Vec<Value> {
    let fits = |version: &Version| at_most.is_none_or(|most| *version <= most);
    let all = upgrades(from).into_iter().filter(fits);
    all.map(|version| json!({ "kubernetesVersion": version.to_string() })).collect()
}

/// `locations/{location}/kubernetesVersions`.
pub(super) fn by_minor() -> Value {
    let values: Vec<Value> = MINORS
        .iter()
        .map(|known| {
            let patches = known.patches.iter().map(|patch| Version { minor: known.minor, patch: *patch });
            let patches: serde_json::Map<String, Value> = patches
                .map(|version| {
                    let upgrades: Vec<String> = upgrades(version).iter().map(Version::to_string).collect();
                    (version.to_string(), json!({ "upgrades": upgrades }))
                })
                .collect();
            let plans: &[&str] = if known.long_term {
                &["AKSLongTermSupport"]
            } else {
                &["KubernetesOfficial", "AKSLongTermSupport"]
            };
            let mut value = json!({
                "version": format!("1.{}", known.minor),
                "capabilities": { "supportPlan": plans },
                "patchVersions": patches,
            });
            if known.minor == USUAL {
                value["isDefault"] = true.into();
            }
            value
        })
        .collect();
    json!({ "values": values })
}

/// `locations/{location}/orchestrators`, which came before.
pub(super) fn orchestrators() -> Vec<Value> {
    let usual = MINORS.iter().find(|known| known.minor == USUAL).and_then(|known| known.patches.last());
    all()
        .map(|version| {
            let upgrades = upgrades(version).into_iter();
            let upgrades: Vec<Value> = upgrades
                .map(|version| json!({ "orchestratorType": "Kubernetes", "orchestratorVersion": version.to_string() }))
                .collect();
            let mut shown = json!({
                "orchestratorType": "Kubernetes",
                "orchestratorVersion": version.to_string(),
                "upgrades": upgrades,
            });
            if version.minor == USUAL && Some(&version.patch) == usual {
                shown["default"] = true.into();
            }
            shown
        })
        .collect()
}

/// Versions that a new pool can have below a control plane.
pub(super) fn for_pools(control_plane: Version) -> Vec<Value> {
    all()
        .filter(|version| check_skew(*version, control_plane).is_ok())
        .map(|version| {
            let mut shown = json!({ "kubernetesVersion": version.to_string() });
            if version == control_plane {
                shown["default"] = true.into();
            }
            shown
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Version, check_skew, check_upgrade, resolve, upgrades};

    fn version(text: &str) -> Version {
        Version::stored(text).unwrap()
    }

    #[test]
    fn a_text_without_patch_is_the_newest_or_what_there_is() {
        let resolved = |text, current: Option<&str>| {
            resolve(text, current.map(version))
                .map(|version| version.to_string())
                .map_err(|refusal| refusal.code)
        };
        for (text, current, expected) in [
            ("1.30", None, Ok("1.30.9")),
            ("1.30", Some("1.30.2"), Ok("1.30.2")),
            ("1.30.4", Some("1.30.2"), Ok("1.30.4")),
            ("1.31", Some("1.30.2"), Ok("1.31.9")),
            ("1.30.77", None, Err("K8sVersionNotSupported")),
            ("1.12", None, Err("K8sVersionNotSupported")),
            ("v1.30.1", None, Err("K8sVersionNotSupported")),
            ("1.30.1.2", None, Err("K8sVersionNotSupported")),
            ("latest", None, Err("K8sVersionNotSupported")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(resolved(text, current), expected, "{text} at {current:?}");
        }
    }

    #[test]
    fn versions_go_up_one_minor_at_a_time() {
        for (from, to, fits) in [
            ("1.30.2", "1.30.2", true),
            ("1.30.2", "1.30.9", true),
            ("1.30.2", "1.31.1", true),
            ("1.30.2", "1.32.0", false),
            ("1.30.2", "1.30.1", false),
            ("1.30.2", "1.29.13", false),
        ] {
            assert_eq!(check_upgrade(version(from), version(to)).is_ok(), fits, "{from} {to}");
        }
        assert!(upgrades(version("1.34.1")).is_empty());
    }

    #[test]
    fn pools_are_never_newer_and_not_too_old() {
        for (pool, control_plane, fits) in [
            ("1.30.2", "1.30.2", true),
            ("1.30.9", "1.30.2", false),
            ("1.31.1", "1.30.9", false),
            ("1.28.15", "1.31.1", true),
            ("1.28.15", "1.32.0", false),
        ] {
            assert_eq!(
                check_skew(version(pool), version(control_plane)).is_ok(),
                fits,
                "{pool} {control_plane}"
            );
        }
    }
}
