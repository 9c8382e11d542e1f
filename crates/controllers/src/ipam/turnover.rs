//! What has become of one of the cluster's ranges, for whoever counts it.

use ipnet::IpNet;

/// What was given and given back of one of the cluster's ranges since it was told last, and what is held now.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeTurnover {
    /// The range.
    pub cluster: IpNet,
    /// Blocks that somebody holds now and nobody held before: ranges of nodes, and what is reserved.
    pub allocated: u64,
    /// Blocks that nobody holds any more.
    pub released: u64,
    /// For each block that was looked for and found, how many held blocks the search met.
    pub met: Vec<u64>,
    /// The share of the range's addresses that is held, from 0 to 1.
    pub used: f64,
}
