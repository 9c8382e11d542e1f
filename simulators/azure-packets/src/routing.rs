//! The route of a packet.

use std::net::{IpAddr, Ipv4Addr};

use azure_types::ResourceId;
use ipnet::{IpNet, Ipv4Net};

use super::machine::Interface;
use super::network::Network;
use super::route::{NextHop, Route, RouteTable};

/// Private ranges that Azure drops where no network has them (RFC 1918, RFC 6598).
const DROPPED: [(Ipv4Addr, u8); 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
];

impl Network {
    /// Azure's own routes and those of the table, for subnets of one virtual network.
    pub(super) fn routes_of_subnet(&self, network: &ResourceId, table: Option<&RouteTable>) -> Vec<Route> {
        let mut routes = Vec::new();
        if let Some(here) = self.virtual_networks.get(network) {
            routes.extend(here.prefixes.iter().map(|prefix| Route::own(*prefix, NextHop::VirtualNetwork)));
            for peer in &here.peers {
                let to_peer = NextHop::Peering { network: peer.network.clone() };
                routes
                    .extend(self.prefixes_of(peer).iter().map(|prefix| Route::own(*prefix, to_peer.clone())));
            }
        }
        routes.extend(DROPPED.iter().filter_map(|(address, length)| {
            Some(Route::own(Ipv4Net::new(*address, *length).ok()?.into(), NextHop::None))
        }));
        let everything = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)];
        routes.extend(
            everything
                .into_iter()
                .filter_map(|any| Some(Route::own(IpNet::new(any, 0).ok()?, NextHop::Internet))),
        );
        routes.extend(table.into_iter().flat_map(|table| table.routes.iter().cloned()));
        routes
    }

    /// The routes in force in a subnet, longest prefix first; overridden ones are left out. The routes
    /// to private endpoints, one for each, are not among them.
    pub fn effective_routes(&self, subnet: &ResourceId) -> Vec<Route> {
        let Some(subnet) = self.subnets.get(subnet) else { return Vec::new() };
        let mut routes: Vec<Route> = Vec::new();
        // Of equal prefixes a user's route counts first, then the network's own.
        for route in subnet.routes.iter().filter(|route| route.is_users()).chain(&subnet.routes) {
            if !routes.iter().any(|known| known.prefix == route.prefix) {
                routes.push(route.clone());
            }
        }
        routes.sort_by_key(|route| (std::cmp::Reverse(route.prefix.prefix_len()), route.prefix));
        routes
    }

    /// The route that a packet takes from an interface; `None` where the subnet is not known.
    pub(super) fn route(&self, from: &Interface, to: IpAddr) -> Option<Route> {
        let subnet = from.targets.subnet.as_deref()?;
        let best = subnet
            .routes
            .iter()
            .filter(|route| route.prefix.contains(&to))
            // The first of the best: Azure's own network routes come before those that drop.
            .rev()
            .max_by_key(|route| (route.prefix.prefix_len(), route.is_users()))?;
        let endpoint = self.with_address(to).find_map(|interface| {
            let there = interface.virtual_network()?;
            let endpoint = interface.endpoint.as_ref()?;
            self.are_connected(&subnet.virtual_network, there).then_some((interface, endpoint))
        });
        let Some((interface, endpoint)) = endpoint else { return Some(best.clone()) };
        let host = IpNet::from(to);
        // An endpoint has a route of its own, which gives way to a user's route for the same address, or
        // for any part of the network where the endpoint's subnet lets route tables have a say.
        let table_counts =
            interface.targets.subnet.as_deref().is_some_and(|s| s.endpoint_policies.route_table);
        let within_network = interface
            .virtual_network()
            .and_then(|id| self.virtual_networks.get(id))
            .is_some_and(|network| network.prefixes.iter().any(|prefix| prefix.contains(&best.prefix)));
        if best.is_users() && (best.prefix == host || (table_counts && within_network)) {
            return Some(best.clone());
        }
        Some(Route::own(host, NextHop::PrivateEndpoint { endpoint: endpoint.clone() }))
    }

    /// The machine that owns an address which no interface has: the one that user routes lead to, as
    /// pod ranges do.
    pub(super) fn owner_by_route(&self, address: IpAddr) -> Option<&Interface> {
        let mut best: Option<(u8, &Interface)> = None;
        for subnet in self.subnets.values() {
            for route in subnet.routes.iter().filter(|route| route.prefix.contains(&address)) {
                let NextHop::VirtualAppliance { address: hop } = route.next_hop else { continue };
                // A default route leads to a firewall, not to the owner of everything.
                if route.prefix.prefix_len() == 0 {
                    continue;
                }
                let owner = self.with_address(hop).find(|interface| {
                    interface
                        .virtual_network()
                        .is_some_and(|there| self.are_connected(&subnet.virtual_network, there))
                });
                let longer = |best: &Option<(u8, &Interface)>| {
                    best.is_none_or(|(length, known)| {
                        let candidate = (route.prefix.prefix_len(), owner.map(|owner| &owner.id));
                        candidate > (length, Some(&known.id))
                    })
                };
                if let (Some(owner), true) = (owner, longer(&best)) {
                    best = Some((route.prefix.prefix_len(), owner));
                }
            }
        }
        best.map(|(_, interface)| interface)
    }
}
