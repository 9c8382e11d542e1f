//! Clusters: their network, and its deletion.

pub mod reconcile;
