//! Clusters on Azure for Cluster API: the controllers of `infrastructure.cluster.x-k8s.io`.
//!
//! ```text
//!  watches ──▶ stores, queues ──▶ controllers ──goals──▶ reach ──▶ Azure
//!                                     ▲                    │
//!                                     └── status, events ◀─┘
//! ```
//!
//! `capz-planner` decides what a cluster or machine needs in Azure, and what the observed state means for its
//! conditions. This crate runs the reconcile loops around it: [`run`] starts them.

mod about;
mod aso_secret;
mod azure;
mod azure_json;
mod bootstrap;
mod cluster;
mod concerns;
mod controller;
pub mod core;
mod ending;
mod family;
mod gates;
mod identity;
mod identity_secrets;
mod instances;
pub mod kinds;
mod machine;
mod manager;
mod operations;
mod operator;
mod operator_objects;
mod owned_secret;
mod patch;
mod pool;
mod pool_machine;
mod pool_objects;
mod reach;
mod reads;
mod recent;
mod repeats;
mod settings;
mod shared;
mod shelf;
mod skus;
mod spans;
mod standing;
mod store;
mod surroundings;
mod template;
mod unserved;
mod wake;
mod work;

pub use azure::{AccessError, Azure, CredentialSource, Material, Proof};
pub use gates::{Gate, GateError, Gates, Stage};
pub use manager::{RunError, run};
pub use operator_objects::{Listed, OperatorObjects};
pub use settings::{Concurrency, Endpoints, Settings, Timeouts};
pub use unserved::{Unserved, unserved};
