//! How long operations on clusters take.

use azure_engine::settings::latency::{CHOICE, TypicalLatency};

/// The special before the general. Resources in the node group take their own time.
pub(super) static LATENCIES: &[TypicalLatency] = &[
    ("CREATE", "managedClusters", 240_000, CHOICE),
    ("DELETE", "managedClusters", 240_000, CHOICE),
    ("POST", "managedClusters*", 180_000, CHOICE),
    ("*", "managedClusters", 60_000, CHOICE),
    ("CREATE", "managedClusters/agentPools", 150_000, CHOICE),
    ("DELETE", "managedClusters/agentPools", 120_000, CHOICE),
    ("*", "managedClusters/agentPools", 90_000, CHOICE),
    ("*", "fleets*", 20_000, CHOICE),
    ("*", "*", 10_000, CHOICE),
];
