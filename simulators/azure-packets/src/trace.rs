//! Follows one packet from its sender to its destination.

use std::net::IpAddr;

use super::balancer::{Frontend, LoadBalancer};
use super::delivery::Delivery;
use super::first_packet::{Packet, Source};
use super::health::Probed;
use super::machine::{Interface, Power};
use super::network::Network;
use super::packet_trace::platform_service;
use super::packet_trace::{PacketTrace, Sender};
use super::probe_answers::ProbeAnswers;
use super::protocol::Protocol;
use super::route::NextHop;
use super::security_group::{Direction, is_carried, is_private};
use super::service_tag;
use super::verdict::{Hop, Refusal, Result, Verdict};

impl Network {
    /// Follows a packet.
    pub fn trace(&self, probes: &dyn ProbeAnswers, packet: &Packet) -> Verdict {
        self.trace_as_probed(probes, &Probed::default(), packet)
    }

    /// Follows a packet; a rule's machines are probed once for all packets.
    pub(super) fn trace_as_probed(
        &self,
        probes: &dyn ProbeAnswers,
        probed: &Probed,
        packet: &Packet,
    ) -> Verdict {
        let guest = match &packet.from {
            Source::VirtualNetwork { network, address } => {
                self.find_network(network).ok().and_then(|id| self.guest(id, *address))
            }
            _ => None,
        };
        let mut trace = PacketTrace {
            network: self,
            probes,
            probed,
            packet,
            to: packet.to,
            hops: Vec::new(),
            passed: 0,
            guest: guest.as_ref(),
        };
        let refusal = trace.follow().err();
        Verdict::new(packet, trace.hops, refusal)
    }

    /// How a machine's TCP packets to the internet leave, as [`Hop::OutboundAddress`] has it.
    ///
    /// # Errors
    ///
    /// Why they cannot; the machine may also not be there.
    pub fn outbound_of(&self, node: &str) -> Result<super::Outbound> {
        let (first, _) = self.find_interfaces(node)?;
        let name = first.node_name().to_owned();
        self.outbound(first, Protocol::Tcp).map_err(|why| Refusal::NoOutbound { node: name, why })
    }
}

/// The most machines that may forward a packet: firewalls in front of firewalls make a handful, so more is a loop.
const MAX_FORWARDS: u8 = 8;

/// The holder of the destination address.
enum AddressHolder<'a> {
    Frontend(&'a LoadBalancer, &'a Frontend),
    Interface(&'a Interface),
}

