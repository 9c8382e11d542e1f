//! What the route controller asks of a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;
use ipnet::IpNet;

use crate::{LogicalTime, ServiceError};

/// A range of a node's pods, to which one route leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRange {
    /// The node's name.
    pub node: String,
    /// The range, without host bits.
    pub range: IpNet,
}

impl PodRange {
    /// A node's range.
    pub fn new(node: impl Into<String>, range: IpNet) -> Self {
        Self { node: node.into(), range: range.trunc() }
    }
}

impl fmt::Display for PodRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.range)
    }
}

/// The routes by which the pods of nodes are reached, where the network of pods is not the cloud's.
///
/// Routes of one moment are written together, as few writes as the cloud allows. A call may be dropped at any point.
#[async_trait]
pub trait Routes: Send + Sync + 'static {
    /// The ranges that have a route of this cluster's, as read after `newer_than`, wherever it leads; those of nodes that
    /// are gone, too.
    ///
    /// # Errors
    ///
    /// If the cloud could not say.
    async fn owned(&self, newer_than: LogicalTime) -> Result<BTreeSet<PodRange>, ServiceError>;

    /// Lets routes lead to the `wanted` ranges by these addresses, and none of this cluster's to the `unwanted` ones,
    /// judged by what was read after `newer_than`. Gives what came of each. A wanted range is in order if the cloud has
    /// confirmed its route, or had it already.
    ///
    /// # Errors
    ///
    /// If the cloud could not say which routes there are: nothing is known then of any range.
    async fn apply(
        &self,
        wanted: &BTreeMap<PodRange, IpAddr>,
        unwanted: &BTreeSet<PodRange>,
        newer_than: LogicalTime,
    ) -> Result<BTreeMap<PodRange, Result<(), ServiceError>>, ServiceError>;
}
