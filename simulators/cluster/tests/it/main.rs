//! The simulated Azure and Kubernetes, joined.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod boot;
mod hosted;
mod managed;
mod workload;
