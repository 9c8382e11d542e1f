//! A packet under way, and the hops behind it.

use std::net::IpAddr;

use super::first_packet::Packet;
use super::flow::Flow;
use super::health::Probed;
use super::machine::Interface;
use super::network::Network;
use super::probe_answers::ProbeAnswers;
use super::security_group::{Access, Direction, PROBE_SOURCE};
use super::verdict::{Hop, Refusal, Result};

/// A packet under way.
pub(super) struct PacketTrace<'a> {
    pub(super) network: &'a Network,
    pub(super) probes: &'a dyn ProbeAnswers,
    pub(super) probed: &'a Probed,
    pub(super) packet: &'a Packet,
    /// The destination: a private link service replaces the packet's own.
    pub(super) to: IpAddr,
    pub(super) hops: Vec<Hop>,
    /// How many machines have passed it on.
    pub(super) passed: u8,
    pub(super) guest: Option<&'a Interface>,
}

/// The sender, as the destination's side sees it.
#[derive(Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) address: IpAddr,
    pub(super) interface: Option<&'a Interface>,
}

impl<'a> PacketTrace<'a> {
    pub(super) fn wrong_family(&self, sender: &str) -> Refusal {
        let family = if self.to.is_ipv4() { "IPv4" } else { "IPv6" };
        Refusal::WrongFamily { sender: sender.to_owned(), family }
    }

    /// The packet as security groups see it; `receiver` is the interface that it goes to, where that is known.
    pub(super) fn flow<'f>(&self, sender: Sender<'f>, receiver: Option<&'f Interface>) -> Flow<'f> {
        Flow {
            source: sender.address,
            source_port: self.packet.source_port,
            source_interface: sender.interface,
            destination: self.to,
            port: self.packet.port,
            destination_interface: receiver,
            protocol: self.packet.protocol,
        }
    }

    /// Applies the security groups around an interface; `Ok(false)` if there are none.
    pub(super) fn pass(
        &mut self,
        interface: &Interface,
        flow: &Flow<'_>,
        direction: Direction,
    ) -> Result<bool> {
        let decisions = self.network.decisions(interface, flow, direction);
        let asked = !decisions.is_empty();
        let denied = decisions.last().filter(|decision| decision.access == Access::Deny).cloned();
        self.hops.extend(decisions.into_iter().map(|decision| Hop::Security { decision }));
        match denied {
            Some(decision) => Err(Refusal::Denied { decision }),
            None => Ok(asked),
        }
    }
}

/// The services of a machine's own host at fixed addresses.
pub(super) fn platform_service(to: IpAddr) -> Option<&'static str> {
    const METADATA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254));
    if to == METADATA {
        Some("instance metadata")
    } else if to == PROBE_SOURCE {
        Some("name service and agent channel")
    } else {
        None
    }
}
