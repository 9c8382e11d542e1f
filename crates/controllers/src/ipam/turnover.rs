//! Changes of a cluster range, for metrics.

use ipnet::IpNet;

/// Allocations and releases in a cluster range since the last report, and the current usage.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeTurnover {
    /// The range.
    pub cluster: IpNet,
    /// Blocks that are held now and were free before: ranges of nodes, and reservations.
    pub allocated: u64,
    /// Blocks that are free now.
    pub released: u64,
    /// For each block that was found, how many held blocks the search skipped.
    pub skipped: Vec<u64>,
    /// The share of the range's addresses that is held, from 0 to 1.
    pub used: f64,
}
