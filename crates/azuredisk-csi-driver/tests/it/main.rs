//! The driver in simulated worlds: an Azure and a Kubernetes in the same process, on paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod agents;
mod attach;
mod interruptions;
mod leaders;
mod limits;
mod moves;
mod rights;
mod snapshots;
mod volumes;
mod world;
