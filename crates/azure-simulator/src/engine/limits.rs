//! How much there may be of everything: Azure's published limits, each of which can be overridden.

use std::collections::BTreeMap;

use super::world::World;

/// One limit.
pub(crate) struct Limit {
    /// `{namespace}.{what}{per whom}`, such as `network.securityRulesPerGroup`.
    pub(crate) name: &'static str,
    pub(crate) value: u64,
}

/// The limits that Azure publishes for a subscription ("Azure subscription and service limits, quotas
/// and constraints"), with the values of a pay-as-you-go subscription where they differ by offer.
const LIMITS: [Limit; 4] = [
    Limit { name: "compute.instancesPerScaleSet", value: 1_000 },
    Limit { name: "network.securityRulesPerGroup", value: 1_000 },
    Limit { name: "network.routesPerTable", value: 400 },
    Limit { name: "network.publicIpAddressesPerRegion", value: 1_000 },
];

/// Checks that every override names a limit.
///
/// # Errors
/// The name that no limit has.
pub(crate) fn check(overrides: &BTreeMap<String, u64>) -> Result<(), String> {
    match overrides.keys().find(|name| !LIMITS.iter().any(|limit| limit.name == **name)) {
        None => Ok(()),
        Some(name) => Err(name.clone()),
    }
}

impl World {
    /// The value of a limit: the override, or Azure's. A name that is in no table bounds nothing.
    pub(crate) fn limit(&self, name: &str) -> u64 {
        let published = || LIMITS.iter().find(|limit| limit.name == name).map(|limit| limit.value);
        self.options.limits.get(name).copied().or_else(published).unwrap_or(u64::MAX)
    }
}
