//! Where a cluster keeps its disks unless a class says otherwise.

/// Subscription, group and region of the cluster, from `azure.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlace {
    /// The subscription's ID.
    pub subscription: String,
    /// The resource group.
    pub group: String,
    /// The region, in lower case without blanks.
    pub location: String,
    /// Whether the cloud is Azure Stack, which has fewer kinds of disks and no network policies.
    pub is_stack: bool,
}
