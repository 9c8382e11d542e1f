//! Connections between virtual networks.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;

use super::network::Network;
use super::virtual_network::Peer;

impl Network {
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
