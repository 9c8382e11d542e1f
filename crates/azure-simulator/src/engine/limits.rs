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
const LIMITS: &[Limit] = &[
    Limit { name: "compute.instancesPerScaleSet", value: 1_000 },
    Limit { name: "network.securityRulesPerGroup", value: 1_000 },
    Limit { name: "network.routesPerTable", value: 400 },
    Limit { name: "network.publicIpAddressesPerRegion", value: 1_000 },
    // Load balancers with sku Standard; those with sku Basic have limits of their own.
    Limit { name: "network.loadBalancersPerRegion", value: 1_000 },
    Limit { name: "network.rulesPerLoadBalancer", value: 1_500 },
    Limit { name: "network.rulesPerBasicLoadBalancer", value: 250 },
    Limit { name: "network.rulesPerInterface", value: 300 },
    Limit { name: "network.frontendsPerLoadBalancer", value: 600 },
    Limit { name: "network.frontendsPerBasicLoadBalancer", value: 200 },
    Limit { name: "network.outboundRulesPerLoadBalancer", value: 600 },
    Limit { name: "network.addressesPerBackendPool", value: 5_000 },
    Limit { name: "network.natGatewaysPerRegion", value: 1_000 },
    Limit { name: "network.publicIpAddressesPerNatGateway", value: 16 },
    Limit { name: "network.privateLinkServicesPerRegion", value: 800 },
    Limit { name: "network.ipConfigurationsPerPrivateLinkService", value: 8 },
    Limit { name: "network.privateEndpointsPerPrivateLinkService", value: 1_000 },
    Limit { name: "network.privateEndpointsPerVirtualNetwork", value: 1_000 },
    // The shortest prefixes of public addresses: /28 for IPv4, /124 for IPv6, that is 16 addresses.
    Limit { name: "network.addressesPerPublicIpPrefix", value: 16 },
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
