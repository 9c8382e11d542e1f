//! One of the cluster's ranges, and which blocks of it are held. Pure.
//!
//! What is free is not kept anywhere: it is what nobody holds. Blocks of different sizes stand side by side, so that no
//! granularity has to be chosen, and none to be changed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::turnover::RangeTurnover;

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
    /// No address is that long.
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
        // Its broadcast address; ipnet has a word of its own for each family.
        IpNet::V4(block) => number(block.broadcast().into()),
        IpNet::V6(block) => number(block.broadcast().into()),
    }
}

/// How many addresses a block has.
fn size(block: &IpNet) -> u128 {
    last(block).saturating_sub(first(block)).saturating_add(1)
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
    /// How many addresses are held.
    used: u128,
    turnover: Turnover,
}

/// What has happened since it was told last.
#[derive(Debug, Clone, Default)]
struct Turnover {
    allocated: u64,
    released: u64,
    met: Vec<u64>,
    is_told: bool,
}

/// A block that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub block: IpNet,
    /// How many held blocks the search met before.
    pub met: u64,
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
        let Some(block) = self.within(block) else { return };
        if let Some(count) = self.held.get_mut(&block) {
            *count += 1;
            return;
        }
        self.used = self.used.saturating_add(self.free_in(block));
        self.turnover.allocated += 1;
        self.held.insert(block, 1);
    }

    /// Says that a block is held by one less.
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

    /// A held block that is larger than this one, which is in the range, and contains it.
    fn around(&self, block: IpNet) -> Option<IpNet> {
        let shorter = self.cluster.prefix_len()..block.prefix_len();
        let mut around = shorter.filter_map(|length| Some(IpNet::new(block.network(), length).ok()?.trunc()));
        around.find(|larger| self.held.contains_key(larger))
    }

    /// The held blocks that this one contains, by their addresses, larger ones before those that they contain.
    fn inside(&self, block: IpNet) -> impl Iterator<Item = IpNet> {
        let from_here = IpNet::new(block.network(), 0).ok().map(|begin| self.held.range(begin..));
        let held = from_here.into_iter().flatten().map(|(held, _)| *held);
        held.take_while(move |held| block.contains(&held.network()))
    }

    /// A held block that has something in common with this one, which is in the range.
    fn in_the_way(&self, block: IpNet) -> Option<IpNet> {
        self.around(block).or_else(|| self.inside(block).next())
    }

    /// How many addresses of a block nobody holds.
    fn free_in(&self, block: IpNet) -> u128 {
        if self.around(block).is_some() {
            return 0;
        }
        let (mut free, mut end) = (size(&block), None);
        for held in self.inside(block) {
            // Others may hold a part of what is held.
            if end.is_none_or(|end| first(&held) > end) {
                free = free.saturating_sub(size(&held));
                end = Some(last(&held));
            }
        }
        free
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
    fn search(&self, from: u128, mask: u8, met: &mut u64) -> Option<IpNet> {
        let mut from = from;
        while from <= last(&self.cluster) {
            let block = self.block(from, mask)?;
            let Some(held) = self.in_the_way(block) else { return Some(block) };
            *met += 1;
            from = last(&block).max(last(&held)).checked_add(1)?;
        }
        None
    }

    /// The next free block of a size, aligned.
    pub fn find(&self, mask: u8) -> Result<Found, Exhausted> {
        let start = first(&self.cluster);
        let size = 1_u128.checked_shl(u32::from(self.cluster.max_prefix_len().saturating_sub(mask)));
        let size = size.unwrap_or(u128::MAX);
        // The search may have stopped in the middle of a block of this size.
        let blocks = self.next.saturating_sub(start).div_ceil(size);
        let here = blocks.checked_mul(size).and_then(|offset| start.checked_add(offset)).unwrap_or(start);
        let mut met = 0;
        let found = self.search(here, mask, &mut met).or_else(|| self.search(start, mask, &mut met));
        let block = found.ok_or(Exhausted { cluster: self.cluster, mask })?;
        Ok(Found { block, met })
    }

    /// Gives a block that was found: the next search begins behind it.
    pub fn take(&mut self, Found { block, met }: Found) {
        self.occupy(&block);
        self.turnover.met.push(met);
        let behind = last(&block).checked_add(1).filter(|next| *next <= last(&self.cluster));
        self.next = behind.unwrap_or_else(|| first(&self.cluster));
    }

    /// What has happened since the last time; `None` where nothing has. The first time something has.
    pub fn turnover(&mut self) -> Option<RangeTurnover> {
        let Turnover { allocated, released, met, is_told } =
            std::mem::replace(&mut self.turnover, Turnover { is_told: true, ..Turnover::default() });
        let used = self.used as f64 / size(&self.cluster) as f64;
        let has_changed = !is_told || allocated + released > 0;
        has_changed.then_some(RangeTurnover { cluster: self.cluster, allocated, released, met, used })
    }
}
