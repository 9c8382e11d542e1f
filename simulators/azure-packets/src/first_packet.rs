//! A packet, and its sender.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::protocol::Protocol;

/// A packet to be sent: the first one of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packet {
    /// The sender.
    pub from: Source,
    /// The destination address.
    pub to: IpAddr,
    /// The destination port.
    pub port: u16,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The source port; flows that differ in it alone may reach different nodes.
    #[serde(default = "default_source_port")]
    pub source_port: u16,
}

/// The sender of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// A host somewhere on the internet.
    Internet {
        /// Its address.
        address: IpAddr,
    },
    /// A machine of the simulated Azure.
    Node {
        /// Its host name, the name of its resource, or one of its private addresses.
        node: String,
    },
    /// A pod whose address an interface has, or that routes say a node owns.
    Pod {
        /// Its address.
        address: IpAddr,
    },
    /// A host in a virtual network that no document describes.
    VirtualNetwork {
        /// The network's name or id.
        network: String,
        /// An address of one of its subnets.
        address: IpAddr,
    },
    /// A client of a private endpoint. The packet is for the endpoint's address, or for that of the
    /// frontend behind it.
    PrivateEndpoint {
        /// The endpoint's name or id.
        endpoint: String,
    },
}

impl Packet {
    /// A packet with an ordinary source port.
    pub fn new(from: Source, to: IpAddr, port: u16, protocol: Protocol) -> Self {
        Self { from, to, port, protocol, source_port: default_source_port() }
    }

    /// The same packet of another flow.
    #[must_use]
    pub fn with_source_port(mut self, source_port: u16) -> Self {
        self.source_port = source_port;
        self
    }
}

impl Source {
    /// A host on the internet.
    pub fn internet(address: IpAddr) -> Self {
        Self::Internet { address }
    }

    /// A machine, by host name, resource name or private address.
    pub fn node(node: impl Into<String>) -> Self {
        Self::Node { node: node.into() }
    }

    /// A pod, by its address.
    pub fn pod(address: IpAddr) -> Self {
        Self::Pod { address }
    }

    /// A host in a virtual network, by the network's name or id.
    pub fn virtual_network(network: impl Into<String>, address: IpAddr) -> Self {
        Self::VirtualNetwork { network: network.into(), address }
    }

    /// A client of a private endpoint, by the endpoint's name or id.
    pub fn private_endpoint(endpoint: impl Into<String>) -> Self {
        Self::PrivateEndpoint { endpoint: endpoint.into() }
    }
}

/// The first port that systems use for outgoing connections (RFC 6335).
pub(super) fn default_source_port() -> u16 {
    49_152
}
