//! What came to Network's documents with which version.

use azure_engine::version::Since;

const fn since(of: &'static str, member: &'static str, version: &'static str) -> Since {
    Since { of, member, version }
}

const BALANCERS: &str = "Microsoft.Network/loadBalancers";

// Of members of load balancers it is known that 2020-11-01 has not got them and 2024-05-01 has; in between the first version is
// our choice.
pub(crate) static SINCE: [Since; 4] = [
    since("Microsoft.Network/virtualNetworks", "properties/privateEndpointVNetPolicies", "2024-01-01"),
    since(BALANCERS, "properties/loadBalancingRules/properties/backendAddressPools", "2021-03-01"),
    since(BALANCERS, "properties/probes/properties/noHealthyBackendsBehavior", "2023-06-01"),
    since(BALANCERS, "properties/probes/properties/probeThreshold", "2022-05-01"),
];
