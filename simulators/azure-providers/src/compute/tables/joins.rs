//! The rights to join or read that writers of machines need ("Azure permissions for Compute", "… for Networking").

use azure_engine::types::join::Join;

/// Documents of a type, a referencing member, and the action on the referenced resource.
macro_rules! join {
    ($of:literal, $member:literal, $action:literal) => {
        Join {
            of: concat!("Microsoft.Compute/", $of),
            members: &[$member],
            action: concat!("Microsoft.", $action),
        }
    };
}

/// Sets and their instances hold configurations of interfaces.
pub(crate) static JOINS: [Join; 14] = [
    join!("virtualMachines", "networkInterfaces", "Network/networkInterfaces/join/action"),
    join!("virtualMachineScaleSets*", "subnet", "Network/virtualNetworks/subnets/join/action"),
    join!("virtualMachineScaleSets*", "networkSecurityGroup", "Network/networkSecurityGroups/join/action"),
    join!(
        "virtualMachineScaleSets*",
        "loadBalancerBackendAddressPools",
        "Network/loadBalancers/backendAddressPools/join/action"
    ),
    join!(
        "virtualMachineScaleSets*",
        "loadBalancerInboundNatPools",
        "Network/loadBalancers/inboundNatPools/join/action"
    ),
    join!("virtualMachineScaleSets*", "healthProbe", "Network/loadBalancers/probes/join/action"),
    join!("virtualMachineScaleSets*", "publicIPPrefix", "Network/publicIPPrefixes/join/action"),
    join!(
        "virtualMachineScaleSets*",
        "applicationSecurityGroups",
        "Network/applicationSecurityGroups/joinIpConfiguration/action"
    ),
    join!("virtualMachine*", "managedDisk", "Compute/disks/write"),
    join!("virtualMachine*", "diskEncryptionSet", "Compute/diskEncryptionSets/read"),
    join!("virtualMachine*", "capacityReservationGroup", "Compute/capacityReservationGroups/deploy/action"),
    join!("disks", "diskEncryptionSetId", "Compute/diskEncryptionSets/read"),
    join!("disks", "sourceResourceId", "Compute/disks/beginGetAccess/action"),
    join!("snapshots", "sourceResourceId", "Compute/disks/beginGetAccess/action"),
];
