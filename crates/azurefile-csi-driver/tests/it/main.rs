//! The controller in simulated worlds: an Azure and a Kubernetes in the same process, on paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod accounts;
mod interruptions;
mod keys;
mod snapshots;
mod volumes;
mod world;
