//! What came to Compute's documents with which version.

use azure_engine::version::Since;

const fn since(of: &'static str, member: &'static str, version: &'static str) -> Since {
    Since { of, member, version }
}

const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
const CARDS: &str = "properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/properties/disableTcpStateTracking";

// Of members of a model it is known that 2021-07-01 has not got them and 2024-07-01 has; in between the first version is our choice.
pub(crate) static SINCE: [Since; 9] = [
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
];
