//! The service accounts of the driver and of its side-cars, as in its chart.

use crate::e2e::rights::Account;

/// The service account of the driver as controller, and of its side-cars.
pub const CONTROLLER: Account =
    Account { name: "csi-azuredisk-controller-sa", folder: "csi-azuredisk-controller" };
/// The service account of the driver on nodes.
pub const NODE: Account = Account { name: "csi-azuredisk-node-sa", folder: "csi-azuredisk-node" };
/// The service account of the controller of snapshots.
pub const SNAPSHOTS: Account =
    Account { name: "csi-snapshot-controller-sa", folder: "csi-snapshot-controller" };
