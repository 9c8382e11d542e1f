//! The route controller's interface to a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;
use ipnet::IpNet;
use logical_time::LogicalTime;

use crate::ServiceError;

/// A pod range of a node, the target of one route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRange {
    /// The node's name.
    pub node: String,
    /// The range, without host bits.
    pub range: IpNet,
}

impl PodRange {
    /// The pod range `range` of the node `node`.
    pub fn new(node: impl Into<String>, range: IpNet) -> Self {
        Self { node: node.into(), range: range.trunc() }
    }
}

impl fmt::Display for PodRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.range)
    }
}

/// The routes to the pods of nodes, where the pod network is not the cloud's.
///
/// Concurrent requests are written together, in as few writes as the cloud allows. A call may be dropped at any point.
#[async_trait]
pub trait Routes: Send + Sync + 'static {
    /// The ranges that have a route owned by this cluster, as read after `newer_than`, whatever its next hop; ranges of
    /// deleted nodes are included.
    ///
    /// # Errors
    ///
    /// If the cloud could not answer.
    async fn owned(&self, newer_than: LogicalTime) -> Result<BTreeSet<PodRange>, ServiceError>;

    /// Makes routes lead to the `wanted` ranges by these addresses, and deletes this cluster's routes to the `unwanted`
    /// ones, based on data read after `newer_than`. Returns the outcome of each range. A wanted range succeeds when the
    /// cloud has confirmed its route, or had it already.
    ///
    /// # Errors
    ///
    /// If the cloud could not list the routes: nothing is known then about any range.
    async fn apply(
        &self,
        wanted: &BTreeMap<PodRange, IpAddr>,
        unwanted: &BTreeSet<PodRange>,
        newer_than: LogicalTime,
    ) -> Result<BTreeMap<PodRange, Result<(), ServiceError>>, ServiceError>;
}
