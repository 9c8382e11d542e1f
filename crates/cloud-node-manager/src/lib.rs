//! `azure-cloud-node-manager`: describes the node that it runs on, from what its machine says of itself or Resource
//! Manager of it.
//!
//! ```text
//! imds ──▶ source: cloud::Machines of one machine ──┬─▶ controllers::run_agent ──▶ labels, addresses, taint of one node
//! arm ───▶ resource_manager: the same ──────────────┘
//! ```
//!
//! What is done to a node, and when, is decided where it is for all nodes: in `controllers`.
//!
//! What users read of it: `docs/cloud-node-manager.md`.

pub mod flags;
pub mod resource_manager;
pub mod run;
pub mod source;
