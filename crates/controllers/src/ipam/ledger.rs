//! Who holds which ranges: nodes, and what is reserved for others. Pure, and the whole truth: a range is free if and only
//! if nobody here holds it, so that none is lost and none is given twice.

use std::collections::HashMap;

use cloud::MaskSizes;
use ipnet::IpNet;

use super::cidr_set::{CidrSet, Exhausted, MaskProblem, check_mask};
use super::turnover::RangeTurnover;

/// Why a node gets no ranges.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRanges {
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    #[error("invalid {family} mask size {} of node {node}, where the cluster's is {}: {problem}", mask, cluster.prefix_len())]
    Mask { node: String, family: &'static str, mask: u8, cluster: IpNet, problem: MaskProblem },
}

/// What is odd about ranges that a node has already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Ranges that lie in none of the cluster's.
    pub outside: Vec<IpNet>,
    /// Ranges of which somebody else has a part.
    pub shared: Vec<Twin>,
}

/// A range of a node's that overlaps somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Twin {
    pub range: IpNet,
    /// The other node, and its range; `None` where the range is reserved.
    pub other: Option<(String, IpNet)>,
}

#[derive(Debug, Clone)]
struct Holder {
    name: String,
    ranges: Vec<IpNet>,
    /// Whether the node has them in Kubernetes.
    is_written: bool,
}

/// Who holds which ranges.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    sets: Vec<CidrSet>,
    /// By the node's UID: another node of the same name holds nothing.
    nodes: HashMap<String, Holder>,
}

impl Ledger {
    /// Ranges are taken from `cluster`, one of each for a node, and never from what is `reserved`.
    pub fn new(cluster: &[IpNet], reserved: &[IpNet]) -> Self {
        let mut sets: Vec<CidrSet> = cluster.iter().copied().map(CidrSet::new).collect();
        for set in &mut sets {
            reserved.iter().for_each(|range| set.occupy(range));
        }
        Self { sets, nodes: HashMap::new() }
    }

    /// Takes over what a node has already, in place of what was known of it.
    pub fn adopt(&mut self, uid: &str, name: &str, ranges: &[IpNet]) -> Oddities {
        let mut oddities = Oddities::default();
        if self.nodes.get(uid).is_some_and(|known| known.ranges == ranges) {
            return oddities;
        }
        self.forget(uid);
        for range in ranges {
            let Some(set) = self.sets.iter_mut().find(|set| set.overlaps(range)) else {
                oddities.outside.push(*range);
                continue;
            };
            if set.is_held(range) {
                let has_part = |held: &&IpNet| held.contains(range) || range.contains(*held);
                let part = |other: &Holder| Some((other.name.clone(), *other.ranges.iter().find(has_part)?));
                let other = self.nodes.values().find_map(part);
                oddities.shared.push(Twin { range: *range, other });
            }
            set.occupy(range);
        }
        self.nodes.insert(
            uid.to_owned(),
            Holder { name: name.to_owned(), ranges: ranges.to_vec(), is_written: true },
        );
        oddities
    }

    /// Gives a node one range of each of the cluster's, or none at all. A node that has its own gets those.
    pub fn assign(&mut self, uid: &str, name: &str, masks: MaskSizes) -> Result<Vec<IpNet>, NoRanges> {
        if let Some(known) = self.nodes.get(uid) {
            return Ok(known.ranges.clone());
        }
        let mut all_found = Vec::new();
        for set in &self.sets {
            let cluster = set.cluster();
            let (family, mask) =
                if cluster.addr().is_ipv4() { ("ipv4", masks.v4) } else { ("ipv6", masks.v6) };
            check_mask(cluster, mask).map_err(|problem| {
                let node = name.to_owned();
                NoRanges::Mask { node, family, mask, cluster, problem }
            })?;
            all_found.push(set.find(mask)?);
        }
        for (set, found) in self.sets.iter_mut().zip(&all_found) {
            set.take(*found);
        }
        let ranges: Vec<IpNet> = all_found.into_iter().map(|found| found.block).collect();
        self.nodes.insert(
            uid.to_owned(),
            Holder { name: name.to_owned(), ranges: ranges.clone(), is_written: false },
        );
        Ok(ranges)
    }

    /// What a node was given has been written.
    pub fn written(&mut self, uid: &str) {
        if let Some(holder) = self.nodes.get_mut(uid) {
            holder.is_written = true;
        }
    }

    /// Whether a node has its ranges, although the watch may not show them yet.
    pub fn is_written(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(|holder| holder.is_written)
    }

    /// A node is gone, or did not get what it was given.
    pub fn forget(&mut self, uid: &str) {
        let Some(known) = self.nodes.remove(uid) else { return };
        for range in &known.ranges {
            if let Some(set) = self.sets.iter_mut().find(|set| set.overlaps(range)) {
                set.release(range);
            }
        }
    }

    /// What has happened to the cluster's ranges since the last time.
    pub fn turnover(&mut self) -> Vec<RangeTurnover> {
        self.sets.iter_mut().filter_map(CidrSet::turnover).collect()
    }

    /// Whether anybody holds a part of a range.
    #[cfg(test)]
    pub fn is_held(&self, range: &IpNet) -> bool {
        self.sets.iter().any(|set| set.is_held(range))
    }
}
