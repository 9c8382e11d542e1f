//! What members of Compute's documents hold. Secrets are not among them: a refusal names
//! the value.

use azure_engine::schema::Shape::{Flag, Number, Text};
use azure_engine::schema::{Members, members};

const DISKS: &str = "Microsoft.Compute/disks";
const SNAPSHOTS: &str = "Microsoft.Compute/snapshots";
const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
/// Machines, and instances of scale sets.
const MACHINES: &str = "Microsoft.Compute/*virtualMachines";

const MODEL: &str = "properties/virtualMachineProfile";

pub(crate) static MEMBERS: &[Members] = &[
    members(
        DISKS,
        "properties",
        &["diskMBpsReadWrite", "diskIOPSReadWrite", "diskSizeGB", "maxShares"],
        Number,
    ),
    members(
        DISKS,
        "properties",
        &["burstingEnabled", "optimizedForFrequentAttach", "supportsHibernation"],
        Flag,
    ),
    members(DISKS, "properties", &["diskAccessId", "tier"], Text),
    members(DISKS, "properties/creationData", &["sourceResourceId", "sourceUri", "storageAccountId"], Text),
    members(DISKS, "properties/creationData", &["logicalSectorSize", "uploadSizeBytes"], Number),
    members(DISKS, "properties/creationData", &["performancePlus"], Flag),
    members(SNAPSHOTS, "properties", &["diskSizeGB"], Number),
    members(SNAPSHOTS, "properties", &["incremental", "supportsHibernation"], Flag),
    members(SNAPSHOTS, "properties", &["diskAccessId"], Text),
    members(
        SNAPSHOTS,
        "properties/creationData",
        &["sourceResourceId", "sourceUri", "storageAccountId"],
        Text,
    ),
    members(SNAPSHOTS, "properties/creationData", &["instantAccessDurationMinutes"], Number),
    members(
        "Microsoft.Compute/availabilitySets",
        "properties",
        &["platformFaultDomainCount", "platformUpdateDomainCount"],
        Number,
    ),
    members(MACHINES, "properties", &["licenseType", "priority"], Text),
    members(MACHINES, "properties", &["platformFaultDomain"], Number),
    members(MACHINES, "properties/hardwareProfile", &["vmSize"], Text),
    members(MACHINES, "properties/osProfile", &["adminUsername", "computerName"], Text),
    members(MACHINES, "properties/osProfile", &["allowExtensionOperations"], Flag),
    members(MACHINES, "properties/storageProfile/osDisk", &["diskSizeGB"], Number),
    members(MACHINES, "properties/storageProfile/dataDisks/*", &["diskSizeGB", "lun"], Number),
    members(
        MACHINES,
        "properties/storageProfile/dataDisks/*",
        &["toBeDetached", "writeAcceleratorEnabled"],
        Flag,
    ),
    members(MACHINES, "properties/networkProfile/networkInterfaces/*/properties", &["primary"], Flag),
    members(SETS, "sku", &["name"], Text),
    members(SETS, "sku", &["capacity"], Number),
    members(
        SETS,
        "properties",
        &["doNotRunExtensionsOnOverprovisionedVMs", "overprovision", "singlePlacementGroup", "zoneBalance"],
        Flag,
    ),
    members(SETS, "properties", &["platformFaultDomainCount"], Number),
    members(SETS, MODEL, &["licenseType", "priority"], Text),
    members(
        SETS,
        "properties/virtualMachineProfile/osProfile",
        &["adminUsername", "computerNamePrefix"],
        Text,
    ),
    members(SETS, "properties/virtualMachineProfile/storageProfile/osDisk", &["diskSizeGB"], Number),
    members(
        SETS,
        "properties/virtualMachineProfile/storageProfile/dataDisks/*",
        &["diskSizeGB", "lun"],
        Number,
    ),
    members(
        SETS,
        "properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/*/properties",
        &["enableAcceleratedNetworking", "enableIPForwarding", "primary"],
        Flag,
    ),
    members(
        SETS,
        "properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/*/properties/\
         ipConfigurations/*/properties",
        &["primary"],
        Flag,
    ),
];
