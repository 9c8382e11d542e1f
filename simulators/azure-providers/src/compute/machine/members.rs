//! What the documents of machines hold, and what those of scale sets and their instances have in common with them
//! (Azure REST reference, "Virtual Machines").

use azure_engine::types::member_table::Holds::{
    Anything, Children, Created, Derived, Flag, Guid, Kept, Number, Object, Objects, Text, Texts, Uses,
    UsesAll, UsesId, Word,
};
use azure_engine::types::member_table::{Holds, Member};

use crate::compute::disk::sku::MAX_GIB;

/// Most GiB of a system disk ("Introduction to Azure managed disks", operating system disk).
const MAX_SYSTEM_GIB: i64 = 4_095;
/// Largest LUN of any size.
pub(crate) const MAX_LUN: i64 = 63;

const CACHING: Holds = Word(&["None", "ReadOnly", "ReadWrite"], true);
const DETACH_OR_DELETE: Holds = Word(&["Detach", "Delete"], true);

const GOES: Holds = Word(&["Delete", "Detach"], false);
const SYSTEMS: Holds = Word(&["Linux", "Windows"], false);

static MANAGED_DISK: [Member; 3] = managed_disk(Member::new("storageAccountType", Text));
static MANAGED_DATA_DISK: [Member; 3] =
    managed_disk(Member::new("storageAccountType", Text).or_text("Standard_LRS"));

const fn managed_disk(kind: Member) -> [Member; 3] {
    [Member::new("diskEncryptionSet", Uses("diskEncryptionSets")), Member::new("id", UsesId("disks")), kind]
}

const fn system_disk(caching: &'static str, goes: Member, [name, kind]: [Member; 2]) -> [Member; 9] {
    [
        Member::new("caching", CACHING).or_text(caching),
        Member::new("createOption", Word(&["FromImage", "Attach", "Empty"], true)),
        goes,
        Member::new("diskSizeGB", Number(1, MAX_SYSTEM_GIB)).called("osDisk.diskSizeGB"),
        Member::new("managedDisk", Object(&MANAGED_DISK)).or_empty(),
        name,
        kind,
        Member::new("vhd", Anything),
        Member::new("writeAcceleratorEnabled", Flag),
    ]
}

const fn data_disk(options: &'static [&'static str], goes: Member, leaves: Member) -> [Member; 11] {
    [
        Member::new("caching", CACHING),
        Member::new("createOption", Word(options, true)),
        goes,
        Member::new("detachOption", Word(&["ForceDetach"], false)),
        Member::new("diskSizeGB", Number(1, MAX_GIB)).called("dataDisk.diskSizeGB"),
        Member::new("lun", Number(0, MAX_LUN)).required().called("dataDisk.lun"),
        Member::new("managedDisk", Object(&MANAGED_DATA_DISK)).or_empty(),
        Member::new("name", Text),
        Member::new("sourceResource", Anything),
        leaves,
        Member::new("writeAcceleratorEnabled", Flag),
    ]
}

static SYSTEM_DISK: [Member; 9] = system_disk(
    "ReadWrite",
    Member::new("deleteOption", DETACH_OR_DELETE),
    [
        Member::new("name", Text).fixed().called("osDisk.name"),
        Member::new("osType", SYSTEMS).fixed().called("osDisk.osType"),
    ],
);
static SYSTEM_DISK_OF_MODEL: [Member; 9] = system_disk(
    "None",
    Member::new("deleteOption", GOES),
    [Member::new("name", Text), Member::new("osType", SYSTEMS)],
);
static DATA_DISK: [Member; 11] = data_disk(
    &["Attach", "Empty", "FromImage", "Copy", "Restore"],
    Member::new("deleteOption", DETACH_OR_DELETE),
    Member::new("toBeDetached", Flag).or_flag(false),
);
static DATA_DISK_OF_MODEL: [Member; 11] = data_disk(
    &["Empty", "FromImage", "Copy", "Restore"],
    Member::new("deleteOption", GOES),
    Member::new("toBeDetached", Derived),
);

/// The disks of a machine.
pub(crate) static STORAGE: [Member; 3] = [
    Member::new("dataDisks", Objects(&DATA_DISK)).or_empty(),
    Member::new("imageReference", Anything).fixed().called("imageReference"),
    Member::new("osDisk", Object(&SYSTEM_DISK)).or_empty(),
];
/// The disks of a scale set's model.
pub(crate) static STORAGE_OF_MODEL: [Member; 2] = [
    Member::new("dataDisks", Objects(&DATA_DISK_OF_MODEL)),
    Member::new("osDisk", Object(&SYSTEM_DISK_OF_MODEL)).or_empty(),
];
/// The disks that an instance has for itself.
pub(crate) static STORAGE_OF_INSTANCE: [Member; 3] = [
    Member::new("dataDisks", Objects(&DATA_DISK)),
    Member::new("imageReference", Kept),
    Member::new("osDisk", Kept),
];

