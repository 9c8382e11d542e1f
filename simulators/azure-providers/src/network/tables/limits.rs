//! Network's limits, as published ("Networking limits - Azure Resource Manager").

use azure_engine::refusal::{Code, Refusal};
use azure_engine::settings::limits::{Counts, Excess, Limit};

const APPLICATION_SECURITY_GROUPS: Code = Code::ours(400, "ApplicationSecurityGroupCountLimitReached");
const DNS_SERVERS: Code = Code::ours(400, "DNSServerCountLimitReached");
const IP_CONFIGURATIONS: Code = Code::ours(400, "IPConfigurationCountLimitReached");
const LOAD_BALANCERS: Code = Code::ours(400, "LoadBalancerCountLimitReached");
const NAT_GATEWAYS: Code = Code::ours(400, "NATGatewayCountLimitReached");
const NETWORK_INTERFACES: Code = Code::ours(400, "NetworkInterfaceCountLimitReached");
const NETWORK_SECURITY_GROUPS: Code = Code::ours(400, "NetworkSecurityGroupCountLimitReached");
const PRIVATE_ENDPOINTS: Code = Code::ours(400, "PrivateEndpointCountLimitReached");
const PRIVATE_LINK_SERVICES: Code = Code::ours(400, "PrivateLinkServiceCountLimitReached");
const ROUTE_TABLES: Code = Code::ours(400, "RouteTableCountLimitReached");
const SUBNETS: Code = Code::ours(400, "SubnetCountLimitReached");
const VIRTUAL_NETWORKS: Code = Code::ours(400, "VirtualNetworkCountLimitReached");
const VIRTUAL_NETWORK_PEERINGS: Code = Code::ours(400, "VirtualNetworkPeeringCountLimitReached");

macro_rules! per_region {
    ($name:literal, $value:literal, $of:literal, $called:literal, $code:ident) => {
        Limit {
            name: concat!("network.", $name),
            value: $value,
            counts: Counts::PerRegion {
                of: concat!("Microsoft.Network/", $of),
                called: $called,
                words: |excess| too_many($code, excess),
            },
        }
    };
}

macro_rules! items {
    ($name:literal, $value:literal, $of:literal, $at:literal, $called:literal, $code:ident) => {
        Limit {
            name: concat!("network.", $name),
            value: $value,
            counts: Counts::Items {
                of: concat!("Microsoft.Network/", $of),
                at: concat!("properties/", $at),
                called: $called,
                words: |excess| too_many_items($code, excess),
            },
        }
    };
}

pub(crate) static LIMITS: &[Limit] = &[
    per_region!("virtualNetworksPerRegion", 1_000, "virtualNetworks", "virtual networks", VIRTUAL_NETWORKS),
    items!("subnetsPerVirtualNetwork", 3_000, "virtualNetworks", "subnets", "subnets", SUBNETS),
    items!(
        "peeringsPerVirtualNetwork",
        500,
        "virtualNetworks",
        "virtualNetworkPeerings",
        "virtual network peerings",
        VIRTUAL_NETWORK_PEERINGS
    ),
    items!(
        "dnsServersPerVirtualNetwork",
        20,
        "virtualNetworks",
        "dhcpOptions/dnsServers",
        "DNS servers",
        DNS_SERVERS
    ),
    Limit::of("network.addressesPerVirtualNetwork", 65_536),
    per_region!("interfacesPerRegion", 65_536, "networkInterfaces", "network interfaces", NETWORK_INTERFACES),
    items!(
        "ipConfigurationsPerInterface",
        256,
        "networkInterfaces",
        "ipConfigurations",
        "IP configurations",
        IP_CONFIGURATIONS
    ),
    per_region!(
        "securityGroupsPerRegion",
        5_000,
        "networkSecurityGroups",
        "network security groups",
        NETWORK_SECURITY_GROUPS
    ),
    Limit::of("network.securityRulesPerGroup", 1_000),
    Limit::of("network.prefixesPerSecurityGroup", 4_000),
    per_region!(
        "applicationSecurityGroupsPerRegion",
        3_000,
        "applicationSecurityGroups",
        "application security groups",
        APPLICATION_SECURITY_GROUPS
    ),
    Limit::of("network.applicationSecurityGroupsPerIpConfiguration", 20),
    Limit::of("network.applicationSecurityGroupsPerRule", 10),
    Limit::of("network.applicationSecurityGroupsPerSecurityGroup", 100),
    per_region!("routeTablesPerRegion", 200, "routeTables", "route tables", ROUTE_TABLES),
    Limit::of("network.routesPerTable", 400),
    // Of an enterprise agreement; other offers begin at 10.
    Limit::of("network.publicIpAddressesPerRegion", 1_000),
    // The shortest prefixes of public addresses: /28 for IPv4, /124 for IPv6, that is 16 addresses.
    Limit::of("network.addressesPerPublicIpPrefix", 16),
    // Load balancers with sku Standard; those with sku Basic have limits of their own.
    per_region!("loadBalancersPerRegion", 1_000, "loadBalancers", "load balancers", LOAD_BALANCERS),
    Limit::of("network.rulesPerLoadBalancer", 1_500),
    Limit::of("network.rulesPerBasicLoadBalancer", 250),
    // The figures that refusals name; the published table of limits has lower ones for some offers.
    Limit::of("network.rulesPerInterface", 1_500),
    Limit::of("network.frontendsPerLoadBalancer", 600),
    Limit::of("network.frontendsPerBasicLoadBalancer", 200),
    Limit::of("network.outboundRulesPerLoadBalancer", 600),
    Limit::of("network.addressesPerBackendPool", 5_000),
    per_region!("natGatewaysPerRegion", 1_000, "natGateways", "NAT gateways", NAT_GATEWAYS),
    Limit::of("network.publicIpAddressesPerNatGateway", 16),
    per_region!(
        "privateLinkServicesPerRegion",
        800,
        "privateLinkServices",
        "private link services",
        PRIVATE_LINK_SERVICES
    ),
    Limit::of("network.ipConfigurationsPerPrivateLinkService", 8),
    Limit::of("network.privateEndpointsPerPrivateLinkService", 1_000),
    Limit::of("network.privateEndpointsPerVirtualNetwork", 1_000),
    per_region!(
        "privateEndpointsPerRegion",
        64_000,
        "privateEndpoints",
        "private endpoints",
        PRIVATE_ENDPOINTS
    ),
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

fn too_many(code: Code, excess: &Excess<'_>) -> Refusal {
    let Excess { called, most, .. } = excess;
    code.details(format_args!(
        "Cannot create more than {most} {called} for this subscription in this region."
    ))
}

fn too_many_items(code: Code, excess: &Excess<'_>) -> Refusal {
    let Excess { id, called, most, wanted, .. } = excess;
    code.details(format_args!("Resource {id} has {wanted} {called}; it cannot have more than {most}."))
}
