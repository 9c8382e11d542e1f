//! What whoever writes machines must be allowed to join or read ("Azure permissions for Compute", "… for Networking").

use azure_engine::join::Join;

const fn join(of: &'static str, members: &'static [&'static str], action: &'static str) -> Join {
    Join { of, members, action }
}

/// Sets and their instances, which hold configurations of interfaces.
const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets*";
const MACHINES: &str = "Microsoft.Compute/virtualMachine*";

pub(crate) static JOINS: [Join; 13] = [
    join(
        "Microsoft.Compute/virtualMachines",
        &["networkInterfaces"],
        "Microsoft.Network/networkInterfaces/join/action",
    ),
    join(SETS, &["subnet"], "Microsoft.Network/virtualNetworks/subnets/join/action"),
    join(SETS, &["networkSecurityGroup"], "Microsoft.Network/networkSecurityGroups/join/action"),
    join(
        SETS,
        &["loadBalancerBackendAddressPools"],
        "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
    ),
    join(
        SETS,
        &["loadBalancerInboundNatPools"],
        "Microsoft.Network/loadBalancers/inboundNatPools/join/action",
    ),
    join(SETS, &["healthProbe"], "Microsoft.Network/loadBalancers/probes/join/action"),
    join(SETS, &["publicIPPrefix"], "Microsoft.Network/publicIPPrefixes/join/action"),
    join(
        SETS,
        &["applicationSecurityGroups"],
        "Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
    ),
    join(MACHINES, &["managedDisk"], "Microsoft.Compute/disks/write"),
    join(MACHINES, &["diskEncryptionSet"], "Microsoft.Compute/diskEncryptionSets/read"),
    join(
        MACHINES,
        &["capacityReservationGroup"],
        "Microsoft.Compute/capacityReservationGroups/deploy/action",
    ),
    join("Microsoft.Compute/disks", &["sourceResourceId"], "Microsoft.Compute/disks/beginGetAccess/action"),
    join(
        "Microsoft.Compute/snapshots",
        &["sourceResourceId"],
        "Microsoft.Compute/disks/beginGetAccess/action",
    ),
];
