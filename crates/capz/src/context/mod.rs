//! What reconciles share, and what they know of the cluster whose object they reconcile.

pub mod azure_context;
pub mod cluster_context;
pub mod cluster_life;
pub mod cluster_objects;
pub mod ending;
pub mod identity;
pub mod manager;
pub mod namesakes;
pub mod reconcile;
pub mod records;
pub mod takeover;
pub mod wake;
