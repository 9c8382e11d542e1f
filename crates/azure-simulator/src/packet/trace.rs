//! Following one packet.

use std::net::IpAddr;

use azure_types::ResourceId;

use super::balancer::{Frontend, LoadBalancer, NatRule, Rule};
use super::network::{Interface, Network, Power, PublicAddress};
use super::security_group::{Access, Direction, Flow, is_private};
use super::spread::{FlowKey, choose};
use super::verdict::{Hop, Refusal, Verdict};
use super::{Packet, ProbeAnswers, Source};

impl Network {
    /// Follows a packet.
    pub fn trace(&self, probes: &dyn ProbeAnswers, packet: &Packet) -> Verdict {
        let mut way = Way { network: self, probes, packet, hops: Vec::new() };
        let refusal = way.follow().err();
        Verdict::new(packet, way.hops, refusal)
    }
}

struct Way<'a> {
    network: &'a Network,
    probes: &'a dyn ProbeAnswers,
    packet: &'a Packet,
    hops: Vec<Hop>,
}

/// Who sends, as the destination's side sees it.
#[derive(Clone, Copy)]
struct Sender<'a> {
    address: IpAddr,
    interface: Option<&'a Interface>,
}

/// What has the destination address.
enum Owner<'a> {
    Frontend(&'a LoadBalancer, &'a Frontend),
    Interface(&'a Interface),
}

/// The last stretch: to which machine, bearing which address, past closed doors or not.
struct Delivery<'a> {
    interface: &'a Interface,
    address: IpAddr,
    destination: IpAddr,
    port: u16,
    /// Only a security group opens the way (standard public addresses).
    closed_without_group: bool,
}

impl<'a> Way<'a> {
    fn follow(&mut self) -> Result<(), Refusal> {
        match &self.packet.from {
            Source::Internet { address } => {
                if address.is_ipv4() != self.packet.to.is_ipv4() {
                    return Err(self.wrong_family(&address.to_string()));
                }
                self.enter_from_outside(Sender { address: *address, interface: None })
            }
            Source::Node { node } => self.leave_node(node),
        }
    }

    fn wrong_family(&self, sender: &str) -> Refusal {
        let family = if self.packet.to.is_ipv4() { "IPv4" } else { "IPv6" };
        Refusal::WrongFamily { sender: sender.to_owned(), family }
    }

