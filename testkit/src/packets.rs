//! Checks whether traffic arrives.

use std::net::IpAddr;

use azure_simulator::packet::{FlowPlan, FlowReport, Hop, Network, Packet, Protocol, Source, Verdict, trace};

use crate::world::World;

impl World {
    /// The verdict on a packet now.
    pub fn send(&self, packet: &Packet) -> Verdict {
        trace(&self.azure, &self.answers, packet)
    }

    /// A packet from the internet.
    pub fn from_internet(&self, sender: &str, to: IpAddr, port: u16, protocol: Protocol) -> Verdict {
        let sender = sender.parse().expect("the sender is an address");
        self.send(&Packet::new(Source::internet(sender), to, port, protocol))
    }

    /// A packet from one of the nodes.
    pub fn from_node(&self, node: &str, to: IpAddr, port: u16, protocol: Protocol) -> Verdict {
        self.send(&Packet::new(Source::node(node), to, port, protocol))
    }

    /// The current network, to follow flows from one moment to another.
    pub fn network_now(&self) -> Network {
        Network::read(&self.azure)
    }

    /// What happened to flows from the internet that began in the network `before`.
    pub fn flows_since(&self, before: &Network, to: IpAddr, port: u16) -> FlowReport {
        before.flows_after(&self.answers, &self.network_now(), &self.answers, &FlowPlan::new(to, port))
    }

    /// The nodes at which 64 flows arrive, sorted and without duplicates: from the internet, or, to a private address,
    /// from a host in the virtual network.
    pub fn reached(&self, to: IpAddr, port: u16) -> Vec<String> {
        let (is_private, host, stranger) = match to {
            IpAddr::V4(to) => (to.is_private(), "10.240.255.250", "203.0.113.7"),
            IpAddr::V6(to) => (to.is_unique_local(), "fd00:10:240::fffa", "2001:db8:ffff::7"),
        };
        let source = if is_private {
            let host = host.parse().expect("it is an address");
            Source::virtual_network(&self.shape.virtual_network, host)
        } else {
            Source::internet(stranger.parse().expect("it is an address"))
        };
        let packet = Packet::new(source, to, port, Protocol::Tcp);
        let verdicts = (0..64).map(|flow| self.send(&packet.clone().with_source_port(40_000 + flow)));
        let mut nodes: Vec<String> = verdicts
            .filter_map(|verdict| {
                verdict.hops.into_iter().find_map(|hop| match hop {
                    // Azure keeps the case in which a machine was named; names of nodes are in lower case.
                    Hop::Arrived { node, .. } => Some(node.to_lowercase()),
                    _ => None,
                })
            })
            .collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}