/// The next stop of a packet that left a subnet.
enum Next<'a> {
    AddressHolder(AddressHolder<'a>),
    /// A machine, or machines behind an internal frontend, that pass it on.
    Appliance(AddressHolder<'a>),
    Outside,
}

impl<'a> PacketTrace<'a> {
    fn follow(&mut self) -> Result<()> {
        match &self.packet.from {
            Source::Internet { address } => {
                if address.is_ipv4() != self.to.is_ipv4() {
                    return Err(self.wrong_family(&address.to_string()));
                }
                self.enter_from_outside(Sender { address: *address, interface: None })
            }
            Source::Node { node } => self.leave_node(node),
            Source::Pod { address } => self.leave_pod(*address),
            Source::VirtualNetwork { network, address } => match self.guest {
                Some(guest) => self.start(guest, *address, &address.to_string()),
                None => {
                    self.network.find_network(network)?;
                    Err(Refusal::NoSuchSender { node: format!("{address} in {network}") })
                }
            },
            Source::PrivateEndpoint { endpoint } => {
                let network = self.network;
                self.come_through(network.find_endpoint(endpoint)?, None)
            }
        }
    }

    fn leave_node(&mut self, node: &str) -> Result<()> {
        let (first, interfaces) = self.network.find_interfaces(node)?;
        let name = first.node_name().to_owned();
        let found = interfaces.into_iter().find_map(|interface| {
            Some((interface, interface.address?)).filter(|(_, own)| own.is_ipv4() == self.to.is_ipv4())
        });
        match found {
            Some((interface, address)) => self.start(interface, address, &name),
            None => Err(self.wrong_family(&name)),
        }
    }

    /// A pod sends by the interface that has its address, or by the node that owns it by routes.
    fn leave_pod(&mut self, address: IpAddr) -> Result<()> {
        let network = self.network;
        let own = network.with_address(address).find(|interface| interface.machine.is_some());
        match own.or_else(|| network.owner_by_route(address)) {
            Some(interface) => {
                let name = interface.node_name().to_owned();
                self.start(interface, address, &name)
            }
            None => Err(Refusal::NoSuchSender { node: address.to_string() }),
        }
    }

    fn start(&mut self, interface: &'a Interface, address: IpAddr, name: &str) -> Result<()> {
        if interface.power() != Power::Running {
            return Err(Refusal::SenderOff { node: name.to_owned() });
        }
        if address.is_ipv4() != self.to.is_ipv4() {
            return Err(self.wrong_family(name));
        }
        self.hops.push(Hop::Sender { node: name.to_owned(), address });
        if let Some(service) = platform_service(self.to) {
            self.hops.push(Hop::Platform { service });
            return Ok(());
        }
        self.leave(interface, address)
    }

    /// Sends a packet out of an interface, by the routes of its subnet and through its security groups.
    fn leave(&mut self, from: &'a Interface, source: IpAddr) -> Result<()> {
        // Nodes and firewalls translate the source of packets to the outside to their own address.
        let address = if is_private(self.to) { source } else { from.address.unwrap_or(source) };
        let sender = Sender { address, interface: Some(from) };
        if from.address != Some(address) && !from.forwards {
            return Err(Refusal::NotForwarding { node: from.node_name().to_owned(), address });
        }
        let next = self.next(from)?;
        let destination_interface = match &next {
            Next::AddressHolder(AddressHolder::Interface(there)) => Some(*there),
            _ => None,
        };
        self.pass(from, &self.flow(sender, destination_interface), Direction::Outbound)?;
        match next {
            Next::AddressHolder(AddressHolder::Frontend(balancer, frontend)) => {
                self.through(balancer, frontend, sender)
            }
            Next::AddressHolder(AddressHolder::Interface(there)) => match &there.endpoint {
                Some(endpoint) => self.enter_endpoint(endpoint, there, sender),
                None => self.deliver(sender, &Delivery::unchanged(there, self.to, self.packet.port)),
            },
            Next::Appliance(appliance) => self.by_appliance(&appliance, sender),
            Next::Outside => self.go_outside(from),
        }
    }

    /// The next hop by the routes of the subnet.
    fn next(&mut self, from: &'a Interface) -> Result<Next<'a>> {
        let to = self.to;
        let Some(route) = self.network.route(from, to) else {
            // An unknown subnet has no routes; the packet goes to the holder of the address.
            return Ok(self.private_owner(from)?.map_or(Next::Outside, Next::AddressHolder));
        };
        self.hops.push(Hop::Route { route: route.clone() });
        let local = |trace: &Self| match trace.private_owner(from)? {
            Some(owner) => Ok(Next::AddressHolder(owner)),
            None => Err(Refusal::NoSuchAddress { address: to }),
        };
        match &route.next_hop {
            NextHop::VirtualNetwork | NextHop::Peering { .. } | NextHop::PrivateEndpoint { .. } => {
                local(self)
            }
            NextHop::Internet => Ok(Next::Outside),
            NextHop::VirtualNetworkGateway => Err(Refusal::NoGateway { route }),
            NextHop::None if route.is_users() => Err(Refusal::BlackHole { route }),
            NextHop::None => local(self),
            NextHop::VirtualAppliance { address } => match self.owner_of(from, *address).ok().flatten() {
                Some(appliance) => Ok(Next::Appliance(appliance)),
                None => Err(Refusal::NoAppliance { route }),
            },
        }
    }

    /// The holder of the destination as a private address that `from` can reach; `None` if the address is not a private
    /// one in use, and the packet leaves for the internet.
    fn private_owner(&self, from: &Interface) -> Result<Option<AddressHolder<'a>>> {
        match self.owner_of(from, self.to)? {
            None if is_private(self.to) => Err(Refusal::NoSuchAddress { address: self.to }),
            owner => Ok(owner),
        }
    }

    fn owner_of(&self, from: &Interface, address: IpAddr) -> Result<Option<AddressHolder<'a>>> {
        let network = self.network;
        let owners = network
            .internal_frontends(address)
            .map(|(balancer, frontend)| {
                (AddressHolder::Frontend(balancer, frontend), frontend.virtual_network.as_ref())
            })
            .chain(
                network
                    .with_address(address)
                    .map(|interface| (AddressHolder::Interface(interface), interface.virtual_network())),
            );
        let here = from.virtual_network();
        let mut elsewhere = None;
        for (owner, there) in owners {
            match (here, there) {
                (Some(here), Some(there)) if !network.are_connected(here, there) => {
                    elsewhere = Some(Refusal::OtherVirtualNetwork {
                        address,
                        here: here.clone(),
                        there: there.clone(),
                    });
                }
                _ => return Ok(Some(owner)),
            }
        }
        elsewhere.map_or(Ok(None), Err)
    }

    /// Sends a packet to a machine that forwards it, or that has the destination behind it.
    fn by_appliance(&mut self, appliance: &AddressHolder<'a>, sender: Sender<'a>) -> Result<()> {
        let network = self.network;
        let (interface, address) = match appliance {
            AddressHolder::Interface(interface) => (*interface, interface.address.unwrap_or(self.to)),
            AddressHolder::Frontend(balancer, frontend) => {
                let chosen = self.balance(balancer, frontend, sender)?;
                (chosen.interface, chosen.address)
            }
        };
        let node = interface.node_name().to_owned();
        self.pass(interface, &self.flow(sender, None), Direction::Inbound)?;
        if interface.machine.is_none() {
            return Err(Refusal::NoMachine { address });
        }
        if interface.power() != Power::Running {
            return Err(Refusal::MachineOff { node, address });
        }
        if !interface.forwards {
            return Err(Refusal::NotForwarding { node, address: self.to });
        }
        let is_somebodys = network.with_address(self.to).next().is_some()
            || network.internal_frontends(self.to).next().is_some();
        let owner = network.owner_by_route(self.to).filter(|_| !is_somebodys && is_private(self.to));
        if owner.is_some_and(|owner| owner.machine == interface.machine) {
            let port = self.packet.port;
            self.hops.push(Hop::Arrived { node, address, destination: self.to, port });
            return Ok(());
        }
        self.passed += 1;
        if self.passed > MAX_FORWARDS {
            return Err(Refusal::Loop { address: self.to });
        }
        self.hops.push(Hop::Forwarded { node, address });
        self.leave(interface, sender.address)
    }

    /// Out of Azure's private networks: with a public address, and back in where it is for a public IP
    /// of this Azure.
    fn go_outside(&mut self, from: &'a Interface) -> Result<()> {
        let node = from.node_name().to_owned();
        let outbound = self
            .network
            .outbound(from, self.packet.protocol)
            .map_err(|why| Refusal::NoOutbound { node, why })?;
        // The choice among several addresses is arbitrary, but the same for every packet of a flow.
        let address = match outbound.addresses.as_slice() {
            [] => None,
            addresses => addresses.get(usize::from(self.packet.source_port) % addresses.len()).copied(),
        };
        self.hops.push(Hop::OutboundAddress { address, means: outbound.means, ports: outbound.ports });
        // An address that cannot be known beforehand matches only rules for all addresses.
        let unnamed = if self.to.is_ipv4() {
            IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)
        };
        if self.network.public_at(self.to).is_none() && is_carried(self.to) {
            self.hops.push(Hop::Outside { address: self.to, azures: service_tag::is_azures(self.to) });
            return Ok(());
        }
        self.enter_from_outside(Sender { address: address.unwrap_or(unnamed), interface: None })
    }
}
