//! The tables of differences between our charts and the established ones, made from the facts about both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::established::{Established, order};
use super::values::{Chart, shown};

/// A chart of ours that takes the values of an established one.
#[derive(Debug)]
pub struct Counterpart {
    /// Its folder, which has the established chart's name.
    pub chart: &'static str,
    /// The page with the differences.
    pub page: &'static str,
    /// Objects of the established chart that ours does not make: kind, name and the reason.
    pub left_out: &'static [(&'static str, &'static str, &'static str)],
}

/// All of them.
pub const COUNTERPARTS: [Counterpart; 3] = [
    Counterpart {
        chart: "cloud-provider-azure",
        page: "docs/compatibility.md",
        left_out: &[(
            "RoleBinding",
            "system:cloud-controller-manager:extension-apiserver-authentication-reader",
            "callers of `/metrics` are known by their tokens, so no certificate authorities are read",
        )],
    },
    Counterpart {
        chart: "azuredisk-csi-driver",
        page: "docs/volumes/switching.md",
        left_out: &[
            (
                "ClusterRole",
                "csi-azuredisk-controller-secret-role",
                "a Role for the one Secret with azure.json, in its namespace, takes its place",
            ),
            ("ClusterRoleBinding", "csi-azuredisk-controller-secret-binding", "the same"),
            (
                "ClusterRole",
                "csi-snapshot-controller-leaderelection-role",
                "a Role for the one Lease, in the release's namespace, takes its place",
            ),
            ("ClusterRoleBinding", "csi-snapshot-controller-leaderelection-binding", "the same"),
        ],
    },
    Counterpart {
        chart: "azurefile-csi-driver",
        page: "docs/shares/switching.md",
        left_out: &[
            (
                "ClusterRole",
                "csi-azurefile-controller-secret-role",
                "Roles for the Secret with azure.json and for the namespaces of `accountKeys.namespaces` take its place; `[\"*\"]` makes it",
            ),
            ("ClusterRoleBinding", "csi-azurefile-controller-secret-binding", "the same"),
            ("ClusterRole", "csi-azurefile-node-secret-role", "the same, for node pods"),
            ("ClusterRoleBinding", "csi-azurefile-node-secret-binding", "the same"),
            ("ClusterRole", "azurefile-external-attacher-role", "no side-car of the chart attaches volumes"),
            ("ClusterRoleBinding", "azurefile-csi-attacher-binding", "the same"),
            (
                "ClusterRole",
                "csi-snapshot-controller-leaderelection-role",
                "a Role for the one Lease, in the release's namespace, takes its place",
            ),
            ("ClusterRoleBinding", "csi-snapshot-controller-leaderelection-binding", "the same"),
        ],
    },
];

/// Markdown: defaults that differ, values without effect, objects that are left out.
pub fn tables(
    established: &[Established],
    chart: &Chart,
    left_out: &[(&'static str, &'static str, &'static str)],
) -> String {
    let every: BTreeSet<Vec<u64>> =
        established.iter().flat_map(|one| &one.versions).map(|version| order(version)).collect();
    let every: Vec<Vec<u64>> = every.into_iter().collect();
    let keys = chart.keys();
    let mut text =
        String::from("| value | default of the established chart | default here |\n|---|---|---|\n");
    // A tag differs in each version: the facts have none.
    for (key, ours) in keys.iter().filter(|(key, _)| !key.ends_with(".tag")) {
        let mut theirs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for one in established {
            if let Some(value) = one.values.get(key).filter(|value| Some(*value) != ours.default.as_ref()) {
                let versions = one.versions.iter().map(String::as_str);
                theirs.entry(short(value)).or_default().extend(versions);
            }
        }
        let all: Vec<String> =
            theirs.iter().map(|(value, versions)| format!("{value} ({})", span(versions, &every))).collect();
        if !all.is_empty() {
            let _infallible =
                writeln!(text, "| `{key}` | {} | {} |", all.join(", "), default(ours.default.as_ref()));
        }
    }
    text += "\n| value without effect | in versions |\n|---|---|\n";
    for (key, _) in keys.iter().filter(|(_, key)| key.is_without_effect()) {
        let known = |one: &&Established| one.values.contains_key(key) || one.examples.contains_key(key);
        let versions: Vec<&str> = established
            .iter()
            .filter(known)
            .flat_map(|one| one.versions.iter().map(String::as_str))
            .collect();
        if !versions.is_empty() {
            let _infallible = writeln!(text, "| `{key}` | {} |", span(&versions, &every));
        }
    }
    text += "\n| object that is not made | why |\n|---|---|\n";
    for (kind, name, why) in left_out {
        let _infallible = writeln!(text, "| {kind} `{name}` | {why} |");
    }
    text
}

fn default(value: Option<&Value>) -> String {
    value.map_or_else(|| "none".to_owned(), short)
}

/// A value, unless it is too long for a cell.
fn short(value: &Value) -> String {
    let text = shown(Some(value));
    if text.starts_with('`') {
        text
    } else {
        format!("a longer {}", if value.is_array() { "list" } else { "map" })
    }
}

/// Versions as ranges of all that there are.
fn span(versions: &[&str], every: &[Vec<u64>]) -> String {
    let mut found: Vec<(usize, &str)> = versions
        .iter()
        .filter_map(|version| Some((every.iter().position(|one| *one == order(version))?, *version)))
        .collect();
    found.sort_unstable();
    let runs = found.chunk_by(|one, next| one.0 + 1 == next.0);
    let shown = runs.map(|run| match run {
        [] => String::new(),
        [(_, only)] => (*only).to_owned(),
        [(_, first), .., (_, last)] => format!("{first} to {last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_versions_are_a_range() {
        let every = ["1.2.0", "1.2.1", "1.10.0", "1.11.0+20240101"].map(order);
        assert_eq!(span(&["1.2.0", "1.11.0+20240101", "1.10.0"], &every), "1.2.0, 1.10.0 to 1.11.0+20240101");
        assert_eq!(span(&[], &every), "");
    }
}
