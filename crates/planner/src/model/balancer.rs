//! The cluster's load balancers, by name and flavor.

/// The suffix by which the name of an internal load balancer differs from that of the external one.
pub(crate) const INTERNAL_SUFFIX: &str = "-internal";

/// Where a load balancer's addresses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flavor {
    /// Public addresses.
    External,
    /// Addresses of the virtual network.
    Internal,
}

/// One load balancer of the cluster. The key of IDs, writers and plans.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Balancer {
    /// The name of the Azure resource, such as `kubernetes` or `kubernetes-internal`.
    pub name: String,
    /// Where its addresses come from.
    pub flavor: Flavor,
}

impl Flavor {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::External, Self::Internal];

    /// Whether the addresses are those of the virtual network.
    pub fn is_internal(self) -> bool {
        self == Self::Internal
    }
}

impl std::fmt::Display for Balancer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// The name of a load balancer without the suffix of internal ones.
pub(crate) fn without_suffix(name: &str) -> &str {
    let at = name.len().saturating_sub(INTERNAL_SUFFIX.len());
    match name.get(at..) {
        Some(end) if at > 0 && end.eq_ignore_ascii_case(INTERNAL_SUFFIX) => &name[..at],
        _ => name,
    }
}
