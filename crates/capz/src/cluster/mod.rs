//! Clusters: their network, and its deletion.

mod edited;
pub mod reconcile;
mod takeover;
