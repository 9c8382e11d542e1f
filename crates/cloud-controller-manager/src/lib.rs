//! `azure-cloud-controller-manager`: flags and wiring, nothing else.
//!
//! The program is a library with a thin `main`, so that the demo runs exactly what production runs.

pub mod azure;
pub mod flags;
pub mod go_values;
pub mod kubernetes;
mod observe;
pub mod run;
pub mod settings;
pub mod surroundings;

/// The time of day, for log lines. Controllers and clients get clocks of their own.
#[allow(clippy::disallowed_methods, reason = "the process's one seam to the wall clock for logs")]
pub const WALL_CLOCK: telemetry::logs::WallClock = || jiff::Timestamp::now();
