//! What came to Compute's documents with which version.

use azure_engine::version::Since;

const fn since(of: &'static str, member: &'static str, version: &'static str) -> Since {
    Since { of, member, version }
}

const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

pub(crate) static SINCE: [Since; 5] = [
    // Observed in "recent versions": the first of 2024.
    since("Microsoft.Compute/virtualMachine*", "etag", "2024-03-01"),
    since("Microsoft.Compute/virtualMachines", "properties/timeCreated", "2021-11-01"),
    since("Microsoft.Compute/virtualMachineScaleSets", "properties/timeCreated", "2021-11-01"),
    since(INSTANCES, "properties/timeCreated", "2021-11-01"),
    since(INSTANCES, "properties/resilientVMDeletionStatus", "2024-11-01"),
];
