//! Virtual networks, subnets and their routes, out of their documents.

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use crate::json::{id_at, id_of, ids_at, items, text_at};
use crate::network::Network;
use crate::route::RouteTable;
use crate::virtual_network::{EndpointPolicies, NatGateway, Peer, Subnet, VirtualNetwork};
use azure_engine::document::reading::Documents;

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
            .filter_map(|document| RouteTable::read(document, &self.service_tags))
            .collect();
        for (id, mut subnet) in subnets {
            let table = subnet.table.as_ref().and_then(|id| tables.iter().find(|table| table.id == *id));
            subnet.routes = self.routes_of_subnet(&subnet.virtual_network, table);
            self.subnets.insert(id, subnet.into());
        }
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
