//! Types that several files use, and the step that both clusters and pools go through.

pub(super) const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
pub(super) const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";

/// The step that reconciles the node group, or a pool's scale set in it, with the resource.
pub(super) const PROVISION: &str = "provision";
