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

pub(crate) static MEMBERS: &[Members] = &[
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
    members(LINK_SERVICES, "properties", &["enableProxyProtocol"], Flag),
    members(LINK_SERVICES, "properties", &["loadBalancerFrontendIpConfigurations/*"], FRONTENDS),
    members(LINK_SERVICES, CONFIGURATION, &["primary"], Flag),
    members(LINK_SERVICES, CONFIGURATION, &["privateIPAddress"], Text),
    members(LINK_SERVICES, CONFIGURATION, &["subnet"], SUBNETS),
    members(ENDPOINTS, "properties", &["customNetworkInterfaceName"], Text),
    members(ENDPOINTS, "properties", &["subnet"], SUBNETS),
    members(ENDPOINTS, "properties", &["applicationSecurityGroups/*"], APPLICATION_GROUPS),
];
