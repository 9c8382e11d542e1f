//! Clusters on Azure for Cluster API: what the controllers of `infrastructure.cluster.x-k8s.io` are told at the start.

mod gates;
mod settings;

pub use gates::{Gate, GateError, Gates, Stage};
pub use settings::{Concurrency, Endpoints, Settings, Timeouts};
