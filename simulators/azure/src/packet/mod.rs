//! The packet oracle: does a packet from here reach there, by which way, and if not, why not?
//!
//! It reads nothing but documents of the simulated Azure and asks the stand-in nodes what they would
//! answer to a health probe, so a test can ask whether traffic arrives instead of how some JSON looks.
//!
//! It speaks for Azure's network alone. What a node does with a packet before it leaves (kube-proxy
//! short-cuts the cluster's own load balancer addresses) or after it arrived is the node's matter.

pub(crate) mod balancer;
mod delivery;
mod fate;
mod flows;
mod health;
mod inbound_nat;
pub(crate) mod json;
mod lookup;
pub(crate) mod machine;
pub(crate) mod network;
mod outbound;
mod private_link;
mod route;
mod security_group;
mod service_tag;
mod spread;
mod trace;
mod verdict;
mod virtual_network;
mod what_if;

use std::fmt;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};

use crate::Documents;

pub use balancer::AdminState;
pub use fate::Fate;
pub use flows::{FlowChange, FlowFate, FlowPlan, FlowReport, MAX_FLOWS, NodeFlows, Reason, flows};
pub use health::{Health, MemberState, Members};
pub use network::Network;
pub use outbound::{NoOutbound, Outbound, OutboundMeans};
pub use route::{NextHop, Route};
pub use security_group::{Access, Decision, Direction};
pub use verdict::{Hop, Refusal, Verdict};
pub use what_if::Change;

/// A packet to be sent: the first one of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packet {
    /// Who sends it.
    pub from: Source,
    /// Where to.
    pub to: IpAddr,
    /// The destination port.
    pub port: u16,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The source port; flows that differ in it alone may reach different nodes.
    #[serde(default = "default_source_port")]
    pub source_port: u16,
}

/// Who sends a packet.
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
    /// A host in a virtual network that no document tells of.
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

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
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

impl Protocol {
    /// The name as Azure writes it in rules, ignoring case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The first port that systems use for outgoing connections (RFC 6335).
fn default_source_port() -> u16 {
    49_152
}

/// What the machines would answer to a health probe.
pub trait ProbeAnswers {
    /// Whether the machine `instance` (a virtual machine or scale set instance) answers a probe sent
    /// to `node_address` on `port`. `protocol` is as the probe's document has it: `Tcp`, `Http` or
    /// `Https`; `path` is what an HTTP probe asks for. Asked only of running machines.
    fn answers(
        &self,
        instance: &ResourceId,
        node_address: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool;
}

/// Every probe is answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysHealthy;

impl ProbeAnswers for AlwaysHealthy {
    fn answers(&self, _: &ResourceId, _: IpAddr, _: &str, _: u16, _: Option<&str>) -> bool {
        true
    }
}

/// Follows a packet through the simulated network. To follow many, read a [`Network`] once.
pub fn trace(documents: &dyn Documents, probes: &dyn ProbeAnswers, packet: &Packet) -> Verdict {
    Network::read(documents).trace(probes, packet)
}