    fn leave_node(&mut self, node: &str) -> Result<(), Refusal> {
        let network = self.network;
        let by_address: Option<IpAddr> = node.parse().ok();
        let mut interfaces = network
            .interfaces
            .iter()
            .filter(|interface| {
                interface.machine.is_some()
                    && match by_address {
                        Some(address) => interface.address == Some(address),
                        None => interface.machine_state().is_some_and(|machine| {
                            machine.name.eq_ignore_ascii_case(node)
                                || machine.resource_name.eq_ignore_ascii_case(node)
                        }),
                    }
            })
            .peekable();
        let Some(first) = interfaces.peek() else {
            return Err(Refusal::NoSuchSender { node: node.to_owned() });
        };
        let name = first.node_name().to_owned();
        if first.power() != Power::Running {
            return Err(Refusal::SenderOff { node: name });
        }
        let to = self.packet.to;
        let found = interfaces.find_map(|interface| {
            Some((interface, interface.address?)).filter(|(_, own)| own.is_ipv4() == to.is_ipv4())
        });
        let Some((interface, address)) = found else { return Err(self.wrong_family(&name)) };
        self.hops.push(Hop::Sender { node: name, address });

        let sender = Sender { address, interface: Some(interface) };
        let owner = self.private_owner(interface)?;
        let destination_interface = match &owner {
            Some(Owner::Interface(there)) => Some(*there),
            _ => None,
        };
        self.pass(
            interface,
            &Flow {
                source: address,
                source_port: self.packet.source_port,
                source_interface: Some(interface),
                destination: to,
                port: self.packet.port,
                destination_interface,
                protocol: self.packet.protocol,
            },
            Direction::Outbound,
        )?;
        match owner {
            Some(Owner::Frontend(balancer, frontend)) => self.through(balancer, frontend, sender),
            Some(Owner::Interface(there)) => self.deliver(
                sender,
                &Delivery {
                    interface: there,
                    address: to,
                    destination: to,
                    port: self.packet.port,
                    closed_without_group: false,
                },
            ),
            None => {
                let outside = network.outbound_address(interface);
                self.hops.push(Hop::OutboundAddress { address: outside });
                // An address that nobody can name beforehand matches no rule but those for all of them.
                let unnamed = if to.is_ipv4() {
                    IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)
                } else {
                    IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)
                };
                self.enter_from_outside(Sender { address: outside.unwrap_or(unnamed), interface: None })
            }
        }
    }

    /// What has the destination as a private address that `from` can reach; `None` when the address
    /// is nobody's private one, and the packet leaves for the internet.
    fn private_owner(&self, from: &Interface) -> Result<Option<Owner<'a>>, Refusal> {
        let network = self.network;
        let to = self.packet.to;
        let owners = internal_frontends(network, to)
            .map(|(balancer, frontend)| {
                (Owner::Frontend(balancer, frontend), frontend.virtual_network.as_ref())
            })
            .chain(
                network
                    .interfaces
                    .iter()
                    .filter(|interface| interface.address == Some(to))
                    .map(|interface| (Owner::Interface(interface), interface.virtual_network())),
            );
        let here = from.virtual_network();
        let mut elsewhere = None;
        for (owner, there) in owners {
            match (here, there) {
                (Some(here), Some(there)) if !network.are_connected(here, there) => {
                    elsewhere = Some(Refusal::OtherVirtualNetwork {
                        address: to,
                        here: here.clone(),
                        there: there.clone(),
                    });
                }
                _ => return Ok(Some(owner)),
            }
        }
        match elsewhere {
            Some(refusal) => Err(refusal),
            None if is_private(to) => Err(Refusal::NoSuchAddress { address: to }),
            None => Ok(None),
        }
    }

    /// From outside to an address that should be public.
    fn enter_from_outside(&mut self, sender: Sender<'_>) -> Result<(), Refusal> {
        let network = self.network;
        let to = self.packet.to;
        let Some(public) = network.public_addresses.iter().find(|public| public.address == Some(to)) else {
            let is_somebodys = network.interface_at(to, None).is_some()
                || internal_frontends(network, to).next().is_some()
                || is_private(to);
            return Err(if is_somebodys {
                Refusal::PrivateAddress { address: to }
            } else {
                Refusal::NoSuchAddress { address: to }
            });
        };
        self.hops.push(Hop::PublicAddress { id: public.id.clone(), address: to });
        let frontend = network.balancers.iter().find_map(|balancer| {
            let frontend = balancer
                .frontends
                .iter()
                .find(|frontend| frontend.public_address.as_ref() == Some(&public.id))?;
            Some((balancer, frontend))
        });
        if let Some((balancer, frontend)) = frontend {
            return self.through(balancer, frontend, sender);
        }
        let interface = interface_of(network, public)
            .ok_or_else(|| Refusal::Unattached { address: to, public_address: public.id.clone() })?;
        let Some(address) = interface.address else {
            return Err(Refusal::Unattached { address: to, public_address: public.id.clone() });
        };
        let delivery = Delivery {
            interface,
            address,
            destination: address,
            port: self.packet.port,
            closed_without_group: public.standard,
        };
        self.deliver(sender, &delivery)
    }

    /// Through a load balancer.
    fn through(
        &mut self,
        balancer: &'a LoadBalancer,
        frontend: &'a Frontend,
        sender: Sender<'_>,
    ) -> Result<(), Refusal> {
        let (protocol, port) = (self.packet.protocol, self.packet.port);
        self.hops.push(Hop::Frontend {
            id: frontend.id.clone(),
            load_balancer: balancer.id.clone(),
            address: self.packet.to,
            internal: frontend.is_internal(),
        });
        if let Some(rule) = balancer.rules_of(&frontend.id).find(|rule| rule.carries(protocol, port)) {
            return self.balance(balancer, frontend, rule, sender);
        }
        let mut of_frontend =
            balancer.nat_rules.iter().filter(|rule| rule.frontend.as_ref() == Some(&frontend.id));
        if let Some(rule) = of_frontend.find(|rule| rule.carries(protocol, port)) {
            return self.translate(balancer, frontend, rule, sender);
        }
        let offered = balancer.rules_of(&frontend.id).map(offer).collect();
        Err(Refusal::NoRule { frontend: frontend.id.clone(), protocol: protocol.as_str(), port, offered })
    }

    fn balance(
        &mut self,
        balancer: &'a LoadBalancer,
        frontend: &Frontend,
        rule: &Rule,
        sender: Sender<'_>,
    ) -> Result<(), Refusal> {
        let packet = self.packet;
        self.hops.push(Hop::Rule {
            id: rule.id.clone(),
            protocol: rule.protocol.clone(),
            frontend_port: rule.frontend_port,
            backend_port: rule.backend_port,
            floating_ip: rule.floating_ip,
        });
        if let Some(probe) = rule.probe.as_ref().and_then(|probe| balancer.probe(probe)) {
            self.hops.push(Hop::Probe {
                id: probe.id.clone(),
                protocol: probe.protocol.clone(),
                port: probe.port,
                path: probe.path.clone(),
            });
        }
        let members = self.network.members(balancer, &rule.pools, rule.probe.as_ref(), self.probes);
        if let Some(pool) = rule.pools.first() {
            self.hops.push(Hop::Pool { id: pool.clone(), members: members.clone() });
        }
        if members.is_empty() {
            return Err(Refusal::EmptyPool { rule: rule.id.clone() });
        }
        let flow = FlowKey {
            source: sender.address,
            source_port: packet.source_port,
            destination: packet.to,
            port: packet.port,
            protocol: packet.protocol,
        };
        let taking = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.health.takes_flows())
            .map(|(index, member)| (index, member.address));
        let chosen = choose(self.network.seed, rule.distribution, &flow, taking);
        let Some(chosen) = chosen.and_then(|index| members.get(index)) else {
            return Err(Refusal::NoHealthyMember { rule: rule.id.clone(), members });
        };
        let interface = chosen.interface.and_then(|index| self.network.interfaces.get(index));
        let (Some(interface), Some(address)) = (interface, chosen.address) else {
            return Err(Refusal::EmptyPool { rule: rule.id.clone() });
        };
        self.hops.push(Hop::Chosen { node: chosen.node.clone(), machine: chosen.machine.clone(), address });
        let backend_port = if rule.is_every_port() { packet.port } else { rule.backend_port };
        self.hand_over(balancer, frontend, interface, address, (rule.floating_ip, backend_port), sender)
    }

    fn translate(
        &mut self,
        balancer: &'a LoadBalancer,
        frontend: &Frontend,
        rule: &NatRule,
        sender: Sender<'_>,
    ) -> Result<(), Refusal> {
        self.hops.push(Hop::Rule {
            id: rule.id.clone(),
            protocol: rule.protocol.clone(),
            frontend_port: rule.frontend_port,
            backend_port: rule.backend_port,
            floating_ip: rule.floating_ip,
        });
        let interface = rule
            .target
            .as_ref()
            .and_then(|target| self.network.interface_of(target))
            .and_then(|index| self.network.interfaces.get(index));
        let Some((interface, address)) =
            interface.and_then(|interface| Some((interface, interface.address?)))
        else {
            return Err(Refusal::NoTarget { rule: rule.id.clone() });
        };
        let node = interface.node_name().to_owned();
        self.hops.push(Hop::Chosen { node, machine: interface.machine.clone(), address });
        self.hand_over(balancer, frontend, interface, address, (rule.floating_ip, rule.backend_port), sender)
    }

    /// From a load balancer to a machine: with floating IP the packet stays as it is.
    fn hand_over(
        &mut self,
        balancer: &LoadBalancer,
        frontend: &Frontend,
        interface: &Interface,
        address: IpAddr,
        (floating_ip, backend_port): (bool, u16),
        sender: Sender<'_>,
    ) -> Result<(), Refusal> {
        let (destination, port) =
            if floating_ip { (self.packet.to, self.packet.port) } else { (address, backend_port) };
        let closed_without_group = balancer.standard && !frontend.is_internal();
        self.deliver(sender, &Delivery { interface, address, destination, port, closed_without_group })
    }

    fn deliver(&mut self, sender: Sender<'_>, delivery: &Delivery<'_>) -> Result<(), Refusal> {
        let interface = delivery.interface;
        let node = interface.node_name().to_owned();
        let asked = self.pass(
            interface,
            &Flow {
                source: sender.address,
                source_port: self.packet.source_port,
                source_interface: sender.interface,
                destination: delivery.destination,
                port: delivery.port,
                destination_interface: Some(interface),
                protocol: self.packet.protocol,
            },
            Direction::Inbound,
        )?;
        if !asked && delivery.closed_without_group {
            return Err(Refusal::NoSecurityGroup { node });
        }
        if interface.machine.is_none() {
            return Err(Refusal::NoMachine { address: delivery.address });
        }
        if interface.power() != Power::Running {
            return Err(Refusal::MachineOff { node, address: delivery.address });
        }
        self.hops.push(Hop::Arrived {
            node,
            address: delivery.address,
            destination: delivery.destination,
            port: delivery.port,
        });
        Ok(())
    }

    /// Asks the security groups around an interface; `Ok(false)` when there are none.
    fn pass(
        &mut self,
        interface: &Interface,
        flow: &Flow<'_>,
        direction: Direction,
    ) -> Result<bool, Refusal> {
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

impl Network {
    /// The public address that a machine's packets to the internet bear: its own, one of its subnet's
    /// NAT gateway, that of an outbound rule, or that of a load balancing rule that lends its frontend.
    fn outbound_address(&self, interface: &Interface) -> Option<IpAddr> {
        let wants =
            |address: &IpAddr| interface.address.is_some_and(|own| own.is_ipv4() == address.is_ipv4());
        let own = interface.public_address.as_ref().and_then(|id| self.public_address(id)).filter(wants);
        let by_gateway = || {
            let subnet = interface.found.subnet.as_deref()?;
            subnet.outbound.iter().filter_map(|id| self.public_address(id)).find(wants)
        };
        own.or_else(by_gateway).or_else(|| {
            self.balancers.iter().find_map(|balancer| {
                let is_in = |pool: &ResourceId| {
                    balancer.pool(pool).is_some_and(|pool| {
                        pool.members.iter().any(|member| {
                            let of_member = member.interface.and_then(|index| self.interfaces.get(index));
                            of_member.is_some_and(|member| member.id == interface.id)
                        })
                    })
                };
                let address_of = |frontend: &ResourceId| {
                    let frontend = balancer.frontends.iter().find(|known| known.id == *frontend)?;
                    frontend.address.filter(|_| !frontend.is_internal()).filter(wants)
                };
                let by_rule = balancer
                    .outbound
                    .iter()
                    .filter(|(pool, _)| is_in(pool))
                    .find_map(|(_, frontends)| frontends.iter().find_map(address_of));
                by_rule.or_else(|| {
                    balancer
                        .rules
                        .iter()
                        .filter(|rule| rule.snat && rule.pools.iter().any(is_in))
                        .find_map(|rule| address_of(rule.frontend.as_ref()?))
                })
            })
        })
    }

    fn public_address(&self, id: &ResourceId) -> Option<IpAddr> {
        self.public_addresses.iter().find(|known| known.id == *id)?.address
    }
}

fn internal_frontends(
    network: &Network,
    address: IpAddr,
) -> impl Iterator<Item = (&LoadBalancer, &Frontend)> {
    network.balancers.iter().flat_map(move |balancer| {
        balancer
            .frontends
            .iter()
            .filter(move |frontend| frontend.is_internal() && frontend.address == Some(address))
            .map(move |frontend| (balancer, frontend))
    })
}

fn interface_of<'a>(network: &'a Network, public: &PublicAddress) -> Option<&'a Interface> {
    let by_reference = public.used_by.as_ref().and_then(|id| network.interface_of(id));
    match by_reference {
        Some(index) => network.interfaces.get(index),
        None => {
            network.interfaces.iter().find(|interface| interface.public_address.as_ref() == Some(&public.id))
        }
    }
}

/// What a rule is for, such as `TCP 80`.
fn offer(rule: &Rule) -> String {
    let protocol = rule.protocol.to_uppercase();
    if rule.is_every_port() {
        format!("{protocol} every port")
    } else {
        format!("{protocol} {}", rule.frontend_port)
    }
}
