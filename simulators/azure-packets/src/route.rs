//! Routes: the next hop of a packet that leaves a subnet ("Azure virtual network traffic routing").
//!
//! The longest prefix wins; of equal ones a user's route goes before Azure's own.

use std::collections::HashMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::json::{address_at, id_of, items, text_at};
use super::service_tag;

/// A route in force in a subnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// Its destinations.
    pub prefix: IpNet,
    /// The next hop of packets.
    pub next_hop: NextHop,
    /// The route table that holds it; `None` for the routes that Azure makes by itself.
    pub table: Option<ResourceId>,
    /// Its name in the table.
    pub name: Option<String>,
}

/// The next hop of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum NextHop {
    /// The interface that has the address in the virtual network.
    VirtualNetwork,
    /// The interface that has the address in a connected virtual network.
    Peering {
        /// The other network.
        network: ResourceId,
    },
    /// To a private endpoint.
    PrivateEndpoint {
        /// The endpoint.
        endpoint: ResourceId,
    },
    /// Out of the virtual network.
    Internet,
    /// To a machine that passes it on.
    VirtualAppliance {
        /// The machine's address.
        address: IpAddr,
    },
    /// To a gateway; no network here has one.
    VirtualNetworkGateway,
    /// Nowhere: packets are dropped.
    None,
}

/// A route table as written.
#[derive(Debug)]
pub(super) struct RouteTable {
    pub id: ResourceId,
    pub routes: Vec<Route>,
}

impl RouteTable {
    pub fn read(document: &Value, tags: &HashMap<String, Vec<IpNet>>) -> Option<Self> {
        let id = id_of(document)?;
        let mut routes = Vec::new();
        for route in items(document, "/properties/routes") {
            let Some(next_hop) = next_hop(route) else { continue };
            let text = text_at(route, "/properties/addressPrefix").unwrap_or_default();
            let prefixes = match text.parse::<IpNet>() {
                Ok(prefix) => vec![prefix],
                // A service tag stands for all of its prefixes.
                Err(_) => service_tag::prefixes(tags, text),
            };
            routes.extend(prefixes.into_iter().map(|prefix| Route {
                prefix: prefix.trunc(),
                next_hop: next_hop.clone(),
                table: Some(id.clone()),
                name: text_at(route, "/name").map(str::to_owned),
            }));
        }
        Some(Self { id, routes })
    }
}

fn next_hop(route: &Value) -> Option<NextHop> {
    let kind = text_at(route, "/properties/nextHopType")?;
    let is = |word: &str| kind.eq_ignore_ascii_case(word);
    Some(match () {
        () if is("VnetLocal") => NextHop::VirtualNetwork,
        () if is("Internet") => NextHop::Internet,
        () if is("None") => NextHop::None,
        () if is("VirtualNetworkGateway") => NextHop::VirtualNetworkGateway,
        () if is("VirtualAppliance") => {
            NextHop::VirtualAppliance { address: address_at(route, "/properties/nextHopIpAddress")? }
        }
        () => return None,
    })
}

impl Route {
    pub(super) fn own(prefix: IpNet, next_hop: NextHop) -> Self {
        Self { prefix, next_hop, table: None, name: None }
    }

    /// Whether a user wrote it.
    pub fn is_users(&self) -> bool {
        self.table.is_some()
    }

    /// A short description.
    pub(crate) fn words(&self) -> String {
        let to = match &self.next_hop {
            NextHop::VirtualNetwork => "the virtual network".to_owned(),
            NextHop::Peering { network } => format!("peered network {}", network.name()),
            NextHop::PrivateEndpoint { endpoint } => format!("private endpoint {}", endpoint.name()),
            NextHop::Internet => "the internet".to_owned(),
            NextHop::VirtualAppliance { address } => format!("appliance {address}"),
            NextHop::VirtualNetworkGateway => "a gateway".to_owned(),
            NextHop::None => "nowhere".to_owned(),
        };
        match &self.name {
            Some(name) => format!("route {name} ({}) to {to}", self.prefix),
            None => format!("route {} to {to}", self.prefix),
        }
    }
}
