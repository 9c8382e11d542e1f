//! How long operations on resource groups take.

use azure_engine::settings::latency::{CHOICE, LOGS, TypicalLatency};

/// The special before the general.
pub(super) static LATENCIES: &[TypicalLatency] = &[
    // Without resources left in it: 45, 45, 45, 47, 47, 79 s.
    ("DELETE", "resourceGroups", 46_000, LOGS),
    ("*", "*", 2_000, CHOICE),
];
