//! What all floors use: refusals, SKUs, IDs, names, sizes, zones.

pub mod access;
pub mod account_sku;
pub mod azure_error;
pub mod cluster_place;
pub mod disk_sku;
pub mod document;
pub mod error;
pub mod id;
pub mod names;
pub mod share_id;
pub mod share_names;
pub mod size;
pub mod topology;
