//! The named latency profiles, with where each figure comes from. Types are named here as data, as in any profile that
//! a user gives.

use super::latency::{LatencyProfile, LatencyRule};

/// Durations that Terraform printed for one resource in logs that people published; the median of so
/// many logs. They hold the client's own polling, so that Azure is a little faster.
const LOGS: &str = "median of public Terraform logs";
/// Where we found no figure.
const CHOICE: &str = "our choice";

/// (verb, resource type, milliseconds, source), the special before the general.
const OPERATIONS: [(&str, &str, u64, &str); 31] = [
    // 2, 3, 3, 6, 7, 8, 11 s; deletion 11, 11, 11, 12 s.
    ("CREATE", "Microsoft.Network/publicIPAddresses", 6_000, LOGS),
    ("DELETE", "Microsoft.Network/publicIPAddresses", 11_000, LOGS),
    ("*", "Microsoft.Network/publicIP*", 3_000, CHOICE),
    // 0, 2, 3, 5, 6, 6, 9, 12, 13 s; deletion eight times 11 s, then 12, 13 s. A further pool, probe or
    // rule, which is an update: 1, 1, 1, 2, 4, 4, 6, 7, 9 s.
    ("CREATE", "Microsoft.Network/loadBalancers", 6_000, LOGS),
    ("DELETE", "Microsoft.Network/loadBalancers", 11_000, LOGS),
    ("*", "Microsoft.Network/loadBalancers*", 4_000, LOGS),
    // 4, 5, 6, 6, 7, 9, 11, 14 s; a subnet, which is an update: 4, 5, 5, 6, 7, 13 s.
    ("CREATE", "Microsoft.Network/virtualNetworks", 6_500, LOGS),
    ("*", "Microsoft.Network/virtualNetworks*", 5_500, LOGS),
    // 6, 7, 12 s; deletion 2, 11, 11 s; a rule 3 s.
    ("CREATE", "Microsoft.Network/networkSecurityGroups", 7_000, LOGS),
    ("DELETE", "Microsoft.Network/networkSecurityGroups", 11_000, LOGS),
    ("*", "Microsoft.Network/networkSecurityGroups*", 3_000, LOGS),
    // One log.
    ("CREATE", "Microsoft.Network/natGateways", 13_000, LOGS),
    ("*", "Microsoft.Network/natGateways", 5_000, CHOICE),
    ("*", "Microsoft.Network/privateEndpoints", 20_000, CHOICE),
    ("*", "Microsoft.Network/privateLinkServices*", 10_000, CHOICE),
    ("*", "Microsoft.Network/*", 4_000, CHOICE),
    // 16, 18, 19, 20, 50, 50, 53, 77 s; deletion 51 s.
    ("CREATE", "Microsoft.Compute/virtualMachines", 35_000, LOGS),
    ("DELETE", "Microsoft.Compute/virtualMachines", 51_000, LOGS),
    ("POST", "Microsoft.Compute/virtualMachines/deallocate", 30_000, CHOICE),
    ("POST", "Microsoft.Compute/virtualMachines", 20_000, CHOICE),
    ("*", "Microsoft.Compute/virtualMachines", 10_000, CHOICE),
    // 73 and 130 s.
    ("CREATE", "Microsoft.Compute/virtualMachineScaleSets", 73_000, LOGS),
    ("DELETE", "Microsoft.Compute/virtualMachineScaleSets", 60_000, CHOICE),
    ("PUT", "Microsoft.Compute/virtualMachineScaleSets*", 15_000, CHOICE),
    ("*", "Microsoft.Compute/virtualMachineScaleSets*", 30_000, CHOICE),
    // 4, 5, 7, 9, 11 s; deletion five times 11 s.
    ("CREATE", "Microsoft.Compute/disks", 7_000, LOGS),
    ("DELETE", "Microsoft.Compute/disks", 11_000, LOGS),
    ("*", "Microsoft.Compute/disks*", 4_000, CHOICE),
    ("*", "Microsoft.Compute/*", 10_000, CHOICE),
    // Without resources left in it: 45, 45, 45, 47, 47, 79 s.
    ("DELETE", "Microsoft.Resources/resourceGroups", 46_000, LOGS),
    ("*", "Microsoft.Resources/*", 2_000, CHOICE),
];

/// The time to an answer, as OPERATIONS.
const ANSWERS: [(&str, &str, u64, &str); 5] = [
    ("GET", "*/locations/operations", 40, CHOICE),
    ("LIST", "Microsoft.Compute/*", 200, CHOICE),
    ("LIST", "*", 120, CHOICE),
    ("GET", "*", 60, CHOICE),
    ("*", "*", 350, CHOICE),
];

fn rules(table: &[(&str, &str, u64, &str)]) -> Vec<LatencyRule> {
    table
        .iter()
        .map(|(method, resource_type, ms, source)| LatencyRule {
            method: (*method).into(),
            resource_type: (*resource_type).into(),
            ms: *ms,
            source: (*source).into(),
        })
        .collect()
}

impl LatencyProfile {
    /// Durations that users of Azure know: measured ones where we found any, each with its source.
    pub fn typical() -> Self {
        Self {
            rules: rules(&OPERATIONS),
            otherwise_ms: 2_000,
            answers: rules(&ANSWERS),
            answer_otherwise_ms: 100,
            jitter: 0.2,
        }
    }

    /// The profile of a name: `instant` or `typical`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "instant" => Some(Self::instant()),
            "typical" => Some(Self::typical()),
            _ => None,
        }
    }
}
