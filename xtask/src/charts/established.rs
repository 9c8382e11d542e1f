//! Facts about the released versions of established charts, which `scripts/established_charts.py` wrote down.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::Value;

use crate::program::root;

/// Versions that do not differ in these facts.
#[derive(Debug, serde::Deserialize)]
pub struct Established {
    /// The versions, the oldest first.
    pub versions: Vec<String>,
    /// Each key with its default.
    pub values: BTreeMap<String, Value>,
    /// Keys without a default, with the value that a comment shows.
    pub examples: BTreeMap<String, Value>,
    /// The objects that it makes with its defaults.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare them with ours"))]
    pub objects: Vec<Value>,
}

/// All of a chart.
///
/// # Errors
/// A file cannot be read.
pub fn all(chart: &str) -> anyhow::Result<Vec<Established>> {
    let folder = root().join("tests/corpus/charts/established").join(chart);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let facts: Established =
            serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
        found.push(facts);
    }
    found.sort_by_key(|one| one.versions.first().map(|version| order(version)));
    Ok(found)
}

/// The numbers of a version, by which versions are sorted.
pub fn order(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}
