//! Whether a Service is reachable, and at which cluster's nodes.

use std::net::IpAddr;

use azure_simulator::packet::{Hop, Network, Packet, ProbeAnswers, Protocol, Source};
use azure_types::ResourceId;
use testkit::World;

/// A client on the internet that every Service allows.
const CLIENT: &str = "203.0.113.7";

/// A host in each network, at an address that no machine has.
const HOST: &str = "10.240.255.250";

/// The number of flows to each address.
const FLOWS: u16 = 3;

/// The nodes of all clusters: each answers only for its own machines.
pub(super) struct Answers<'a>(pub(super) &'a [World]);

impl ProbeAnswers for Answers<'_> {
    fn answers(
        &self,
        machine: &ResourceId,
        at: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool {
        self.0.iter().any(|world| world.answers.answers(machine, at, protocol, port, path))
    }
}

/// Why a Service is not reachable at the nodes of its cluster.
pub(crate) fn lost(
    network: &Network,
    worlds: &[World],
    cluster: usize,
    key: &str,
    port: u16,
    internal: bool,
) -> Vec<String> {
    let world = &worlds[cluster];
    let shape = &world.shape;
    let mut lost = Vec::new();
    for to in world.addresses(key) {
        let source = if internal {
            Source::virtual_network(&shape.virtual_network, HOST.parse().expect("it is an address"))
        } else {
            Source::internet(CLIENT.parse().expect("it is an address"))
        };
        let packet = Packet::new(source, to, port, Protocol::Tcp);
        for flow in 0..FLOWS {
            let verdict = network.trace(&Answers(worlds), &packet.clone().with_source_port(40_000 + flow));
            let machine = verdict.hops.iter().find_map(|hop| match hop {
                Hop::Chosen { machine, .. } => machine.clone(),
                _ => None,
            });
            let is_own = |id: &ResourceId| {
                world.azure.document(id).is_some_and(|document| shape.has_machine(&document))
            };
            if !verdict.arrives {
                lost.push(format!("cluster {cluster}'s {key} is not reached: {}", verdict.sentence()));
                break;
            }
            if !machine.as_ref().is_some_and(is_own) {
                lost.push(format!("cluster {cluster}'s {key} leads to {machine:?}: {}", verdict.sentence()));
                break;
            }
        }
    }
    lost
}
