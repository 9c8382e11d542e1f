//! From an AzureManagedControlPlane to goals: the groups and the network as for any cluster, the managed cluster (AKS),
//! its membership in a fleet, and its extensions.
//!
//! ```text
//!  spec ──as_cluster──▶ ClusterScope: groups, network, subnet, private endpoints, ownership, memory, deletion
//!       └──────────────▶ managed cluster, fleet member, extensions
//! ```
//!
//! Azure creates the nodes' resource group and everything in it; it is only read.

mod access;
mod declared;
mod document;
mod extension;
mod fleet_member;
mod health;
mod network_profile;
mod read_back;
mod scope;
mod version;

pub use declared::{ends, goals, remembered, remembered_of};
pub use health::{RESOURCE_HEALTH, condition as health_condition, reading as health_reading};
pub use read_back::{Reported, read_back};
pub use scope::{ManagedScope, as_cluster, joined, node_group_name};
pub(crate) use version::higher;
