//! A snapshot as Azure answered it.

use azure_types::ResourceId;
use serde_json::Value;

use crate::model::document::{number, tag, text};
use crate::model::id::{DiskId, SnapshotId};
use crate::model::size::to_bytes;
use crate::parameters::tags::SOURCE_VOLUME;

/// The answer of a GET or an element of a LIST.
#[derive(Debug, Clone, Copy)]
pub struct ObservedSnapshot<'a>(pub &'a Value);

/// What the caller is answered about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// Its ID.
    pub id: SnapshotId,
    /// The volume that it is of.
    pub source: String,
    /// Its size in bytes; 0 if Azure does not say.
    pub size_bytes: u64,
    /// When it was made, as Azure writes times.
    pub created: Option<String>,
    /// Whether it can be restored.
    pub is_ready: bool,
}

impl<'a> ObservedSnapshot<'a> {
    /// What it was copied from: a disk, or a snapshot in another region.
    pub fn copied_from(self) -> Option<&'a str> {
        text(self.0, "/properties/creationData/sourceResourceId")
    }

    /// The volume that it is of. A copy from another region names it by a tag.
    pub fn volume(self) -> Option<&'a str> {
        let is_disk = |id: &&str| {
            let id = ResourceId::parse(id);
            id.is_ok_and(|id| id.resource_type().eq_ignore_ascii_case("Microsoft.Compute/disks"))
        };
        self.copied_from().filter(is_disk).or_else(|| tag(self.0, SOURCE_VOLUME)).or(self.copied_from())
    }

    /// Whether it is of this volume.
    pub fn is_of(self, volume: &DiskId) -> bool {
        self.volume().is_some_and(|own| own.eq_ignore_ascii_case(volume.resource().as_str()))
    }

    /// Whether Azure failed to make it.
    pub fn has_failed(self) -> bool {
        text(self.0, "/properties/provisioningState") == Some("Failed")
    }

    /// Whether all of its data are copied.
    pub fn is_complete(self) -> bool {
        let percent = number(self.0, "/properties/completionPercent");
        self.has_succeeded() && percent.is_none_or(|percent| percent >= 100)
    }

    /// Whether it can be restored: with instant access, also before its data are copied.
    pub fn is_ready(self) -> bool {
        let instant = number(self.0, "/properties/creationData/instantAccessDurationMinutes");
        self.is_complete() || (instant.is_some() && self.has_succeeded())
    }

    fn has_succeeded(self) -> bool {
        text(self.0, "/properties/provisioningState") == Some("Succeeded")
    }

    /// The answer about a snapshot with this ID.
    pub fn facts(self, id: SnapshotId) -> SnapshotFacts {
        SnapshotFacts {
            id,
            source: self.volume().unwrap_or_default().to_owned(),
            size_bytes: to_bytes(number(self.0, "/properties/diskSizeGB").unwrap_or(0)),
            created: text(self.0, "/properties/timeCreated").map(str::to_owned),
            is_ready: self.is_ready(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// CSI-052. Section 3.17: what makes a snapshot ready.
    #[test]
    fn a_snapshot_is_ready_when_its_data_are_copied_or_instantly_there() {
        for (state, percent, instant, is_complete, is_ready) in [
            ("Succeeded", None, None, true, true),
            ("Succeeded", Some(100.0), None, true, true),
            ("Succeeded", Some(99.9), None, false, false),
            ("Succeeded", Some(10.0), Some(60), false, true),
            ("Creating", None, Some(60), false, false),
            ("Failed", Some(100.0), None, false, false),
        ] {
            let mut document = json!({ "properties": { "provisioningState": state, "creationData": {} } });
            if let Some(percent) = percent {
                document["properties"]["completionPercent"] = percent.into();
            }
            if let Some(instant) = instant {
                document["properties"]["creationData"]["instantAccessDurationMinutes"] = instant.into();
            }
            let snapshot = ObservedSnapshot(&document);
            assert_eq!((snapshot.is_complete(), snapshot.is_ready()), (is_complete, is_ready), "{document}");
        }
    }
}
