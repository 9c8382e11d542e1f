//! What the members of a pool's `properties` hold (Azure REST reference, "Agent Pools").

use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Number, Word};
use azure_engine::types::member_table::Member;

/// Most nodes of a pool, as documented for `count`.
pub(super) const MAX_NODES: i64 = 1_000;

pub(super) static MEMBERS: [Member; 51] = [
    Member::new("artifactStreamingProfile", Anything),
    Member::new("availabilityZones", Anything),
    Member::new("capacityReservationGroupID", Anything),
    Member::new("count", Number(0, MAX_NODES)),
    Member::new("creationData", Anything),
    Member::new("currentOrchestratorVersion", Derived),
    Member::new("eTag", Derived),
    Member::new("enableAutoScaling", Flag),
    Member::new("enableEncryptionAtHost", Flag),
    Member::new("enableFIPS", Flag),
    Member::new("enableNodePublicIP", Flag),
    Member::new("enableUltraSSD", Flag),
    Member::new("gatewayProfile", Anything),
    Member::new("gpuInstanceProfile", Word(&["MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"], false)),
    Member::new("gpuProfile", Anything),
    Member::new("hostGroupID", Anything),
    Member::new("kubeletConfig", Anything),
    Member::new("kubeletDiskType", Word(&["OS", "Temporary"], true)),
    Member::new("linuxOSConfig", Anything),
    Member::new("localDNSProfile", Anything),
    Member::new("maxCount", Number(1, MAX_NODES)),
    // Azure's network without overlay begins at ten, the others likewise.
    Member::new("maxPods", Number(10, 250)),
    Member::new("messageOfTheDay", Anything),
    Member::new("minCount", Number(0, MAX_NODES)),
    Member::new("mode", Word(&["User", "System", "Gateway"], false)),
    Member::new("networkProfile", Anything),
    Member::new("nodeImageVersion", Derived),
    Member::new("nodeInitializationTaints", Anything),
    Member::new("nodeLabels", Anything),
    Member::new("nodePublicIPPrefixID", Anything),
    Member::new("nodeTaints", Anything),
    Member::new("orchestratorVersion", Anything),
    // Zero stands for the default of the machine's size.
    Member::new("osDiskSizeGB", Number(0, 2_048)),
    Member::new("osDiskType", Word(&["Managed", "Ephemeral"], true)),
    Member::new(
        "osSKU",
        Word(
            &["Ubuntu", "AzureLinux", "CBLMariner", "Windows2019", "Windows2022", "Ubuntu2204", "Ubuntu2404"],
            false,
        ),
    ),
    Member::new("osType", Word(&["Linux", "Windows"], true)),
    Member::new("podIPAllocationMode", Word(&["DynamicIndividual", "StaticBlock"], false)),
    Member::new("podSubnetID", Anything),
    Member::new("powerState", Anything),
    Member::new("proximityPlacementGroupID", Anything),
    Member::new("scaleDownMode", Word(&["Delete", "Deallocate"], true)),
    Member::new("scaleSetEvictionPolicy", Word(&["Delete", "Deallocate"], false)),
    Member::new("scaleSetPriority", Word(&["Regular", "Spot"], false)),
    Member::new("securityProfile", Anything),
    Member::new("spotMaxPrice", Anything),
    Member::new("status", Derived),
    Member::new("tags", Anything),
    Member::new("type", Word(&["VirtualMachineScaleSets", "AvailabilitySet", "VirtualMachines"], true)),
    Member::new("upgradeSettings", Anything),
    Member::new("vmSize", Anything),
    Member::new("vnetSubnetID", Anything),
];

/// Members that are fixed at creation.
pub(super) const FIXED: [&str; 20] = [
    "availabilityZones",
    "enableEncryptionAtHost",
    "enableNodePublicIP",
    "enableUltraSSD",
    "gpuInstanceProfile",
    "hostGroupID",
    "kubeletConfig",
    "kubeletDiskType",
    "linuxOSConfig",
    "maxPods",
    "nodePublicIPPrefixID",
    "osDiskSizeGB",
    "osDiskType",
    "osType",
    "podSubnetID",
    "proximityPlacementGroupID",
    "scaleSetPriority",
    "type",
    "vmSize",
    "vnetSubnetID",
];
