//! The operations that drivers count, and their names in metrics.

/// A driver of volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// For disks.
    Disk,
    /// For shares of files.
    File,
}

impl Driver {
    /// What the names of its metrics begin with.
    pub const fn metrics_prefix(self) -> &'static str {
        match self {
            Self::Disk => "azuredisk_csi_driver",
            Self::File => "azurefile_csi_driver",
        }
    }
}

/// An operation that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new, empty volume.
    CreateVolume,
    /// A new volume with the contents of a snapshot.
    CreateVolumeFromSnapshot,
    /// A new volume with the contents of another one.
    CreateVolumeFromVolume,
    /// The end of a volume.
    DeleteVolume,
    /// Other parameters for a volume.
    ModifyVolume,
    /// A volume becomes available to a node.
    PublishVolume,
    /// A volume is taken from a node.
    UnpublishVolume,
    /// A volume grows.
    ExpandVolume,
    /// A snapshot beside its volume.
    CreateSnapshot,
    /// A snapshot in another region than its volume.
    CreateSnapshotCrossRegion,
    /// The end of a snapshot.
    DeleteSnapshot,
    /// A node mounts a volume for all of its pods.
    NodeStageVolume,
    /// The opposite of staging.
    NodeUnstageVolume,
    /// A node shows a staged volume to a pod.
    NodePublishVolume,
    /// The opposite of publishing on a node.
    NodeUnpublishVolume,
    /// A node grows the file system of a volume.
    NodeExpandVolume,
}

/// An operation, its name in metrics, the method that begins it, and the drivers that have it.
struct Row {
    operation: Operation,
    label: &'static str,
    /// `None` if only the request says that it is this one: the driver then says so to the call.
    method: Option<&'static str>,
    drivers: &'static [Driver],
}

const fn row(
    operation: Operation,
    label: &'static str,
    method: Option<&'static str>,
    drivers: &'static [Driver],
) -> Row {
    Row { operation, label, method, drivers }
}

const BOTH: &[Driver] = &[Driver::Disk, Driver::File];
const DISK: &[Driver] = &[Driver::Disk];

/// Names as the established drivers have them, in the order of [`Operation`].
#[rustfmt::skip]
const TABLE: [Row; 16] = [
    row(Operation::CreateVolume, "controller_create_volume", Some("/csi.v1.Controller/CreateVolume"), BOTH),
    row(Operation::CreateVolumeFromSnapshot, "controller_create_volume_from_snapshot", None, BOTH),
    row(Operation::CreateVolumeFromVolume, "controller_create_volume_from_volume", None, BOTH),
    row(Operation::DeleteVolume, "controller_delete_volume", Some("/csi.v1.Controller/DeleteVolume"), BOTH),
    row(Operation::ModifyVolume, "controller_modify_volume", Some("/csi.v1.Controller/ControllerModifyVolume"), BOTH),
    row(Operation::PublishVolume, "controller_publish_volume", Some("/csi.v1.Controller/ControllerPublishVolume"), DISK),
    row(Operation::UnpublishVolume, "controller_unpublish_volume", Some("/csi.v1.Controller/ControllerUnpublishVolume"), DISK),
    row(Operation::ExpandVolume, "controller_expand_volume", Some("/csi.v1.Controller/ControllerExpandVolume"), BOTH),
    row(Operation::CreateSnapshot, "controller_create_snapshot", Some("/csi.v1.Controller/CreateSnapshot"), BOTH),
    row(Operation::CreateSnapshotCrossRegion, "controller_create_snapshot_cross_region", None, DISK),
    row(Operation::DeleteSnapshot, "controller_delete_snapshot", Some("/csi.v1.Controller/DeleteSnapshot"), BOTH),
    row(Operation::NodeStageVolume, "node_stage_volume", Some("/csi.v1.Node/NodeStageVolume"), BOTH),
    row(Operation::NodeUnstageVolume, "node_unstage_volume", Some("/csi.v1.Node/NodeUnstageVolume"), BOTH),
    row(Operation::NodePublishVolume, "node_publish_volume", Some("/csi.v1.Node/NodePublishVolume"), BOTH),
    row(Operation::NodeUnpublishVolume, "node_unpublish_volume", Some("/csi.v1.Node/NodeUnpublishVolume"), BOTH),
    row(Operation::NodeExpandVolume, "node_expand_volume", Some("/csi.v1.Node/NodeExpandVolume"), DISK),
];

impl Operation {
    /// The operation that a driver counts when this method (`/csi.v1.Controller/CreateVolume`) is called, unless it
    /// learns from the request that it is another one.
    pub fn of(driver: Driver, method: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.method == Some(method) && row.drivers.contains(&driver));
        row.map(|row| row.operation)
    }

    /// The operations of a driver.
    pub fn all(driver: Driver) -> impl Iterator<Item = Self> {
        TABLE.iter().filter(move |row| row.drivers.contains(&driver)).map(|row| row.operation)
    }

    /// The value of the label `operation`.
    pub const fn label(self) -> &'static str {
        TABLE[self as usize].label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_operations() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.operation as usize, at, "{:?}", row.operation);
        }
    }

    /// CSI-062. Section 2.6 of the specification of the drivers.
    #[test]
    fn operations_have_the_established_names() {
        let names = |driver| Operation::all(driver).map(Operation::label).collect::<Vec<_>>().join(" ");
        assert_eq!(
            names(Driver::Disk),
            "controller_create_volume controller_create_volume_from_snapshot controller_create_volume_from_volume \
             controller_delete_volume controller_modify_volume controller_publish_volume controller_unpublish_volume \
             controller_expand_volume controller_create_snapshot controller_create_snapshot_cross_region \
             controller_delete_snapshot node_stage_volume node_unstage_volume node_publish_volume \
             node_unpublish_volume node_expand_volume"
        );
        assert_eq!(
            names(Driver::File),
            "controller_create_volume controller_create_volume_from_snapshot controller_create_volume_from_volume \
             controller_delete_volume controller_modify_volume controller_expand_volume controller_create_snapshot \
             controller_delete_snapshot node_stage_volume node_unstage_volume node_publish_volume node_unpublish_volume"
        );
    }

    /// A misspelt method would be counted as nothing.
    #[test]
    fn each_method_of_the_table_is_one_of_the_definition() {
        let definition = include_str!("../proto/csi.proto");
        for method in TABLE.iter().filter_map(|row| row.method) {
            let (service, name) = method.strip_prefix("/csi.v1.").unwrap().split_once('/').unwrap();
            let (_, rest) = definition.split_once(&format!("\nservice {service} {{")).unwrap();
            let methods = rest.split("\n}").next().unwrap();
            let is_there = [" (", "("].iter().any(|open| methods.contains(&format!("rpc {name}{open}")));
            assert!(is_there, "{method} is not in the definition");
        }
        assert_eq!(Operation::of(Driver::File, "/csi.v1.Node/NodeExpandVolume"), None);
        assert_eq!(Operation::of(Driver::Disk, "/csi.v1.Identity/Probe"), None);
    }
}
