//! Metrics under the names that dashboards know. `docs/metrics.md` lists all of them.

pub mod azure;
#[cfg(feature = "test-util")]
pub mod catalogue;
mod computed;
pub mod controllers;
mod machine_disks;
mod operations;
mod program;
mod registry;
mod served;

pub use machine_disks::{MachineDiskMetrics, Waiting};
pub use operations::OperationMetrics;
pub use program::Build;
pub use registry::Metrics;
pub use served::{HealthMetrics, ScrapeMetrics};
