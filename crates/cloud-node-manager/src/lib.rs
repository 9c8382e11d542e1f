//! `azure-cloud-node-manager`: describes the node that it runs on, from its machine's instance metadata or from
//! Resource Manager.
//!
//! ```text
//! imds ──▶ source: cloud::Machines of one machine ──┬─▶ controllers::run_agent ──▶ labels, addresses, taint of one node
//! arm ───▶ resource_manager: the same ──────────────┘
//! ```
//!
//! The changes to a node, and their conditions, are shared with the manager of all nodes: they are in `controllers`.
//!
//! User documentation: `docs/cloud-node-manager.md`.

pub mod flags;
pub mod resource_manager;
pub mod run;
pub mod source;
