//! What members of Network's documents hold.

use azure_engine::schema::Shape::{Flag, Number, Refers, Text};
use azure_engine::schema::{Members, Shape, members};

const ADDRESSES: Shape = Refers("publicIPAddresses");
const ADDRESS_PREFIXES: Shape = Refers("publicIPPrefixes");
const APPLICATION_GROUPS: Shape = Refers("applicationSecurityGroups");
const FRONTENDS: Shape = Refers("loadBalancers/frontendIPConfigurations");
const NAT_RULES: Shape = Refers("loadBalancers/inboundNatRules");
const NETWORKS: Shape = Refers("virtualNetworks");
const POOLS: Shape = Refers("loadBalancers/backendAddressPools");
const SUBNETS: Shape = Refers("virtualNetworks/subnets");

const BALANCERS: &str = "Microsoft.Network/loadBalancers";
const ENDPOINTS: &str = "Microsoft.Network/privateEndpoints";
const INTERFACES: &str = "Microsoft.Network/networkInterfaces";
const LINK_SERVICES: &str = "Microsoft.Network/privateLinkServices";
const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";
const VIRTUAL_NETWORKS: &str = "Microsoft.Network/virtualNetworks";
const PUBLIC_ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";
const ROUTE_TABLES: &str = "Microsoft.Network/routeTables";

const SUBNET: &str = "properties/subnets/*/properties";
const PEERING: &str = "properties/virtualNetworkPeerings/*/properties";
const CONFIGURATION: &str = "properties/ipConfigurations/*/properties";
const FRONTEND: &str = "properties/frontendIPConfigurations/*/properties";
const POOL: &str = "properties/backendAddressPools/*/properties";
const POOL_ADDRESS: &str =
    "properties/backendAddressPools/*/properties/loadBalancerBackendAddresses/*/properties";
const RULE: &str = "properties/loadBalancingRules/*/properties";
const PROBE: &str = "properties/probes/*/properties";
const NAT_RULE: &str = "properties/inboundNatRules/*/properties";
const NAT_POOL: &str = "properties/inboundNatPools/*/properties";
const OUTBOUND: &str = "properties/outboundRules/*/properties";
const SECURITY_RULE: &str = "properties/securityRules/*/properties";
const ROUTE: &str = "properties/routes/*/properties";

