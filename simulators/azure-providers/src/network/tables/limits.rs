//! Network's limits, as published ("Networking limits - Azure Resource Manager").

use azure_engine::error::Refusal;
use azure_engine::limits::{Counts, Excess, Limit};

macro_rules! per_region {
    ($name:literal, $value:literal, $of:literal, $called:literal) => {
        Limit {
            name: concat!("network.", $name),
            value: $value,
            counts: Counts::PerRegion {
                of: concat!("Microsoft.Network/", $of),
                called: $called,
                words: too_many,
            },
        }
    };
}

macro_rules! items {
    ($name:literal, $value:literal, $of:literal, $at:literal, $called:literal) => {
        Limit {
            name: concat!("network.", $name),
            value: $value,
            counts: Counts::Items {
                of: concat!("Microsoft.Network/", $of),
                at: concat!("properties/", $at),
                called: $called,
                words: too_many_items,
            },
        }
    };
}

pub(crate) static LIMITS: &[Limit] = &[
    per_region!("virtualNetworksPerRegion", 1_000, "virtualNetworks", "virtual networks"),
    items!("subnetsPerVirtualNetwork", 3_000, "virtualNetworks", "subnets", "subnets"),
    items!(
        "peeringsPerVirtualNetwork",
        500,
        "virtualNetworks",
        "virtualNetworkPeerings",
        "virtual network peerings"
    ),
    items!("dnsServersPerVirtualNetwork", 20, "virtualNetworks", "dhcpOptions/dnsServers", "DNS servers"),
    Limit::of("network.addressesPerVirtualNetwork", 65_536),
    per_region!("interfacesPerRegion", 65_536, "networkInterfaces", "network interfaces"),
    items!("ipConfigurationsPerInterface", 256, "networkInterfaces", "ipConfigurations", "IP configurations"),
    per_region!("securityGroupsPerRegion", 5_000, "networkSecurityGroups", "network security groups"),
    Limit::of("network.securityRulesPerGroup", 1_000),
    Limit::of("network.prefixesPerSecurityGroup", 4_000),
    per_region!(
        "applicationSecurityGroupsPerRegion",
        3_000,
        "applicationSecurityGroups",
        "application security groups"
    ),
    Limit::of("network.applicationSecurityGroupsPerIpConfiguration", 20),
    Limit::of("network.applicationSecurityGroupsPerRule", 10),
    Limit::of("network.applicationSecurityGroupsPerSecurityGroup", 100),
    per_region!("routeTablesPerRegion", 200, "routeTables", "route tables"),
    Limit::of("network.routesPerTable", 400),
    // Of an enterprise agreement; other offers begin at 10.
    Limit::of("network.publicIpAddressesPerRegion", 1_000),
    // The shortest prefixes of public addresses: /28 for IPv4, /124 for IPv6, that is 16 addresses.
    Limit::of("network.addressesPerPublicIpPrefix", 16),
    // Load balancers with sku Standard; those with sku Basic have limits of their own.
    per_region!("loadBalancersPerRegion", 1_000, "loadBalancers", "load balancers"),
    Limit::of("network.rulesPerLoadBalancer", 1_500),
    Limit::of("network.rulesPerBasicLoadBalancer", 250),
    // The figures that refusals name; the published table of limits has lower ones for some offers.
    Limit::of("network.rulesPerInterface", 1_500),
    Limit::of("network.frontendsPerLoadBalancer", 600),
    Limit::of("network.frontendsPerBasicLoadBalancer", 200),
    Limit::of("network.outboundRulesPerLoadBalancer", 600),
    Limit::of("network.addressesPerBackendPool", 5_000),
    per_region!("natGatewaysPerRegion", 1_000, "natGateways", "NAT gateways"),
    Limit::of("network.publicIpAddressesPerNatGateway", 16),
    per_region!("privateLinkServicesPerRegion", 800, "privateLinkServices", "private link services"),
    Limit::of("network.ipConfigurationsPerPrivateLinkService", 8),
    Limit::of("network.privateEndpointsPerPrivateLinkService", 1_000),
    Limit::of("network.privateEndpointsPerVirtualNetwork", 1_000),
    per_region!("privateEndpointsPerRegion", 64_000, "privateEndpoints", "private endpoints"),
];

/// Types of which a group may hold any number ("Resources not limited to 800 instances per resource
/// group").
pub(crate) static UNLIMITED: &[&str] = &[
    "Microsoft.Network/applicationSecurityGroups",
    "Microsoft.Network/networkInterfaces",
    "Microsoft.Network/networkSecurityGroups",
    "Microsoft.Network/privateEndpoints",
    "Microsoft.Network/privateLinkServices",
    "Microsoft.Network/publicIPAddresses",
];

fn too_many(excess: &Excess<'_>) -> Refusal {
    let Excess { called, most, .. } = excess;
    let message = format!("Cannot create more than {most} {called} for this subscription in this region.");
    Refusal::network(400, code(called), message)
}

fn too_many_items(excess: &Excess<'_>) -> Refusal {
    let Excess { id, called, most, wanted, .. } = excess;
    let message = format!("Resource {id} has {wanted} {called}; it cannot have more than {most}.");
    Refusal::network(400, code(called), message)
}

/// `network interfaces` gives `NetworkInterfaceCountLimitReached`.
fn code(called: &str) -> String {
    let capital = |word: &str| -> String {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    };
    let noun: String = called.trim_end_matches('s').split(' ').map(capital).collect();
    format!("{noun}CountLimitReached")
}
