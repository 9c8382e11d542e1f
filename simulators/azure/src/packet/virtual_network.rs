//! Virtual networks and subnets as the oracle reads them.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use super::json::{id_at, id_of, ids_at, items, text_at};
use super::network::Network;
use super::route::{Route, RouteTable};
use crate::Documents;

#[derive(Debug)]
pub(crate) struct VirtualNetwork {
    pub prefixes: Vec<IpNet>,
    pub peers: Vec<Peer>,
}

/// A peering that is connected and lets packets through.
#[derive(Debug)]
pub(crate) struct Peer {
    pub network: ResourceId,
    /// The other side's addresses, as this side last heard of them.
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
    table: Option<ResourceId>,
}

/// `privateEndpointNetworkPolicies` of a subnet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndpointPolicies {
    pub security_group: bool,
    pub route_table: bool,
}

/// A NAT gateway: it goes before every other way out but user routes.
#[derive(Debug, Clone)]
pub(crate) struct NatGateway {
    pub id: ResourceId,
    pub addresses: Vec<ResourceId>,
    pub prefixes: Vec<ResourceId>,
}

impl Network {
    pub(super) fn read_virtual_networks(&mut self, documents: &dyn Documents) {
        let mut subnets = Vec::new();
        for document in documents.of_type("Microsoft.Network/virtualNetworks") {
            let Some(id) = id_of(&document) else { continue };
            for subnet in items(&document, "/properties/subnets") {
                if let Some(subnet_id) = id_of(subnet) {
                    subnets.push((subnet_id, Subnet::read(&id, subnet, documents)));
                }
            }
            let peers =
                items(&document, "/properties/virtualNetworkPeerings").filter_map(Peer::read).collect();
            let prefixes = prefixes(&document, "/properties/addressSpace/addressPrefixes");
            self.virtual_networks.insert(id, VirtualNetwork { prefixes, peers });
        }
        let tables: Vec<RouteTable> = documents
            .of_type("Microsoft.Network/routeTables")
            .iter()
            .filter_map(|document| RouteTable::read(document, self))
            .collect();
        for (id, mut subnet) in subnets {
            let table = subnet.table.as_ref().and_then(|id| tables.iter().find(|table| table.id == *id));
            subnet.routes = self.routes_of_subnet(&subnet.virtual_network, table);
            self.subnets.insert(id, subnet.into());
        }
    }

    /// Whether private addresses of the one network can be reached from the other.
    pub(crate) fn are_connected(&self, one: &ResourceId, other: &ResourceId) -> bool {
        one == other || self.peer(one, other).is_some()
    }

    pub(super) fn peer(&self, here: &ResourceId, there: &ResourceId) -> Option<&Peer> {
        self.virtual_networks.get(here)?.peers.iter().find(|peer| peer.network == *there)
    }

    /// The addresses of a peer: those that it has now, where it is known.
    pub(super) fn prefixes_of<'a>(&'a self, peer: &'a Peer) -> &'a [IpNet] {
        self.virtual_networks.get(&peer.network).map_or(&peer.prefixes, |network| &network.prefixes)
    }

    /// Whether an address is in the address space of a network or of one connected to it.
    pub(super) fn is_in_address_space(&self, network: Option<&ResourceId>, address: IpAddr) -> bool {
        let Some(network) = network.and_then(|id| self.virtual_networks.get(id)) else { return false };
        let of_peers = network.peers.iter().flat_map(|peer| self.prefixes_of(peer));
        network.prefixes.iter().chain(of_peers).any(|prefix| prefix.contains(&address))
    }
}

/// What a NAT gateway names under a member and, for IPv6, under that with `V6` behind.
fn both_families(gateway: &Value, member: &str) -> Vec<ResourceId> {
    let mut all = ids_at(gateway, &format!("/properties/{member}"));
    all.extend(ids_at(gateway, &format!("/properties/{member}V6")));
    all
}

impl Peer {
    fn read(document: &Value) -> Option<Self> {
        let connected = text_at(document, "/properties/peeringState")
            .is_none_or(|state| state.eq_ignore_ascii_case("Connected"));
        let access = document.pointer("/properties/allowVirtualNetworkAccess") != Some(&Value::Bool(false));
        let network = id_at(document, "/properties/remoteVirtualNetwork/id")?;
        (connected && access).then(|| Self {
            network,
            prefixes: prefixes(document, "/properties/remoteAddressSpace/addressPrefixes"),
        })
    }
}

impl Subnet {
    fn read(network: &ResourceId, document: &Value, documents: &dyn Documents) -> Self {
        let mut subnet_prefixes = prefixes(document, "/properties/addressPrefixes");
        subnet_prefixes.extend(
            text_at(document, "/properties/addressPrefix").and_then(|text| text.parse::<IpNet>().ok()),
        );
        let policies = text_at(document, "/properties/privateEndpointNetworkPolicies").unwrap_or_default();
        let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(policies));
        Self {
            virtual_network: network.clone(),
            prefixes: subnet_prefixes,
            group: id_at(document, "/properties/networkSecurityGroup/id"),
            gateway: id_at(document, "/properties/natGateway/id")
                .and_then(|id| Some((documents.document(&id)?, id)))
                .map(|(gateway, id)| NatGateway {
                    id,
                    addresses: both_families(&gateway, "publicIpAddresses"),
                    prefixes: both_families(&gateway, "publicIpPrefixes"),
                }),
            default_outbound: document.pointer("/properties/defaultOutboundAccess")
                != Some(&Value::Bool(false)),
            endpoint_policies: EndpointPolicies {
                security_group: is(&["Enabled", "NetworkSecurityGroupEnabled"]),
                route_table: is(&["Enabled", "RouteTableEnabled"]),
            },
            routes: Vec::new(),
            table: id_at(document, "/properties/routeTable/id"),
        }
    }
}

fn prefixes(document: &Value, pointer: &str) -> Vec<IpNet> {
    items(document, pointer).filter_map(|prefix| prefix.as_str()?.parse().ok()).collect()
}
