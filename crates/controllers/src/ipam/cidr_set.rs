//! One of the cluster's ranges, and which blocks of it are held. Pure.
//!
//! What is free is not kept anywhere: it is what nobody holds. Blocks of different sizes stand side by side, so that no
//! granularity has to be chosen, and none to be changed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// How much longer than the cluster's prefix one of a node may be with IPv6: 65,536 nodes. Upstream refuses more, as
/// its bitmaps would fill the memory; whoever asks for it has most likely mixed the masks up.
const MAX_IPV6_BITS: u8 = 16;

/// Blocks of this size cannot be taken from the range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaskProblem {
    /// Every range would cost memory, and there would be more than anybody has nodes.
    #[error("new CIDR set failed; the node CIDR size is too big: a mask of /{mask} in {cluster} makes more than 65536 ranges; give a mask of at most /{}", cluster.prefix_len().saturating_add(MAX_IPV6_BITS))]
    TooFine {
        /// The range.
        cluster: IpNet,
        /// The mask.
        mask: u8,
    },
    /// A block would be larger than the range.
    #[error(
        "{cluster} has no room for one range with a mask of /{mask}; give a longer mask, or the cluster a larger range"
    )]
    TooShort {
        /// The range.
        cluster: IpNet,
        /// The mask.
        mask: u8,
    },
}

/// Nothing of the size is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "CIDR allocation failed; there is no range with a mask of /{mask} left in {cluster}; remove Nodes that are gone, or start with a larger --cluster-cidr"
)]
pub(crate) struct Exhausted {
    pub cluster: IpNet,
    pub mask: u8,
}

/// Whether nodes may get blocks of this mask out of a range of the cluster.
///
/// # Errors
/// Why not.
pub fn check_mask(cluster: IpNet, mask: u8) -> Result<(), MaskProblem> {
    let bits = mask.checked_sub(cluster.prefix_len());
    match bits {
        _ if mask > cluster.max_prefix_len() => Err(MaskProblem::TooFine { cluster, mask }),
        None => Err(MaskProblem::TooShort { cluster, mask }),
        Some(bits) if bits > MAX_IPV6_BITS && cluster.addr().is_ipv6() => {
            Err(MaskProblem::TooFine { cluster, mask })
        }
        Some(_) => Ok(()),
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn first(block: &IpNet) -> u128 {
    number(block.network())
}

fn last(block: &IpNet) -> u128 {
    match block {
        // Its broadcast address; ipnet has a word of its own for each family.
        IpNet::V4(block) => number(block.broadcast().into()),
        IpNet::V6(block) => number(block.broadcast().into()),
    }
}

/// A range of the cluster in blocks.
#[derive(Debug, Clone)]
pub(crate) struct CidrSet {
    cluster: IpNet,
    /// The blocks that are held, by how many; each within the range.
    held: BTreeMap<IpNet, usize>,
    /// Where the search goes on: a block that was given back is not given out again at once, while others still know
    /// whose it was.
    next: u128,
}

impl CidrSet {
    pub fn new(cluster: IpNet) -> Self {
        let cluster = cluster.trunc();
        Self { cluster, held: BTreeMap::new(), next: first(&cluster) }
    }

    pub fn cluster(&self) -> IpNet {
        self.cluster
    }

    /// Whether a block and the range have anything in common.
    pub fn overlaps(&self, block: &IpNet) -> bool {
        self.cluster.contains(&block.network()) || block.contains(&self.cluster.network())
    }

    /// The part of a block that is in the range: one of two blocks that overlap holds the other.
    fn within(&self, block: &IpNet) -> Option<IpNet> {
        let larger =
            if block.prefix_len() < self.cluster.prefix_len() { self.cluster } else { block.trunc() };
        self.overlaps(block).then_some(larger)
    }

    /// Says that a block is held, by one more than before.
    pub fn occupy(&mut self, block: &IpNet) {
        if let Some(block) = self.within(block) {
            *self.held.entry(block).or_default() += 1;
        }
    }

    /// Says that a block is held by one less.
    pub fn release(&mut self, block: &IpNet) {
        let Some(block) = self.within(block) else { return };
        if let Some(count) = self.held.get_mut(&block) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&block);
            }
        }
    }

    /// A held block that has something in common with this one, which is in the range.
    fn in_the_way(&self, block: IpNet) -> Option<IpNet> {
        let shorter = self.cluster.prefix_len()..block.prefix_len();
        let mut around = shorter.filter_map(|length| Some(IpNet::new(block.network(), length).ok()?.trunc()));
        let around = around.find(|larger| self.held.contains_key(larger));
        around.or_else(|| {
            let mut from_here = self.held.range(IpNet::new(block.network(), 0).ok()?..);
            from_here.next().map(|(held, _)| *held).filter(|held| block.contains(&held.network()))
        })
    }

    /// Whether anybody holds a part of the block.
    pub fn is_held(&self, block: &IpNet) -> bool {
        self.within(block).is_some_and(|block| self.in_the_way(block).is_some())
    }

    fn block(&self, from: u128, mask: u8) -> Option<IpNet> {
        let address = if self.cluster.addr().is_ipv4() {
            IpAddr::V4(Ipv4Addr::from(u32::try_from(from).ok()?))
        } else {
            IpAddr::V6(Ipv6Addr::from(from))
        };
        IpNet::new(address, mask).ok()
    }

    /// The first free block of a size at or behind a number, which is that of a block.
    fn search(&self, from: u128, mask: u8) -> Option<IpNet> {
        let mut from = from;
        while from <= last(&self.cluster) {
            let block = self.block(from, mask)?;
            let Some(held) = self.in_the_way(block) else { return Some(block) };
            from = last(&block).max(last(&held)).checked_add(1)?;
        }
        None
    }

    /// The next free block of a size, aligned.
    pub fn find(&self, mask: u8) -> Result<IpNet, Exhausted> {
        let start = first(&self.cluster);
        let size = 1_u128.checked_shl(u32::from(self.cluster.max_prefix_len().saturating_sub(mask)));
        let size = size.unwrap_or(u128::MAX);
        // The search may have stopped in the middle of a block of this size.
        let blocks = self.next.saturating_sub(start).div_ceil(size);
        let here = blocks.checked_mul(size).and_then(|offset| start.checked_add(offset)).unwrap_or(start);
        let found = self.search(here, mask).or_else(|| self.search(start, mask));
        found.ok_or(Exhausted { cluster: self.cluster, mask })
    }

    /// Gives a block that was found: the next search begins behind it.
    pub fn take(&mut self, block: &IpNet) {
        self.occupy(block);
        let behind = last(block).checked_add(1).filter(|next| *next <= last(&self.cluster));
        self.next = behind.unwrap_or_else(|| first(&self.cluster));
    }
}
