//! The messages that side-cars send, and the objects that Kubernetes has beside them.

use std::collections::HashMap;

use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::v1::{
    CapacityRange, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateVolumeRequest,
    DeleteVolumeRequest, Volume, VolumeCapability,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The driver's name.
pub const DRIVER: &str = "disk.csi.azure.com";
/// The size of each volume.
pub const GIB: i64 = 8;
/// The finalizer of VolumeAttachments: they stay until the volume is detached.
const ATTACHER: &str = "external-attacher/disk-csi-azure-com";

/// The name of a volume, and of its PersistentVolume.
pub fn volume_name(number: usize) -> String {
    format!("pvc-{number:08}-0000-4000-8000-000000000000")
}

/// One node writes a file system.
fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: "ext4".to_owned(),
            ..MountVolume::default()
        })),
    }
}

/// A new disk that is in all zones, as for a claim that waits for no consumer.
pub fn create(number: usize) -> CreateVolumeRequest {
    let name = volume_name(number);
    let parameters = [
        ("skuName", "Premium_ZRS"),
        ("csi.storage.k8s.io/pv/name", name.as_str()),
        ("csi.storage.k8s.io/pvc/name", "claim"),
        ("csi.storage.k8s.io/pvc/namespace", "default"),
    ];
    CreateVolumeRequest {
        name: name.clone(),
        capacity_range: Some(CapacityRange { required_bytes: GIB << 30, limit_bytes: 0 }),
        volume_capabilities: vec![capability()],
        parameters: parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..CreateVolumeRequest::default()
    }
}

/// A volume is attached.
pub fn publish(volume: &Volume, node: &str) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_id: volume.volume_id.clone(),
        node_id: node.to_owned(),
        volume_capability: Some(capability()),
        volume_context: volume.volume_context.clone(),
        ..ControllerPublishVolumeRequest::default()
    }
}

/// A volume is detached.
pub fn unpublish(volume: &Volume, node: &str) -> ControllerUnpublishVolumeRequest {
    ControllerUnpublishVolumeRequest {
        volume_id: volume.volume_id.clone(),
        node_id: node.to_owned(),
        ..ControllerUnpublishVolumeRequest::default()
    }
}

/// A disk is deleted.
pub fn delete(volume: &Volume) -> DeleteVolumeRequest {
    DeleteVolumeRequest { volume_id: volume.volume_id.clone(), ..DeleteVolumeRequest::default() }
}

/// The PersistentVolume of a disk, as the provisioner creates it.
pub fn persistent_volume(name: &str, disk: &str, context: &HashMap<String, String>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        "spec": {
            "capacity": {"storage": format!("{GIB}Gi")}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "disks",
            "csi": {"driver": DRIVER, "volumeHandle": disk, "fsType": "ext4", "volumeAttributes": context},
        },
    })
}

/// The VolumeAttachment of a volume for a node, as the controller manager creates it and the attacher takes it on.
pub fn attachment(disk: &str, volume: &str, node: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {
            "name": attachment_name(disk, node), "finalizers": [ATTACHER],
            "annotations": {"csi.alpha.kubernetes.io/node-id": node},
        },
        "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}},
    })
}

/// What the attacher writes once a volume is attached.
pub fn attached(context: &HashMap<String, String>) -> Value {
    json!({"status": {"attached": true, "attachmentMetadata": context}})
}

/// The name that kube-controller-manager gives to a VolumeAttachment.
pub fn attachment_name(disk: &str, node: &str) -> String {
    let digest = Sha256::digest([disk, DRIVER, node].concat().as_bytes());
    let hexadecimal: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("csi-{hexadecimal}")
}
