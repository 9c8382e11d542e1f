//! Virtual networks and subnets as the oracle reads them.

use azure_types::ResourceId;
use ipnet::IpNet;

use super::route::Route;

#[derive(Debug)]
pub(crate) struct VirtualNetwork {
    pub prefixes: Vec<IpNet>,
    pub peers: Vec<Peer>,
}

/// A peering that is connected and lets packets through.
#[derive(Debug)]
pub(crate) struct Peer {
    pub network: ResourceId,
    /// The other side's addresses, as this side last read them.
    pub prefixes: Vec<IpNet>,
}

#[derive(Debug)]
pub(crate) struct Subnet {
    pub virtual_network: ResourceId,
    pub prefixes: Vec<IpNet>,
    pub group: Option<ResourceId>,
    pub gateway: Option<NatGateway>,
    /// Whether machines without any other way out get an address that Azure chooses.
    pub default_outbound: bool,
    /// Which rules of the subnet hold for private endpoints in it.
    pub endpoint_policies: EndpointPolicies,
    /// Everything but the routes to single private endpoints.
    pub routes: Vec<Route>,
    pub table: Option<ResourceId>,
}

/// `privateEndpointNetworkPolicies` of a subnet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndpointPolicies {
    pub security_group: bool,
    pub route_table: bool,
}

/// A NAT gateway: it precedes every other way out but user routes.
#[derive(Debug, Clone)]
pub(crate) struct NatGateway {
    pub id: ResourceId,
    pub addresses: Vec<ResourceId>,
    pub prefixes: Vec<ResourceId>,
}
