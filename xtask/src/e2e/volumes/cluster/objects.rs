//! The objects of the story.

use serde_json::{Value, json};

use super::place::NAME;
use crate::e2e::machines::SANDBOX_IMAGE;

/// The class of all volumes.
pub const CLASS: &str = "disks";

/// The storage class, with volumes of a file system.
pub fn class(file_system: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS}, "provisioner": NAME,
        "parameters": {"skuName": "Premium_LRS", "csi.storage.k8s.io/fstype": file_system}, "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete", "allowVolumeExpansion": true,
    })
}

/// The class of snapshots.
pub fn snapshot_class() -> Value {
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": CLASS},
        "driver": NAME, "deletionPolicy": "Delete",
    })
}

/// A snapshot of a claim's volume.
pub fn snapshot(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"volumeSnapshotClassName": CLASS, "source": {"persistentVolumeClaimName": claim}},
    })
}

/// Where the content of a claim comes from.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// Nowhere.
    Empty,
    /// A snapshot.
    Snapshot(&'a str),
    /// The volume of another claim.
    Claim(&'a str),
}

/// A claim of so many GiB, as a file system or as a device.
pub fn claim(name: &str, size: u32, mode: &str, content: Content<'_>) -> Value {
    let source = match content {
        Content::Empty => Value::Null,
        Content::Snapshot(name) => {
            json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": name})
        }
        Content::Claim(name) => json!({"kind": "PersistentVolumeClaim", "name": name}),
    };
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": CLASS, "accessModes": ["ReadWriteOnce"], "volumeMode": mode, "dataSource": source,
            "resources": {"requests": {"storage": format!("{size}Gi")}},
        },
    })
}

/// A pod on a node that runs a script with the claim at /data. In the script `b` is busybox, and `say` sets the message with
/// which the container ends.
pub fn pod(name: &str, node: &str, claim: &str, mode: &str, script: &str) -> Value {
    // The image has one program, which is all of its commands.
    let script = format!(
        "b() {{ /bin/busybox \"$@\"; }}; say() {{ echo \"$@\" >/dev/termination-log; }}; set -e; {script}"
    );
    let mut container = json!({
        "name": "app", "image": SANDBOX_IMAGE, "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/busybox", "sh", "-c", script],
    });
    if mode == "Block" {
        container["volumeDevices"] = json!([{"name": "data", "devicePath": "/data"}]);
    } else {
        container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node}, "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0, "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    })
}
