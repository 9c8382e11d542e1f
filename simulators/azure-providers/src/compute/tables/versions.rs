//! What came to Compute's documents with which version.

use azure_engine::version::Since;

pub(crate) static SINCE: [Since; 5] = [
    // Observed in "recent versions": the first of 2024.
    Since { of: "Microsoft.Compute/virtualMachine*", member: "etag", version: "2024-03-01" },
    Since {
        of: "Microsoft.Compute/virtualMachines",
        member: "properties/timeCreated",
        version: "2021-11-01",
    },
    Since {
        of: "Microsoft.Compute/virtualMachineScaleSets",
        member: "properties/timeCreated",
        version: "2021-11-01",
    },
    Since {
        of: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        member: "properties/timeCreated",
        version: "2021-11-01",
    },
    Since {
        of: "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        member: "properties/resilientVMDeletionStatus",
        version: "2024-11-01",
    },
];
