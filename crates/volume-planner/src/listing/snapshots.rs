//! The list of snapshots.

use serde_json::Value;

use super::page::{Page, page};
use crate::model::error::{Code, Result};
use crate::model::id::{DiskId, SnapshotId};
use crate::snapshot::observed::{ObservedSnapshot, SnapshotFacts};

/// Which snapshots a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotFilter {
    /// The one with this ID.
    pub id: Option<SnapshotId>,
    /// Those of this volume.
    pub source: Option<DiskId>,
}

/// A page of the snapshots that a request asks for, by the order of their IDs.
///
/// # Errors
/// As [`page`].
pub fn list_snapshots(
    snapshots: &[Value],
    filter: &SnapshotFilter,
    token: &str,
    max_entries: i32,
) -> Result<Page<SnapshotFacts>> {
    let listed = |document: &Value| {
        let snapshot = ObservedSnapshot(document);
        let id = SnapshotId::parse(document.get("id")?.as_str()?, Code::Internal).ok()?;
        let is_asked = filter.id.as_ref().is_none_or(|asked| *asked == id)
            && filter.source.as_ref().is_none_or(|volume| snapshot.is_of(volume));
        is_asked.then(|| snapshot.facts(id))
    };
    let mut all: Vec<_> = snapshots.iter().filter_map(listed).collect();
    all.sort_by(|one, other| one.id.cmp(&other.id));
    page(all, token, max_entries)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Sections 3.17 and 6: by ID, by source, none and in pages.
    #[test]
    fn snapshots_are_listed_by_id_and_by_source() {
        let snapshot = |name: &str, disk: &str| {
            json!({ "id": SnapshotId::new("s", "g", name).to_string(),
                "properties": { "creationData": { "sourceResourceId": DiskId::new("s", "g", disk).to_string() } } })
        };
        let mut copied = snapshot("c", "x");
        copied["properties"]["creationData"]["sourceResourceId"] =
            SnapshotId::new("s", "g", "local_c").to_string().into();
        copied["tags"] = json!({ "source_volume_id": DiskId::new("s", "g", "a").to_string() });
        let all = [copied, snapshot("b", "b"), snapshot("a", "a")];
        let names = |id: Option<&str>, source: Option<&str>, token: &str, maximum| {
            let filter = SnapshotFilter {
                id: id.map(|id| SnapshotId::new("s", "G", id)),
                source: source.map(|disk| DiskId::new("S", "g", disk)),
            };
            let page = list_snapshots(&all, &filter, token, maximum).unwrap();
            (page.entries.iter().map(|facts| facts.id.name().to_owned()).collect::<String>(), page.next_token)
        };
        assert_eq!(names(None, None, "", 0), ("abc".into(), String::new()));
        assert_eq!(names(None, None, "", 2), ("ab".into(), "2".into()));
        assert_eq!(names(Some("B"), None, "", 0), ("b".into(), String::new()));
        assert_eq!(names(Some("none"), None, "", 0), (String::new(), String::new()));
        assert_eq!(names(None, Some("a"), "", 0), ("ac".into(), String::new()));
    }
}
