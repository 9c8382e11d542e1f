//! One cluster range, and its held blocks. Pure.
//!
//! Free blocks are not stored: a block is free if it is not held. Blocks of different sizes coexist, so that there is
//! no granularity to choose or to change.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::turnover::RangeTurnover;

/// How much longer than the cluster's prefix a node's prefix may be with IPv6: 65,536 nodes. Upstream refuses more
/// because its bitmaps would fill the memory; a larger difference is most likely a mistake in the masks.
const MAX_IPV6_BITS: u8 = 16;

/// Why blocks of a mask cannot be taken from a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MaskProblem {
    /// Every range would cost memory, and there would be more ranges than any cluster has nodes.
    #[error("new CIDR set failed; the node CIDR size is too big: a mask of /{mask} in {cluster} makes more than 65536 ranges; give a mask of at most /{}", cluster.prefix_len().saturating_add(MAX_IPV6_BITS))]
    TooFine {
        /// The range.
        cluster: IpNet,
        /// The mask.
        mask: u8,
    },
    /// The mask is longer than an address.
    #[error("a mask of /{mask} is longer than an address; an {} mask is at most /{}", if cluster.addr().is_ipv4() { "IPv4" } else { "IPv6" }, cluster.max_prefix_len())]
    TooLong {
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

/// There is no free block of the size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "CIDR allocation failed; there is no range with a mask of /{mask} left in {cluster}; remove Nodes that are gone, or start with a larger --cluster-cidr"
)]
pub(crate) struct Exhausted {
    pub cluster: IpNet,
    pub mask: u8,
}

/// Checks whether nodes may get blocks of this mask from a cluster range.
///
/// # Errors
/// Why not.
pub fn check_mask(cluster: IpNet, mask: u8) -> Result<(), MaskProblem> {
    let bits = mask.checked_sub(cluster.prefix_len());
    match bits {
        _ if mask > cluster.max_prefix_len() => Err(MaskProblem::TooLong { cluster, mask }),
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
        // Its broadcast address; ipnet has different methods for each family.
        IpNet::V4(block) => number(block.broadcast().into()),
        IpNet::V6(block) => number(block.broadcast().into()),
    }
}

/// The number of addresses in a block.
fn size(block: &IpNet) -> u128 {
    last(block).saturating_sub(first(block)).saturating_add(1)
}

/// A cluster range and its blocks.
#[derive(Debug, Clone)]
pub(crate) struct CidrSet {
    cluster: IpNet,
    /// The held blocks with the number of their holders; each is within the range.
    held: BTreeMap<IpNet, usize>,
    /// Where the next search starts: a released block is not assigned again at once, while others may still associate
    /// it with its previous holder.
    next: u128,
    /// The number of held addresses.
    used: u128,
    turnover: Turnover,
}

/// Changes since the last report.
#[derive(Debug, Clone, Default)]
struct Turnover {
    allocated: u64,
    released: u64,
    skipped: Vec<u64>,
    is_reported: bool,
}

/// A block that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreeBlock {
    pub block: IpNet,
    /// How many held blocks the search skipped.
    pub skipped: u64,
}

impl CidrSet {
    pub fn new(cluster: IpNet) -> Self {
        let cluster = cluster.trunc();
        let (held, turnover) = (BTreeMap::new(), Turnover::default());
        Self { cluster, held, next: first(&cluster), used: 0, turnover }
    }

    pub fn cluster(&self) -> IpNet {
        self.cluster
    }

    /// Whether a block and the range overlap.
    pub fn overlaps(&self, block: &IpNet) -> bool {
        self.cluster.contains(&block.network()) || block.contains(&self.cluster.network())
    }

    /// The part of a block that is in the range: of two blocks that overlap, one contains the other.
    fn within(&self, block: &IpNet) -> Option<IpNet> {
        let larger =
            if block.prefix_len() < self.cluster.prefix_len() { self.cluster } else { block.trunc() };
        self.overlaps(block).then_some(larger)
    }

    /// Adds a holder of a block.
    pub fn occupy(&mut self, block: &IpNet) {
        let Some(block) = self.within(block) else { return };
        if let Some(count) = self.held.get_mut(&block) {
            *count += 1;
            return;
        }
        self.used = self.used.saturating_add(self.free_in(block));
        self.turnover.allocated += 1;
        self.held.insert(block, 1);
    }

