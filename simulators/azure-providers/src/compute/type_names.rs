//! Names of types that others than the type itself ask for.

/// Machines of their own.
pub(super) const MACHINE_TYPE: &str = "Microsoft.Compute/virtualMachines";
/// Scale sets.
pub(super) const SET_TYPE: &str = "Microsoft.Compute/virtualMachineScaleSets";
/// Instances of uniform scale sets.
pub(super) const INSTANCE_TYPE: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
/// Managed disks.
pub(super) const DISK_TYPE: &str = "Microsoft.Compute/disks";
/// Snapshots.
pub(super) const SNAPSHOT_TYPE: &str = "Microsoft.Compute/snapshots";
