//! Names of types that other types use.

/// Machines of their own.
pub(crate) const MACHINE_TYPE: &str = "Microsoft.Compute/virtualMachines";
/// Extensions of machines of their own.
pub(crate) const EXTENSION_TYPE: &str = "Microsoft.Compute/virtualMachines/extensions";
/// Scale sets.
pub(crate) const SET_TYPE: &str = "Microsoft.Compute/virtualMachineScaleSets";
/// Instances of uniform scale sets.
pub(crate) const INSTANCE_TYPE: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
/// Managed disks.
pub(crate) const DISK_TYPE: &str = "Microsoft.Compute/disks";
/// Snapshots.
pub(crate) const SNAPSHOT_TYPE: &str = "Microsoft.Compute/snapshots";