    /// Removes a holder of a block.
    pub fn release(&mut self, block: &IpNet) {
        let Some(block) = self.within(block) else { return };
        let Some(count) = self.held.get_mut(&block) else { return };
        *count -= 1;
        if *count == 0 {
            self.held.remove(&block);
            self.used = self.used.saturating_sub(self.free_in(block));
            self.turnover.released += 1;
        }
    }

    /// A larger held block that contains this one, which is in the range.
    fn around(&self, block: IpNet) -> Option<IpNet> {
        let shorter = self.cluster.prefix_len()..block.prefix_len();
        let mut around = shorter.filter_map(|length| Some(IpNet::new(block.network(), length).ok()?.trunc()));
        around.find(|larger| self.held.contains_key(larger))
    }

    /// The held blocks that this one contains, sorted by address, larger ones before those that they contain.
    fn inside(&self, block: IpNet) -> impl Iterator<Item = IpNet> {
        let from_here = IpNet::new(block.network(), 0).ok().map(|begin| self.held.range(begin..));
        let held = from_here.into_iter().flatten().map(|(held, _)| *held);
        held.take_while(move |held| block.contains(&held.network()))
    }

    /// A held block that overlaps this one, which is in the range.
    fn in_the_way(&self, block: IpNet) -> Option<IpNet> {
        self.around(block).or_else(|| self.inside(block).next())
    }

    /// The number of free addresses in a block.
    fn free_in(&self, block: IpNet) -> u128 {
        if self.around(block).is_some() {
            return 0;
        }
        let (mut free, mut end) = (size(&block), None);
        for held in self.inside(block) {
            // Held blocks may contain each other.
            if end.is_none_or(|end| first(&held) > end) {
                free = free.saturating_sub(size(&held));
                end = Some(last(&held));
            }
        }
        free
    }

    /// Whether any part of the block is held.
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

    /// The first free block of a size at or after `from`, which is the address of an aligned block.
    fn search(&self, from: u128, mask: u8, skipped: &mut u64) -> Option<IpNet> {
        let mut from = from;
        while from <= last(&self.cluster) {
            let block = self.block(from, mask)?;
            let Some(held) = self.in_the_way(block) else { return Some(block) };
            *skipped += 1;
            from = last(&block).max(last(&held)).checked_add(1)?;
        }
        None
    }

    /// The next free, aligned block of a size.
    pub fn find(&self, mask: u8) -> Result<FreeBlock, Exhausted> {
        let start = first(&self.cluster);
        let size = 1_u128.checked_shl(u32::from(self.cluster.max_prefix_len().saturating_sub(mask)));
        let size = size.unwrap_or(u128::MAX);
        // The search may have stopped in the middle of a block of this size.
        let blocks = self.next.saturating_sub(start).div_ceil(size);
        let here = blocks.checked_mul(size).and_then(|offset| start.checked_add(offset)).unwrap_or(start);
        let mut skipped = 0;
        let found = self.search(here, mask, &mut skipped).or_else(|| self.search(start, mask, &mut skipped));
        let block = found.ok_or(Exhausted { cluster: self.cluster, mask })?;
        Ok(FreeBlock { block, skipped })
    }

    /// Assigns a block that was found: the next search starts after it.
    pub fn take(&mut self, FreeBlock { block, skipped }: FreeBlock) {
        self.occupy(&block);
        self.turnover.skipped.push(skipped);
        let behind = last(&block).checked_add(1).filter(|next| *next <= last(&self.cluster));
        self.next = behind.unwrap_or_else(|| first(&self.cluster));
    }

    /// The changes since the last call; `None` if there are none. The first call always returns something.
    pub fn turnover(&mut self) -> Option<RangeTurnover> {
        let Turnover { allocated, released, skipped, is_reported } =
            std::mem::replace(&mut self.turnover, Turnover { is_reported: true, ..Turnover::default() });
        let used = self.used as f64 / size(&self.cluster) as f64;
        let has_changed = !is_reported || allocated + released > 0;
        has_changed.then_some(RangeTurnover { cluster: self.cluster, allocated, released, skipped, used })
    }
}
