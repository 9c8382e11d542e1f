//! The controllers against the simulated Kubernetes API, on paused time. The cloud records calls and answers as
//! configured (`cloud.rs`); Azure's behaviour is tested elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod agent;
mod cloud;
mod draining;
mod events;
mod ipam;
mod leader_election;
mod local_pools;
mod node_changes;
mod nodes;
mod resource_lease;
mod resync;
mod routes;
mod services;
mod stopping;
mod world;
