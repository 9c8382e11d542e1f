//! How long operations on machines and disks take.

use azure_engine::settings::latency::{CHOICE, LOGS, TypicalLatency};

/// The special before the general.
pub(crate) static LATENCIES: &[TypicalLatency] = &[
    // 16, 18, 19, 20, 50, 50, 53, 77 s; deletion 51 s.
    ("CREATE", "virtualMachines", 35_000, LOGS),
    ("DELETE", "virtualMachines", 51_000, LOGS),
    ("POST", "virtualMachines/deallocate", 30_000, CHOICE),
    ("POST", "virtualMachines", 20_000, CHOICE),
    ("*", "virtualMachines", 10_000, CHOICE),
    // 73 and 130 s.
    ("CREATE", "virtualMachineScaleSets", 73_000, LOGS),
    ("DELETE", "virtualMachineScaleSets", 60_000, CHOICE),
    ("PUT", "virtualMachineScaleSets*", 15_000, CHOICE),
    ("*", "virtualMachineScaleSets*", 30_000, CHOICE),
    // 4, 5, 7, 9, 11 s; deletion five times 11 s.
    ("CREATE", "disks", 7_000, LOGS),
    ("DELETE", "disks", 11_000, LOGS),
    // From the end of a machine until its disks are free.
    ("POST", "disks/release", 15_000, CHOICE),
    ("*", "disks*", 4_000, CHOICE),
    ("*", "*", 10_000, CHOICE),
];
