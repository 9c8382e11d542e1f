//! The Kubernetes API: kinds, watched objects, queues, and patches.

pub mod concerns;
pub mod contract;
pub mod controller;
pub mod core;
pub mod kinds;
pub mod operator;
pub mod operator_exports;
pub mod operator_objects;
pub mod operator_offers;
pub mod patch;
pub mod queue;
pub mod status;
pub mod store;
pub mod workload;
