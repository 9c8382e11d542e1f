//! PersistentVolumes and VolumeAttachments: which disk is attached to which node, and where.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{self, ObjectMeta};

/// A PersistentVolume, with the members that are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Name and annotations.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// The volume's driver and handle.
    pub spec: PersistentVolumeSpec,
}

/// The source of a PersistentVolume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    /// A volume of a driver of the Container Storage Interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi: Option<CsiVolume>,
    /// A disk of the in-tree driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_disk: Option<InTreeDisk>,
}

/// A volume of a driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiVolume {
    /// The driver's name.
    pub driver: String,
    /// The volume's ID.
    pub volume_handle: String,
}

/// A disk of the in-tree driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InTreeDisk {
    /// The disk's ID.
    #[serde(rename = "diskURI")]
    pub disk_uri: String,
}

impl PersistentVolume {
    /// The object's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The ID of the disk, if the volume is of this driver or of the in-tree driver that it replaces.
    pub fn disk(&self, driver: &str) -> Option<&str> {
        match (&self.spec.csi, &self.spec.azure_disk) {
            (Some(volume), _) => (volume.driver == driver).then_some(volume.volume_handle.as_str()),
            (None, Some(disk)) => Some(&disk.disk_uri),
            (None, None) => None,
        }
    }
}

kind!(PersistentVolume, "v1", "", "persistentvolumes", ClusterResourceScope);

/// A VolumeAttachment, with the members that are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// The name.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// Driver, node and volume.
    pub spec: VolumeAttachmentSpec,
    /// Whether the volume is attached, and what the driver said of it.
    pub status: VolumeAttachmentStatus,
}

/// What is to be attached to which node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    /// The driver's name.
    pub attacher: String,
    /// The node's name.
    pub node_name: String,
    /// The volume.
    pub source: VolumeAttachmentSource,
}

/// The volume of a VolumeAttachment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSource {
    /// The name of the PersistentVolume; empty for a volume that is written in a pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub persistent_volume_name: String,
}

/// The state of a VolumeAttachment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentStatus {
    /// Whether the volume is attached.
    pub attached: bool,
    /// What the driver said of the attach.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attachment_metadata: BTreeMap<String, String>,
}

impl VolumeAttachment {
    /// The object's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

kind!(VolumeAttachment, "storage.k8s.io/v1", "storage.k8s.io", "volumeattachments", ClusterResourceScope);
