//! Types that several files name, and the step that both clusters and pools go through.

pub(super) const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
pub(super) const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";

/// The step in which the node group, or a pool's scale set in it, is brought to what the resource says.
pub(super) const PROVISION: &str = "provision";
