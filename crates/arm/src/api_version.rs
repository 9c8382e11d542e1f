//! The api-version of each kind of resource, as in the program that this one replaces.

use std::fmt;

/// A version of Azure's API, as sent in the query of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiVersion(&'static str);

impl ApiVersion {
    /// Microsoft.Network: load balancers, pools, public IPs, security groups, virtual networks, subnets,
    /// network interfaces, route tables, private link services.
    pub const NETWORK: Self = Self("2025-05-01");
    /// Network interfaces and public IPs of uniform scale set instances, which only this version serves.
    pub const SCALE_SET_NETWORK: Self = Self("2018-10-01");
    /// Microsoft.Compute: machines, scale sets and their instances, availability sets.
    pub const COMPUTE: Self = Self("2025-04-01");
    /// Disks and snapshots.
    pub const DISKS: Self = Self("2025-01-02");
    /// Storage accounts, their file services and shares.
    pub const STORAGE: Self = Self("2025-01-01");
    /// Resource groups and providers.
    pub const RESOURCES: Self = Self("2021-04-01");
    /// Registration of resource providers.
    pub const REGISTRATION: Self = Self("2019-05-01");

    /// A version that this table does not hold.
    pub const fn new(version: &'static str) -> Self {
        Self(version)
    }

    /// The text, such as `2025-05-01`.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
