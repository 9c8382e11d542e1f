//! Members that Compute's documents have since a version.

use azure_engine::types::version::Since;

const fn since(of: &'static str, member: &'static str, version: &'static str) -> Since {
    Since { of, member, version }
}

const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const AGENT: &str = "properties/osProfile/linuxConfiguration/enableVMAgentPlatformUpdates";
const AGENT_OF_A_MODEL: &str =
    "properties/virtualMachineProfile/osProfile/linuxConfiguration/enableVMAgentPlatformUpdates";
const WINDOWS_AGENT: &str = "properties/osProfile/windowsConfiguration/enableVMAgentPlatformUpdates";
const WINDOWS_AGENT_OF_A_MODEL: &str =
    "properties/virtualMachineProfile/osProfile/windowsConfiguration/enableVMAgentPlatformUpdates";
const CARDS_OF_AN_INSTANCE: &str = "properties/networkProfileConfiguration/networkInterfaceConfigurations/properties/disableTcpStateTracking";
const CARDS: &str = "properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/properties/disableTcpStateTracking";

// Of members of a model it is known that 2021-07-01 lacks them and 2024-07-01 has them; the first version in between is
// our choice.
pub(crate) static SINCE: [Since; 25] = [
    // Observed in "recent versions": the first of 2024.
    since("Microsoft.Compute/virtualMachine*", "etag", "2024-03-01"),
    since("Microsoft.Compute/virtualMachines", "properties/timeCreated", "2021-11-01"),
    since("Microsoft.Compute/virtualMachineScaleSets", "properties/timeCreated", "2021-11-01"),
    since(INSTANCES, "properties/timeCreated", "2021-11-01"),
    since(INSTANCES, "properties/resilientVMDeletionStatus", "2024-11-01"),
    since(SETS, "properties/virtualMachineProfile/timeCreated", "2024-03-01"),
    since(SETS, "properties/virtualMachineProfile/osProfile/allowExtensionOperations", "2022-08-01"),
    since(SETS, "properties/virtualMachineProfile/osProfile/requireGuestProvisionSignal", "2022-08-01"),
    since(SETS, CARDS, "2022-08-01"),
    since(INSTANCES, CARDS_OF_AN_INSTANCE, "2022-08-01"),
    since(SETS, "properties/virtualMachineProfile/storageProfile/osDisk/deleteOption", "2022-08-01"),
    since(SETS, "properties/virtualMachineProfile/storageProfile/dataDisks/deleteOption", "2022-08-01"),
    since(MACHINES, AGENT, "2022-11-01"),
    since(INSTANCES, AGENT, "2022-11-01"),
    since(SETS, AGENT_OF_A_MODEL, "2022-11-01"),
    since(MACHINES, WINDOWS_AGENT, "2022-11-01"),
    since(INSTANCES, WINDOWS_AGENT, "2022-11-01"),
    since(SETS, WINDOWS_AGENT_OF_A_MODEL, "2022-11-01"),
    since(MACHINES, "properties/storageProfile/imageReference/communityGalleryImageId", "2022-03-01"),
    since(
        SETS,
        "properties/virtualMachineProfile/storageProfile/imageReference/communityGalleryImageId",
        "2022-03-01",
    ),
    since("Microsoft.Compute/hostGroups/hosts", "properties/timeCreated", "2021-11-01"),
    since(
        "Microsoft.Compute/capacityReservationGroups/capacityReservations",
        "properties/timeCreated",
        "2021-11-01",
    ),
    since("Microsoft.Compute/disks", "properties/LastOwnershipUpdateTime", "2023-10-02"),
    since("Microsoft.Compute/galleries", "properties/sharingProfile/communityGalleryInfo", "2022-01-03"),
    since("Microsoft.Compute/galleries/images", "properties/architecture", "2022-01-03"),
];
