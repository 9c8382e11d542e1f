//! The holders of ranges: nodes, and reservations. Pure and complete: a range is free if and only if it has no holder
//! here, so that none is lost and none is assigned twice.

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

/// Problems with ranges that a node already has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Ranges that are in no cluster range.
    pub outside: Vec<IpNet>,
    /// Ranges that overlap another holder's.
    pub shared: Vec<Twin>,
}

/// A range of a node that overlaps another holder's range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Twin {
    pub range: IpNet,
    /// The other node, and its range; `None` if the range is reserved.
    pub other: Option<(String, IpNet)>,
}

#[derive(Debug, Clone)]
struct Holder {
    name: String,
    ranges: Vec<IpNet>,
    /// Whether they are stored in the Node.
    is_written: bool,
}

/// The holders of ranges.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    sets: Vec<CidrSet>,
    /// By the node's UID: another node of the same name holds nothing.
    nodes: HashMap<String, Holder>,
}

impl Ledger {
    /// Takes nodes' ranges from `cluster`, one from each range per node, and never from what is `reserved`.
    pub fn new(cluster: &[IpNet], reserved: &[IpNet]) -> Self {
        let mut sets: Vec<CidrSet> = cluster.iter().copied().map(CidrSet::new).collect();
        for set in &mut sets {
            reserved.iter().for_each(|range| set.occupy(range));
        }
        Self { sets, nodes: HashMap::new() }
    }

    /// Records the ranges that a node already has, replacing its earlier ones.
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

    /// Assigns a node one range from each cluster range, or none at all. A node that already has ranges keeps them.
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

    /// Records that a node's assigned ranges have been written.
    pub fn written(&mut self, uid: &str) {
        if let Some(holder) = self.nodes.get_mut(uid) {
            holder.is_written = true;
        }
    }

    /// Whether a node's ranges have been written, although the watch may not show them yet.
    pub fn is_written(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(|holder| holder.is_written)
    }

    /// Releases the ranges of a node that was deleted, or whose ranges could not be written.
    pub fn forget(&mut self, uid: &str) {
        let Some(known) = self.nodes.remove(uid) else { return };
        for range in &known.ranges {
            if let Some(set) = self.sets.iter_mut().find(|set| set.overlaps(range)) {
                set.release(range);
            }
        }
    }

    /// Changes of the cluster ranges since the last call.
    pub fn turnover(&mut self) -> Vec<RangeTurnover> {
        self.sets.iter_mut().filter_map(CidrSet::turnover).collect()
    }

    /// Whether any part of a range is held.
    #[cfg(test)]
    pub fn is_held(&self, range: &IpNet) -> bool {
        self.sets.iter().any(|set| set.is_held(range))
    }
}
