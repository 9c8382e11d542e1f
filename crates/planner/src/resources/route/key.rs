//! Ranges of nodes' pods, and what is wanted of their routes.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// A range of a node's pods, which has one route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The node's name.
    pub node: String,
    /// The range.
    pub range: IpNet,
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.range)
    }
}

/// The desired state of a range's route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteIntent {
    /// It leads to the node.
    Present {
        /// The node's address, of the range's family.
        next_hop: IpAddr,
    },
    /// It is removed: the node is deleted, or does not have the range any more.
    Absent,
}

/// The normal form of a key: the node's name in lower case, and the range without host bits.
pub(super) type Place = (String, IpNet);

pub(super) fn place(node: &str, range: &IpNet) -> Place {
    (node.to_ascii_lowercase(), range.trunc())
}

/// Whether one of the cluster's ranges contains this one: routes outside are never removed.
pub(super) fn is_within(range: &IpNet, cluster_ranges: &[IpNet]) -> bool {
    cluster_ranges.iter().any(|whole| whole.trunc().contains(&range.trunc()))
}
