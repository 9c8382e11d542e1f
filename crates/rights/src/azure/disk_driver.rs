//! What the driver for disks does as controller. On nodes it calls nothing of Azure.

use super::grant::{Grant, Place};
use crate::Feature::{DiskAccesses, DiskEncryptionSets, VirtualMachines, Volumes};
use crate::{Feature, Program};

const fn call(
    actions: &'static [&'static str],
    place: Place,
    features: &'static [&'static [Feature]],
    purpose: &'static str,
) -> Grant {
    Grant { program: Program::DiskController, actions, place, features, purpose, is_join: false }
}

pub(super) const SIZES: Grant = call(
    &["Microsoft.Compute/skus/read"],
    Place::MachineSubscription,
    &[&[Volumes]],
    "how many disks each size of machine takes. Without it the [rule of the size's family](volumes/attach-limits.md) holds",
);

pub(super) const DISKS: Grant = call(
    &["Microsoft.Compute/disks/read", "Microsoft.Compute/disks/write", "Microsoft.Compute/disks/delete"],
    Place::Disks,
    &[&[Volumes]],
    "volumes; Azure also checks `read` and `write` of a disk that is attached",
);

pub(super) const SNAPSHOTS: Grant = call(
    &[
        "Microsoft.Compute/snapshots/read",
        "Microsoft.Compute/snapshots/write",
        "Microsoft.Compute/snapshots/delete",
    ],
    Place::Disks,
    &[&[Volumes]],
    "snapshots, and volumes from them",
);

pub(super) const SOURCES: Grant = call(
    &["Microsoft.Compute/disks/beginGetAccess/action"],
    Place::Disks,
    &[&[Volumes]],
    "Azure checks it where a snapshot or a volume is made from another one",
);

pub(super) const OPERATIONS: Grant = call(
    &["Microsoft.Compute/locations/diskOperations/read", "Microsoft.Compute/locations/operations/read"],
    Place::Disks,
    &[&[Volumes]],
    "the results of writes",
);

pub(super) const INSTANCES: Grant = call(
    &[
        "Microsoft.Compute/virtualMachineScaleSets/read",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
    ],
    Place::ScaleSets,
    &[&[Volumes]],
    "disks of instances",
);

pub(super) const MACHINES: Grant = call(
    &["Microsoft.Compute/virtualMachines/read", "Microsoft.Compute/virtualMachines/write"],
    Place::VirtualMachines,
    &[&[Volumes, VirtualMachines]],
    "disks of virtual machines, those of flexible scale sets included",
);

pub(super) const ENCRYPTION: Grant = call(
    &["Microsoft.Compute/diskEncryptionSets/read"],
    Place::EncryptionSets,
    &[&[Volumes, DiskEncryptionSets]],
    "Azure checks it where a disk or a machine's disk names a set",
);

pub(super) const ACCESSES: Grant = call(
    &["Microsoft.Compute/diskAccesses/read"],
    Place::DiskAccesses,
    &[&[Volumes, DiskAccesses]],
    "Azure checks it where a disk names one",
);
