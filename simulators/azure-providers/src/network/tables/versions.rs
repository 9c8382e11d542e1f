//! Members that Network's documents have since a version.

use azure_engine::types::version::Since;

const fn since(of: &'static str, member: &'static str, version: &'static str) -> Since {
    Since { of, member, version }
}

const ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";
const BASTIONS: &str = "Microsoft.Network/bastionHosts";
const MEMBER_STATE: &str =
    "properties/backendAddressPools/properties/loadBalancerBackendAddresses/properties/adminState";
const CARDS: &str = "Microsoft.Network/networkInterfaces";
const ENDPOINTS: &str = "Microsoft.Network/privateEndpoints";
const BALANCERS: &str = "Microsoft.Network/loadBalancers";

// Of members of the other types it is known that 2020-11-01 lacks them and 2024-05-01 has them; the first version in
// between is our choice.
pub(crate) static SINCE: [Since; 19] = [
    since("Microsoft.Network/virtualNetworks", "properties/privateEndpointVNetPolicies", "2024-01-01"),
    since(BALANCERS, "properties/loadBalancingRules/properties/backendAddressPools", "2021-03-01"),
    since(BALANCERS, "properties/probes/properties/noHealthyBackendsBehavior", "2023-06-01"),
    since(BALANCERS, "properties/probes/properties/probeThreshold", "2022-05-01"),
    since(ADDRESSES, "properties/ddosSettings/protectionMode", "2022-01-01"),
    since(ADDRESSES, "properties/dnsSettings/domainNameLabelScope", "2023-11-01"),
    since(ADDRESSES, "properties/deleteOption", "2021-03-01"),
    since(
        "Microsoft.Network/privateLinkServices",
        "properties/privateEndpointConnections/properties/privateEndpointLocation",
        "2022-07-01",
    ),
    since(BALANCERS, MEMBER_STATE, "2022-07-01"),
    since(BASTIONS, "properties/enableTunneling", "2021-08-01"),
    since(BASTIONS, "properties/scaleUnits", "2021-08-01"),
    since(BASTIONS, "sku", "2021-08-01"),
    since(ENDPOINTS, "properties/customNetworkInterfaceName", "2021-05-01"),
    since(ENDPOINTS, "properties/ipConfigurations", "2021-05-01"),
    since(CARDS, "properties/auxiliaryMode", "2021-08-01"),
    since(CARDS, "properties/auxiliarySku", "2023-02-01"),
    since(CARDS, "properties/defaultOutboundConnectivityEnabled", "2024-05-01"),
    since(CARDS, "properties/disableTcpStateTracking", "2022-07-01"),
    since(CARDS, "properties/vnetEncryptionSupported", "2021-08-01"),
];
