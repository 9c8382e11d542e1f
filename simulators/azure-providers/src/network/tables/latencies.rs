//! How long operations on networks take.

use azure_engine::settings::latency::{CHOICE, LOGS, TypicalLatency};

/// The special before the general.
pub(crate) static LATENCIES: &[TypicalLatency] = &[
    // 2, 3, 3, 6, 7, 8, 11 s; deletion 11, 11, 11, 12 s.
    ("CREATE", "publicIPAddresses", 6_000, LOGS),
    ("DELETE", "publicIPAddresses", 11_000, LOGS),
    ("*", "publicIP*", 3_000, CHOICE),
    // 0, 2, 3, 5, 6, 6, 9, 12, 13 s; deletion eight times 11 s, then 12, 13 s. A further pool, probe or
    // rule, which is an update: 1, 1, 1, 2, 4, 4, 6, 7, 9 s.
    ("CREATE", "loadBalancers", 6_000, LOGS),
    ("DELETE", "loadBalancers", 11_000, LOGS),
    ("*", "loadBalancers*", 4_000, LOGS),
    // 4, 5, 6, 6, 7, 9, 11, 14 s; a subnet, which is an update: 4, 5, 5, 6, 7, 13 s.
    ("CREATE", "virtualNetworks", 6_500, LOGS),
    ("*", "virtualNetworks*", 5_500, LOGS),
    // 6, 7, 12 s; deletion 2, 11, 11 s; a rule 3 s.
    ("CREATE", "networkSecurityGroups", 7_000, LOGS),
    ("DELETE", "networkSecurityGroups", 11_000, LOGS),
    ("*", "networkSecurityGroups*", 3_000, LOGS),
    // One log.
    ("CREATE", "natGateways", 13_000, LOGS),
    ("*", "natGateways", 5_000, CHOICE),
    ("*", "privateEndpoints", 20_000, CHOICE),
    ("*", "privateLinkServices*", 10_000, CHOICE),
    ("*", "*", 4_000, CHOICE),
];
