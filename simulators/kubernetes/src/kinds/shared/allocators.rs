//! Cluster addresses and node ports in use.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// First and last node port: kube-apiserver's `--service-node-port-range`.
pub(crate) const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;
const NODE_PORT_COUNT: u16 = 2768;

/// `--service-cluster-ip-range 10.0.0.0/16,fd00:10::/108`, or its first half alone.
const IPV4_BASE: u32 = 0x0a00_0000;
const IPV4_SIZE: u32 = 1 << 16;
const IPV6_BASE: u128 = 0xfd00_0010 << 96;
const IPV6_SIZE: u32 = 1 << 20;

/// The cluster addresses (10.0.0.0/16 and, with two families, fd00:10::/108) and node ports (30000 to 32767) that
/// Services hold. Free ones are chosen by a seeded generator: one seed, one sequence.
#[derive(Clone)]
pub(crate) struct Allocators {
    node_ports: BTreeSet<u16>,
    addresses: BTreeSet<IpAddr>,
    random: SmallRng,
    dual_stack: bool,
}

impl fmt::Debug for Allocators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocators")
            .field("node_ports", &self.node_ports)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// The cluster addresses and node ports of one object.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Allocations {
    pub(crate) ports: BTreeSet<u16>,
    pub(crate) addresses: BTreeSet<IpAddr>,
}

impl Default for Allocators {
    fn default() -> Allocators {
        Allocators::new(0)
    }
}

impl Allocators {
    /// An allocator with nothing in use and both families; `seed` determines the order in which free values are
    /// allocated.
    pub(crate) fn new(seed: u64) -> Allocators {
        Allocators {
            node_ports: BTreeSet::new(),
            addresses: BTreeSet::new(),
            random: SmallRng::seed_from_u64(seed),
            dual_stack: true,
        }
    }

    /// Enables or disables IPv6 addresses.
    #[must_use]
    pub(crate) fn dual_stack(self, dual_stack: bool) -> Allocators {
        Allocators { dual_stack, ..self }
    }

    /// Whether there are cluster addresses of both families.
    pub(crate) fn is_dual_stack(&self) -> bool {
        self.dual_stack
    }

    /// Whether a Service holds this node port.
    pub(crate) fn holds_node_port(&self, port: u16) -> bool {
        self.node_ports.contains(&port)
    }

    /// Whether a Service holds this cluster address.
    pub(crate) fn holds_address(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// A free node port, or `None` if all are in use.
    pub(crate) fn free_node_port(&mut self, also_used: &BTreeSet<u16>) -> Option<u16> {
        let start = self.random.random_range(0..NODE_PORT_COUNT);
        (0..NODE_PORT_COUNT)
            .map(|step| NODE_PORTS.start() + (start + step) % NODE_PORT_COUNT)
            .find(|port| !self.node_ports.contains(port) && !also_used.contains(port))
    }

    /// A free cluster address of the family, or `None` if all are in use. The network address, the first host (the
    /// API's own Service) and the broadcast address are excluded.
    pub(crate) fn free_address(&mut self, ipv6: bool) -> Option<IpAddr> {
        let size = if ipv6 { IPV6_SIZE } else { IPV4_SIZE };
        let hosts = size - 3;
        let start = self.random.random_range(0..hosts);
        (0..hosts)
            .map(|step| address(ipv6, 2 + (start + step) % hosts))
            .find(|at| !self.addresses.contains(at))
    }

    /// Takes what an object needs, and releases what it held before and no longer needs. Returns whether all of it was
    /// free; otherwise nothing is taken.
    pub(crate) fn exchange(&mut self, before: &Allocations, after: &Allocations) -> bool {
        let taken = after.ports.difference(&before.ports).any(|port| self.node_ports.contains(port))
            || after.addresses.difference(&before.addresses).any(|address| self.addresses.contains(address));
        if !taken {
            self.release(before);
            self.node_ports.extend(&after.ports);
            self.addresses.extend(&after.addresses);
        }
        !taken
    }

    /// Releases what a deleted object held.
    pub(crate) fn release(&mut self, held: &Allocations) {
        for port in &held.ports {
            self.node_ports.remove(port);
        }
        for address in &held.addresses {
            self.addresses.remove(address);
        }
    }
}

/// Whether the address lies in the range of its family.
pub(crate) fn in_range(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => u32::from(address).wrapping_sub(IPV4_BASE) < IPV4_SIZE,
        IpAddr::V6(address) => u128::from(address).wrapping_sub(IPV6_BASE) < u128::from(IPV6_SIZE),
    }
}

/// The range of the family as it appears in messages.
pub(crate) fn range_text(ipv6: bool) -> &'static str {
    if ipv6 { "fd00:10::/108" } else { "10.0.0.0/16" }
}

fn address(ipv6: bool, host: u32) -> IpAddr {
    if ipv6 {
        IpAddr::V6(Ipv6Addr::from(IPV6_BASE + u128::from(host)))
    } else {
        IpAddr::V4(Ipv4Addr::from(IPV4_BASE + host))
    }
}
