//! Snapshots of shares: named by a time, and found by the name of their request in their metadata.

use serde_json::{Value, json};

use crate::model::document::text;
use crate::model::error::{ClassKind, Refusal, Result};
use crate::parameters::given::{Entries, Given};
use crate::parameters::share_table::SHARE_SNAPSHOT_PARAMETERS;
use crate::parameters::{share_keys, tags};

/// The metadata that has the name of the request.
pub const INITIATOR: &str = "initiator";

/// The snapshot of a request's name, among all shares and snapshots of an account (section 4.8, and its FIX: one list answers, and a
/// failed list is no absence).
///
/// # Errors
/// The name belongs to a snapshot of another share.
pub fn find<'a>(listed: &'a [Value], share: &str, name: &str) -> Result<Option<&'a str>> {
    let mut found = None;
    for entry in listed {
        let Some(time) = time_of(entry) else { continue };
        if initiator(entry) != Some(name) {
            continue;
        }
        let of = text(entry, "/name").unwrap_or_default();
        if !of.eq_ignore_ascii_case(share) {
            let difference = format!("share {of} as its source");
            return Err(Refusal::Incompatible { what: "snapshot", name: name.to_owned(), difference });
        }
        // Of two that a race has made, all replicas take the first one.
        found = Some(found.map_or(time, |former: &str| former.min(time)));
    }
    Ok(found)
}

/// The time that names a snapshot; absent for a share.
pub fn time_of(entry: &Value) -> Option<&str> {
    text(entry, "/properties/snapshotTime")
}

fn initiator(entry: &Value) -> Option<&str> {
    let metadata = entry.pointer("/properties/metadata")?.as_object()?;
    metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(INITIATOR))?.1.as_str()
}

/// The document of a new snapshot, with the metadata of its class.
///
/// # Errors
/// A key is unknown, the metadata is malformed, or it names the driver's own key.
pub fn document(class: &Entries, name: &str) -> Result<Value> {
    let given = Given::read(SHARE_SNAPSHOT_PARAMETERS, ClassKind::VolumeSnapshot, class)?;
    let mut metadata = tags::parse(given.text(share_keys::METADATA).unwrap_or_default(), None)?;
    if metadata.keys().any(|key| key.eq_ignore_ascii_case(INITIATOR)) {
        return Err(Refusal::InvalidTags {
            tags: given.owned(share_keys::METADATA).unwrap_or_default(),
            problem: format!("key {INITIATOR} is the driver's own"),
        });
    }
    metadata.insert(INITIATOR.to_owned(), name.to_owned());
    Ok(json!({ "properties": { "metadata": metadata } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Code;

    fn entry(share: &str, time: Option<&str>, name: &str) -> Value {
        json!({ "name": share, "properties": { "snapshotTime": time, "metadata": { "Initiator": name } } })
    }

    /// FILE-030. Section 4.8: a name belongs to one share; of two snapshots the first one counts.
    #[test]
    fn a_name_belongs_to_one_share() {
        let listed = [
            entry("a", None, "s"),
            entry("a", Some("2026-02-01T00:00:00.0000000Z"), "s"),
            entry("a", Some("2026-01-01T00:00:00.0000000Z"), "s"),
            entry("b", Some("2026-01-02T00:00:00.0000000Z"), "t"),
        ];
        assert_eq!(find(&listed, "A", "s"), Ok(Some("2026-01-01T00:00:00.0000000Z")));
        assert_eq!(find(&listed, "a", "u"), Ok(None));
        assert_eq!(find(&listed, "a", "t").unwrap_err().code(), Code::AlreadyExists);
        assert_eq!(find(&[], "a", "s"), Ok(None));
    }

    /// FILE-031. Section 4.3: parameters of a VolumeSnapshotClass.
    #[test]
    fn metadata_of_a_class_is_kept_beside_the_drivers() {
        let class = |value: &str| [("metadata".to_owned(), value.to_owned())].into();
        let made = document(&class("a=b,c=d"), "s").unwrap();
        assert_eq!(made["properties"]["metadata"], json!({ "a": "b", "c": "d", "initiator": "s" }));
        for bad in ["Initiator=x", "a"] {
            assert_eq!(document(&class(bad), "s").unwrap_err().code(), Code::InvalidArgument);
        }
        let odd = [("odd".to_owned(), "1".to_owned())].into();
        assert!(document(&odd, "s").unwrap_err().to_string().contains("volume snapshot class"));
    }
}
