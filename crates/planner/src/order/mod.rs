//! What happens in which order: for one Service, and for a whole cluster.

pub(crate) mod cluster_plan;
pub mod drift;
pub(crate) mod expected;
pub(crate) mod observed;
pub(crate) mod preview;
pub mod sequence;
#[cfg(test)]
pub(crate) mod tests;
