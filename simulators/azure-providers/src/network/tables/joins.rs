//! The rights to join that writers of networks need ("Azure permissions for Networking").

use azure_engine::types::join::Join;

const fn join(of: &'static str, members: &'static [&'static str], action: &'static str) -> Join {
    Join { of, members, action }
}

/// Interfaces, and what holds their configurations.
const INTERFACES: &str = "Microsoft.Network/networkInterfaces*";
const SUBNETS: &str = "Microsoft.Network/virtualNetworks*";

pub(crate) static JOINS: [Join; 24] = [
    join("Microsoft.Network/bastionHosts", &["subnet"], SUBNET),
    join("Microsoft.Network/bastionHosts", &["publicIPAddress"], PUBLIC_IP),
    join("Microsoft.Network/loadBalancers*", &["publicIPAddress"], PUBLIC_IP),
    join("Microsoft.Network/loadBalancers*", &["publicIPPrefix"], PUBLIC_IP_PREFIX),
    join("Microsoft.Network/loadBalancers*", &["subnet"], SUBNET),
    join(
        "Microsoft.Network/loadBalancers*",
        &["virtualNetwork"],
        "Microsoft.Network/virtualNetworks/joinLoadBalancer/action",
    ),
    join(INTERFACES, &["subnet"], SUBNET),
    join(INTERFACES, &["publicIPAddress"], PUBLIC_IP),
    join(INTERFACES, &["networkSecurityGroup"], SECURITY_GROUP),
    join(
        INTERFACES,
        &["loadBalancerBackendAddressPools"],
        "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
    ),
    join(
        INTERFACES,
        &["loadBalancerInboundNatRules"],
        "Microsoft.Network/loadBalancers/inboundNatRules/join/action",
    ),
    join(
        INTERFACES,
        &["applicationSecurityGroups"],
        "Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
    ),
    join(
        "Microsoft.Network/networkSecurityGroups*",
        &["sourceApplicationSecurityGroups", "destinationApplicationSecurityGroups"],
        "Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action",
    ),
    join(SUBNETS, &["networkSecurityGroup"], SECURITY_GROUP),
    join(SUBNETS, &["routeTable"], "Microsoft.Network/routeTables/join/action"),
    join(SUBNETS, &["natGateway"], "Microsoft.Network/natGateways/join/action"),
    join(SUBNETS, &["remoteVirtualNetwork"], "Microsoft.Network/virtualNetworks/peer/action"),
    join("Microsoft.Network/natGateways", &["publicIpAddresses"], PUBLIC_IP),
    join("Microsoft.Network/natGateways", &["publicIpPrefixes"], PUBLIC_IP_PREFIX),
    join("Microsoft.Network/publicIPAddresses", &["publicIPPrefix"], PUBLIC_IP_PREFIX),
    join("Microsoft.Network/privateLinkServices", &["subnet"], SUBNET),
    join(
        "Microsoft.Network/privateLinkServices",
        &["loadBalancerFrontendIpConfigurations"],
        "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action",
    ),
    join("Microsoft.Network/privateEndpoints", &["subnet"], SUBNET),
    join(
        "Microsoft.Network/privateEndpoints",
        &["applicationSecurityGroups"],
        "Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
    ),
];

const PUBLIC_IP: &str = "Microsoft.Network/publicIPAddresses/join/action";
const PUBLIC_IP_PREFIX: &str = "Microsoft.Network/publicIPPrefixes/join/action";
const SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets/join/action";
const SECURITY_GROUP: &str = "Microsoft.Network/networkSecurityGroups/join/action";