pub(crate) static MEMBERS: &[Members] = &[
    members(VIRTUAL_NETWORKS, "properties", &["enableDdosProtection", "enableVmProtection"], Flag),
    members(VIRTUAL_NETWORKS, "properties", &["flowTimeoutInMinutes"], Number),
    members(VIRTUAL_NETWORKS, SUBNET, &["addressPrefix", "addressPrefixes/*"], Text),
    members(VIRTUAL_NETWORKS, SUBNET, &["defaultOutboundAccess"], Flag),
    members(VIRTUAL_NETWORKS, SUBNET, &["networkSecurityGroup"], Refers("networkSecurityGroups")),
    members(VIRTUAL_NETWORKS, SUBNET, &["routeTable"], Refers("routeTables")),
    members(VIRTUAL_NETWORKS, SUBNET, &["natGateway"], Refers("natGateways")),
    members(
        VIRTUAL_NETWORKS,
        PEERING,
        &[
            "allowForwardedTraffic",
            "allowGatewayTransit",
            "allowVirtualNetworkAccess",
            "doNotVerifyRemoteGateways",
            "peerCompleteVnets",
            "useRemoteGateways",
        ],
        Flag,
    ),
    members(VIRTUAL_NETWORKS, PEERING, &["remoteVirtualNetwork"], NETWORKS),
    members(
        INTERFACES,
        "properties",
        &["disableTcpStateTracking", "enableAcceleratedNetworking", "enableIPForwarding"],
        Flag,
    ),
    members(INTERFACES, "properties", &["networkSecurityGroup"], Refers("networkSecurityGroups")),
    members(INTERFACES, "properties/dnsSettings", &["dnsServers/*", "internalDnsNameLabel"], Text),
    members(INTERFACES, CONFIGURATION, &["primary"], Flag),
    members(INTERFACES, CONFIGURATION, &["privateIPAddress"], Text),
    members(INTERFACES, CONFIGURATION, &["subnet"], SUBNETS),
    members(INTERFACES, CONFIGURATION, &["publicIPAddress"], ADDRESSES),
    members(INTERFACES, CONFIGURATION, &["loadBalancerBackendAddressPools/*"], POOLS),
    members(INTERFACES, CONFIGURATION, &["loadBalancerInboundNatRules/*"], NAT_RULES),
    members(INTERFACES, CONFIGURATION, &["applicationSecurityGroups/*"], APPLICATION_GROUPS),
    members(PUBLIC_ADDRESSES, "properties", &["idleTimeoutInMinutes"], Number),
    members(PUBLIC_ADDRESSES, "properties", &["ipAddress"], Text),
    members(PUBLIC_ADDRESSES, "properties", &["publicIPPrefix"], ADDRESS_PREFIXES),
    members(PUBLIC_ADDRESSES, "properties", &["linkedPublicIPAddress", "servicePublicIPAddress"], ADDRESSES),
    members(PUBLIC_ADDRESSES, "properties/dnsSettings", &["domainNameLabel", "fqdn", "reverseFqdn"], Text),
    members("Microsoft.Network/publicIPPrefixes", "properties", &["prefixLength"], Number),
    members(BALANCERS, FRONTEND, &["privateIPAddress"], Text),
    members(BALANCERS, FRONTEND, &["subnet"], SUBNETS),
    members(BALANCERS, FRONTEND, &["publicIPAddress"], ADDRESSES),
    members(BALANCERS, FRONTEND, &["publicIPPrefix"], ADDRESS_PREFIXES),
    members(BALANCERS, POOL, &["drainPeriodInSeconds"], Number),
    members(BALANCERS, POOL, &["virtualNetwork"], NETWORKS),
    members(BALANCERS, POOL_ADDRESS, &["ipAddress"], Text),
    members(BALANCERS, POOL_ADDRESS, &["virtualNetwork"], NETWORKS),
    members(BALANCERS, POOL_ADDRESS, &["subnet"], SUBNETS),
    members(
        BALANCERS,
        RULE,
        &["disableOutboundSnat", "enableConnectionTracking", "enableFloatingIP", "enableTcpReset"],
        Flag,
    ),
    members(BALANCERS, RULE, &["backendPort", "frontendPort", "idleTimeoutInMinutes"], Number),
    members(BALANCERS, RULE, &["frontendIPConfiguration"], FRONTENDS),
    members(BALANCERS, RULE, &["backendAddressPool", "backendAddressPools/*"], POOLS),
    members(BALANCERS, RULE, &["probe"], Refers("loadBalancers/probes")),
    members(BALANCERS, PROBE, &["intervalInSeconds", "numberOfProbes", "port", "probeThreshold"], Number),
    members(BALANCERS, PROBE, &["requestPath"], Text),
    members(BALANCERS, NAT_RULE, &["enableFloatingIP", "enableTcpReset"], Flag),
    members(
        BALANCERS,
        NAT_RULE,
        &[
            "backendPort",
            "frontendPort",
            "frontendPortRangeEnd",
            "frontendPortRangeStart",
            "idleTimeoutInMinutes",
        ],
        Number,
    ),
    members(BALANCERS, NAT_RULE, &["frontendIPConfiguration"], FRONTENDS),
    members(BALANCERS, NAT_RULE, &["backendAddressPool"], POOLS),
    members(BALANCERS, NAT_POOL, &["enableFloatingIP", "enableTcpReset"], Flag),
    members(
        BALANCERS,
        NAT_POOL,
        &["backendPort", "frontendPortRangeEnd", "frontendPortRangeStart", "idleTimeoutInMinutes"],
        Number,
    ),
    members(BALANCERS, NAT_POOL, &["frontendIPConfiguration"], FRONTENDS),
    members(BALANCERS, OUTBOUND, &["enableTcpReset"], Flag),
    members(BALANCERS, OUTBOUND, &["allocatedOutboundPorts", "idleTimeoutInMinutes"], Number),
    members(BALANCERS, OUTBOUND, &["frontendIPConfigurations/*"], FRONTENDS),
    members(BALANCERS, OUTBOUND, &["backendAddressPool"], POOLS),
    members(SECURITY_GROUPS, "properties", &["flushConnection"], Flag),
    members(SECURITY_GROUPS, SECURITY_RULE, &["priority"], Number),
    members(
        SECURITY_GROUPS,
        SECURITY_RULE,
        &[
            "description",
            "destinationAddressPrefix",
            "destinationAddressPrefixes/*",
            "destinationPortRange",
            "destinationPortRanges/*",
            "sourceAddressPrefix",
            "sourceAddressPrefixes/*",
            "sourcePortRange",
            "sourcePortRanges/*",
        ],
        Text,
    ),
    members(
        SECURITY_GROUPS,
        SECURITY_RULE,
        &["destinationApplicationSecurityGroups/*", "sourceApplicationSecurityGroups/*"],
        APPLICATION_GROUPS,
    ),
    members(ROUTE_TABLES, "properties", &["disableBgpRoutePropagation"], Flag),
    members(ROUTE_TABLES, ROUTE, &["addressPrefix", "nextHopIpAddress"], Text),
    members(ROUTE_TABLES, ROUTE, &["hasBgpOverride"], Flag),
    members(LINK_SERVICES, "properties", &["enableProxyProtocol"], Flag),
    members(LINK_SERVICES, "properties", &["loadBalancerFrontendIpConfigurations/*"], FRONTENDS),
    members(LINK_SERVICES, CONFIGURATION, &["primary"], Flag),
    members(LINK_SERVICES, CONFIGURATION, &["privateIPAddress"], Text),
    members(LINK_SERVICES, CONFIGURATION, &["subnet"], SUBNETS),
    members(ENDPOINTS, "properties", &["customNetworkInterfaceName"], Text),
    members(ENDPOINTS, "properties", &["subnet"], SUBNETS),
    members(ENDPOINTS, "properties", &["applicationSecurityGroups/*"], APPLICATION_GROUPS),
];
