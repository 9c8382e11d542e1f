//! IDs of volumes and snapshots: those of Azure's resources.
//!
//! A volume that the in-tree driver made has the same ID: the URI of its managed disk.

use std::fmt;

use azure_types::ResourceId;

use super::cluster_place::ClusterPlace;
use super::error::{Code, Refusal, Result};

const NAMESPACE: &str = "Microsoft.Compute";
const DISKS: &str = "disks";
const SNAPSHOTS: &str = "snapshots";
const DISK_FORM: &str =
    "/subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Compute/disks/<name>";
const SNAPSHOT_FORM: &str =
    "/subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Compute/snapshots/<name>";
/// The parts of an ID between its slashes, with the empty one before the first.
const PARTS: usize = 9;

/// Reads an ID of this kind. Azure may answer a group's name in another case, so equality ignores case.
fn parse(text: &str, kind: &str) -> Option<ResourceId> {
    let id = ResourceId::parse(text).ok()?;
    let is_whole = text.split('/').count() == PARTS && id.group_name().is_some();
    let is_of_kind = id.namespace().is_some_and(|namespace| namespace.eq_ignore_ascii_case(NAMESPACE))
        && id.type_and_name_pairs().first().is_some_and(|(own, _)| own.eq_ignore_ascii_case(kind));
    (is_whole && is_of_kind).then_some(id)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $what:literal, $form:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(ResourceId);

        impl $name {
            /// The ID of this name in a group.
            pub fn new(subscription: &str, group: &str, name: &str) -> Self {
                Self(ResourceId::group(subscription, group).resource(NAMESPACE, $kind, name))
            }

            /// Reads an ID.
            ///
            /// # Errors
            /// It is malformed, which the caller gets as this code.
            pub fn parse(text: &str, code: Code) -> Result<Self> {
                let malformed = || Refusal::MalformedId { what: $what, id: text.to_owned(), expected: $form, code };
                parse(text, $kind).map(Self).ok_or_else(malformed)
            }

            /// The resource's ID.
            pub fn resource(&self) -> &ResourceId {
                &self.0
            }

            /// The subscription's ID.
            pub fn subscription(&self) -> &str {
                self.0.subscription_id()
            }

            /// The resource group.
            pub fn group(&self) -> &str {
                self.0.group_name().unwrap_or_default()
            }

            /// The resource's name.
            pub fn name(&self) -> &str {
                self.0.name()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.as_str())
            }
        }
    };
}

id!(
    /// The ID of a volume: that of its managed disk. Equality, order and hash ignore case.
    DiskId,
    DISKS,
    "volume",
    DISK_FORM
);
id!(
    /// The ID of a snapshot. Equality, order and hash ignore case.
    SnapshotId,
    SNAPSHOTS,
    "snapshot",
    SNAPSHOT_FORM
);

impl DiskId {
    /// The disk to delete for a volume's ID; `None` for the ID of something that no driver of ours made, whose deletion
    /// succeeds without a call.
    ///
    /// # Errors
    /// It begins like an ID of Azure and is malformed.
    pub fn for_deletion(text: &str) -> Result<Option<Self>> {
        if text.is_empty() {
            return Err(Refusal::Missing("volume ID"));
        }
        if !text.to_ascii_lowercase().contains("/subscriptions/") {
            return Ok(None);
        }
        Self::parse(text, Code::InvalidArgument).map(Some)
    }
}

impl SnapshotId {
    /// Reads an ID, or a bare name, which means a snapshot in the cluster's group.
    ///
    /// # Errors
    /// It has slashes and is malformed, which the caller gets as this code.
    pub fn parse_or_name(text: &str, place: &ClusterPlace, code: Code) -> Result<Self> {
        if text.contains('/') {
            return Self::parse(text, code);
        }
        Ok(Self::new(&place.subscription, &place.group, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-020. Section 3.2: exactly nine parts, compared without regard to case.
    #[test]
    fn ids_have_nine_parts_and_ignore_case() {
        let text = "/subscriptions/s/resourceGroups/Group/providers/Microsoft.Compute/disks/pvc-1";
        let id = DiskId::parse(text, Code::NotFound).unwrap();
        assert_eq!((id.subscription(), id.group(), id.name()), ("s", "Group", "pvc-1"));
        assert_eq!(id.to_string(), text);
        assert_eq!(id, DiskId::parse(&text.to_lowercase(), Code::NotFound).unwrap());
        assert_eq!(id, DiskId::new("s", "group", "pvc-1"));
        for wrong in [
            "",
            "fake-vol-id-1",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/snapshots/a",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/disks/a",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/a/b/c",
            "/subscriptions/s/resourceGroups//providers/Microsoft.Compute/disks/a",
        ] {
            assert_eq!(DiskId::parse(wrong, Code::NotFound).unwrap_err().code(), Code::NotFound, "{wrong}");
        }
    }

    /// CSI-021. Section 3.2: an ID without `/subscriptions/` is deleted without a call.
    #[test]
    fn what_is_not_azures_is_deleted_by_doing_nothing() {
        assert_eq!(DiskId::for_deletion("fake-vol-id-1"), Ok(None));
        assert_eq!(DiskId::for_deletion("").unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(DiskId::for_deletion("/subscriptions/s/x").unwrap_err().code(), Code::InvalidArgument);
        let id = DiskId::new("s", "g", "a");
        assert_eq!(DiskId::for_deletion(&id.to_string()), Ok(Some(id)));
    }

    /// CSI-022. Section 3.2: a bare name is in the cluster's group.
    #[test]
    fn a_snapshot_may_be_named_by_its_bare_name() {
        let place = ClusterPlace {
            subscription: "s".into(),
            group: "g".into(),
            location: "westus2".into(),
            is_stack: false,
        };
        let id = SnapshotId::parse_or_name("snap", &place, Code::NotFound).unwrap();
        assert_eq!(id, SnapshotId::new("s", "g", "snap"));
        assert!(SnapshotId::parse_or_name("a/b", &place, Code::NotFound).is_err());
    }
}