static CONTENT: [Member; 1] = [Member::new("content", Text).secret()];
static WINDOWS: [Member; 4] = [
    Member::new("additionalUnattendContent", Objects(&CONTENT)),
    Member::new("enableAutomaticUpdates", Flag),
    Member::new("enableVMAgentPlatformUpdates", Flag),
    Member::new("provisionVMAgent", Flag),
];
static LINUX: [Member; 3] = [
    Member::new("disablePasswordAuthentication", Flag),
    Member::new("enableVMAgentPlatformUpdates", Flag),
    Member::new("provisionVMAgent", Flag),
];

/// The system of a machine; the arguments are the members for its name and its administrator.
pub(crate) const fn system(name: Member, administrator: Member) -> [Member; 8] {
    [
        Member::new("adminPassword", Text).secret(),
        administrator,
        Member::new("allowExtensionOperations", Flag),
        name,
        Member::new("customData", Text).secret(),
        Member::new("linuxConfiguration", Object(&LINUX)),
        Member::new("requireGuestProvisionSignal", Flag),
        Member::new("windowsConfiguration", Object(&WINDOWS)),
    ]
}

static SYSTEM: [Member; 8] =
    system(Member::new("computerName", Text).fixed(), Member::new("adminUsername", Text).fixed());

static IP_CONFIGURATION: [Member; 6] = [
    Member::new("applicationSecurityGroups", UsesAll("Microsoft.Network/applicationSecurityGroups")),
    Member::new(
        "loadBalancerBackendAddressPools",
        UsesAll("Microsoft.Network/loadBalancers/backendAddressPools"),
    ),
    Member::new("loadBalancerInboundNatPools", UsesAll("Microsoft.Network/loadBalancers/inboundNatPools")),
    Member::new("primary", Flag),
    Member::new("privateIPAddressVersion", Word(&["IPv4", "IPv6"], true)),
    Member::new("subnet", Uses("Microsoft.Network/virtualNetworks/subnets")),
];
static DNS: [Member; 1] = [Member::new("dnsServers", Texts).or_empty()];
static INTERFACE_CONFIGURATION: [Member; 8] = [
    Member::new("disableTcpStateTracking", Flag).or_flag(false),
    Member::new("dnsSettings", Object(&DNS)).or_empty(),
    Member::new("enableAcceleratedNetworking", Flag).or_flag(false),
    Member::new("enableIPForwarding", Flag).or_flag(false),
    Member::new("ipConfigurations", Children(&IP_CONFIGURATION)).required(),
    Member::new("networkSecurityGroup", Uses("Microsoft.Network/networkSecurityGroups")),
    Member::new("primary", Flag),
    Member::new("provisioningState", Derived),
];

/// The interfaces that a model, or an instance of it, has.
pub(crate) static NETWORK_OF_MODEL: [Member; 3] = [
    Member::new("healthProbe", Uses("Microsoft.Network/loadBalancers/probes")),
    Member::new("networkApiVersion", Text),
    Member::new("networkInterfaceConfigurations", Children(&INTERFACE_CONFIGURATION)),
];

static OF_INTERFACE: [Member; 2] =
    [Member::new("deleteOption", DETACH_OR_DELETE), Member::new("primary", Flag)];
static INTERFACE: [Member; 2] = [
    Member::new("id", UsesId("Microsoft.Network/networkInterfaces"))
        .required()
        .called("networkProfile.networkInterfaces.id"),
    Member::new("properties", Object(&OF_INTERFACE)).closed(),
];
static NETWORK: [Member; 3] = [
    Member::new("networkApiVersion", Text),
    Member::new("networkInterfaceConfigurations", Children(&INTERFACE_CONFIGURATION)),
    Member::new("networkInterfaces", Objects(&INTERFACE)).closed(),
];

static HARDWARE: [Member; 1] = [Member::new("vmSize", Text).required()];

static RESERVATION: [Member; 1] =
    [Member::new("capacityReservationGroup", Uses("capacityReservationGroups"))];

/// A machine.
pub(crate) static MACHINE: [Member; 15] = [
    Member::new("hardwareProfile", Object(&HARDWARE)).or_empty(),
    Member::new("availabilitySet", Uses("availabilitySets")).fixed().called("availabilitySet.id"),
    Member::new("capacityReservation", Object(&RESERVATION)),
    Member::new("instanceView", Derived),
    Member::new("licenseType", Text),
    Member::new("networkProfile", Object(&NETWORK)).or_empty(),
    Member::new("osProfile", Object(&SYSTEM)),
    Member::new("platformFaultDomain", Number(-1, i64::MAX)),
    Member::new("priority", Text),
    Member::new("proximityPlacementGroup", Uses("proximityPlacementGroups"))
        .fixed()
        .called("proximityPlacementGroup.id"),
    Member::new("resources", Derived),
    Member::new("storageProfile", Object(&STORAGE)).or_empty(),
    Member::new("timeCreated", Created),
    Member::new("virtualMachineScaleSet", Uses("virtualMachineScaleSets"))
        .fixed()
        .called("virtualMachineScaleSet.id"),
    Member::new("vmId", Guid),
];
