//! The way in: public addresses, frontends, rules, private endpoints, and the last stretch to a machine.

use std::net::IpAddr;

use azure_types::ResourceId;

use super::balancer::{Frontend, LoadBalancer, Rule};
use super::flow::Flow;
use super::machine::{Interface, Power};
use super::packet_trace::{PacketTrace, Sender};
use super::private_link::Endpoint;
use super::security_group::{Direction, is_private};
use super::spread::{FlowKey, choose};
use super::verdict::{Hop, Refusal, Result};

/// The last stretch: the machine, the addresses of the packet, and whether security groups apply.
pub(super) struct Delivery<'a> {
    interface: &'a Interface,
    address: IpAddr,
    destination: IpAddr,
    port: u16,
    /// Only a security group opens the way (standard public addresses).
    closed_without_group: bool,
}

/// The machine that a load balancer chose, and how packets reach it.
pub(super) struct Chosen<'a> {
    pub(super) interface: &'a Interface,
    pub(super) address: IpAddr,
    floating_ip: bool,
    backend_port: u16,
}

impl<'a> Delivery<'a> {
    /// Delivers the packet unchanged to the interface that has the address.
    pub(super) fn unchanged(interface: &'a Interface, to: IpAddr, port: u16) -> Self {
        Self { interface, address: to, destination: to, port, closed_without_group: false }
    }
}

impl<'a> PacketTrace<'a> {
    /// From outside to an address that should be public.
    pub(super) fn enter_from_outside(&mut self, sender: Sender<'a>) -> Result<()> {
        let network = self.network;
        let to = self.to;
        let Some(public) = network.public_at(to) else {
            let is_somebodys = network.interface_at(to, None).is_some()
                || network.internal_frontends(to).next().is_some()
                || is_private(to);
            return Err(if is_somebodys {
                Refusal::PrivateAddress { address: to }
            } else {
                Refusal::NoSuchAddress { address: to }
            });
        };
        self.hops.push(Hop::PublicAddress { id: public.id.clone(), address: to });
        let frontend =
            network.frontends().find(|(_, frontend)| frontend.public_address.as_ref() == Some(&public.id));
        if let Some((balancer, frontend)) = frontend {
            return self.through(balancer, frontend, sender);
        }
        let unattached = || Refusal::Unattached { address: to, public_address: public.id.clone() };
        let interface = network.interface_behind(public).ok_or_else(unattached)?;
        let address = interface.address.ok_or_else(unattached)?;
        let delivery = Delivery {
            interface,
            address,
            destination: address,
            port: self.packet.port,
            closed_without_group: public.standard,
        };
        self.deliver(sender, &delivery)
    }

    /// From a virtual network to a private endpoint.
    pub(super) fn enter_endpoint(
        &mut self,
        endpoint: &ResourceId,
        interface: &'a Interface,
        sender: Sender<'a>,
    ) -> Result<()> {
        let network = self.network;
        if interface.targets.subnet.as_deref().is_some_and(|subnet| subnet.endpoint_policies.security_group) {
            self.pass(interface, &self.flow(sender, Some(interface)), Direction::Inbound)?;
        }
        match network.endpoints.get(endpoint) {
            Some(endpoint) => self.come_through(endpoint, Some(sender)),
            None => Err(Refusal::EndpointLeadsNowhere { endpoint: endpoint.clone() }),
        }
    }

    /// Through a private endpoint and the service behind it; without a sender for clients that only the
    /// endpoint knows.
    pub(super) fn come_through(&mut self, endpoint: &'a Endpoint, sender: Option<Sender<'a>>) -> Result<()> {
        let network = self.network;
        let nowhere = || Refusal::EndpointLeadsNowhere { endpoint: endpoint.id.clone() };
        let own = network.addresses_of_endpoint(&endpoint.id).find(|own| *own == self.to);
        let own = own.or_else(|| network.addresses_of_endpoint(&endpoint.id).next());
        let service = network.service_of(endpoint);
        let behind = service.and_then(|service| network.frontend(service.frontends.first()?));
        if sender.is_none()
            && own != Some(self.to)
            && behind.is_none_or(|(_, frontend)| frontend.address != Some(self.to))
        {
            return Err(Refusal::NotBehindEndpoint { endpoint: endpoint.id.clone(), address: self.to });
        }
        self.hops.push(Hop::PrivateEndpoint { id: endpoint.id.clone(), address: own });
        if !endpoint.is_approved() {
            return Err(Refusal::EndpointNotApproved {
                endpoint: endpoint.id.clone(),
                status: endpoint.status.clone(),
            });
        }
        let Some(service) = service else {
            let target = endpoint.target.as_deref().and_then(|target| ResourceId::parse(target).ok());
            let service = |id: &ResourceId| {
                id.resource_type().eq_ignore_ascii_case("Microsoft.Network/privateLinkServices")
            };
            let id = target.filter(|id| !service(id)).ok_or_else(nowhere)?;
            self.hops.push(Hop::Service { id });
            return Ok(());
        };
        let (balancer, frontend) = behind.ok_or_else(nowhere)?;
        let client = sender.map(|sender| sender.address).or(own).ok_or_else(nowhere)?;
        let key = FlowKey { source: client, ..self.key(client) };
        let addresses = service.addresses.iter().map(|address| Some(*address)).enumerate();
        let chosen = choose(network.seed, super::balancer::Distribution::FiveTuple, &key, addresses);
        let address = chosen.and_then(|index| service.addresses.get(index).copied()).ok_or_else(nowhere)?;
        self.hops.push(Hop::PrivateLinkService {
            id: service.id.clone(),
            address,
            proxy_protocol: service.proxy_protocol,
        });
        self.to = frontend.address.ok_or_else(nowhere)?;
        self.through(balancer, frontend, Sender { address, interface: None })
    }

    fn key(&self, source: IpAddr) -> FlowKey {
        FlowKey {
            source,
            source_port: self.packet.source_port,
            destination: self.to,
            port: self.packet.port,
            protocol: self.packet.protocol,
        }
    }

    /// Through a load balancer: with floating IP the packet stays as it is.
    pub(super) fn through(
        &mut self,
        balancer: &'a LoadBalancer,
        frontend: &'a Frontend,
        sender: Sender<'a>,
    ) -> Result<()> {
        let chosen = self.balance(balancer, frontend, sender)?;
        let (destination, port) = if chosen.floating_ip {
            (self.to, self.packet.port)
        } else {
            (chosen.address, chosen.backend_port)
        };
        let delivery = Delivery {
            interface: chosen.interface,
            address: chosen.address,
            destination,
            port,
            closed_without_group: balancer.standard && !frontend.is_internal(),
        };
        self.deliver(sender, &delivery)
    }

    /// The machine to which the rule for the port leads.
    pub(super) fn balance(
        &mut self,
        balancer: &'a LoadBalancer,
        frontend: &'a Frontend,
        sender: Sender<'a>,
    ) -> Result<Chosen<'a>> {
        let (protocol, port) = (self.packet.protocol, self.packet.port);
        self.hops.push(Hop::Frontend {
            id: frontend.id.clone(),
            load_balancer: balancer.id.clone(),
            address: self.to,
            internal: frontend.is_internal(),
        });
        if let Some(rule) = balancer.rules_of(&frontend.id).find(|rule| rule.carries(protocol, port)) {
            let chosen = self.by_rule(balancer, rule, sender)?;
            // The answer of a machine to itself does not come back through an internal frontend.
            let itself = sender.interface.is_some_and(|own| own.interface == chosen.interface.interface);
            return match itself && frontend.is_internal() {
                true => Err(Refusal::Hairpin { node: chosen.interface.node_name().to_owned() }),
                false => Ok(chosen),
            };
        }
        self.by_nat_rule(balancer, frontend)
    }

    fn by_rule(&mut self, balancer: &LoadBalancer, rule: &Rule, sender: Sender<'a>) -> Result<Chosen<'a>> {
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
        let members = self.probed.members(self.network, balancer, rule, self.probes);
        if let Some(pool) = rule.pools.first() {
            self.hops.push(Hop::Pool { id: pool.clone(), members: members.clone() });
        }
        if members.is_empty() {
            return Err(Refusal::EmptyPool { rule: rule.id.clone() });
        }
        let taking = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.health.takes_flows())
            .map(|(index, member)| (index, member.address));
        let chosen = choose(self.network.seed, rule.distribution, &self.key(sender.address), taking);
        let Some(chosen) = chosen.and_then(|index| members.get(index)) else {
            return Err(Refusal::NoHealthyMember { rule: rule.id.clone(), members });
        };
        let interface = chosen.interface.and_then(|index| self.network.interfaces.get(index));
        let (Some(interface), Some(address)) = (interface, chosen.address) else {
            return Err(Refusal::EmptyPool { rule: rule.id.clone() });
        };
        self.hops.push(Hop::Chosen { node: chosen.node.clone(), machine: chosen.machine.clone(), address });
        let backend_port = if rule.is_every_port() { self.packet.port } else { rule.backend_port };
        Ok(Chosen { interface, address, floating_ip: rule.floating_ip, backend_port })
    }

    fn by_nat_rule(&mut self, balancer: &'a LoadBalancer, frontend: &'a Frontend) -> Result<Chosen<'a>> {
        let (protocol, port) = (self.packet.protocol, self.packet.port);
        let mut of_frontend =
            balancer.nat_rules.iter().filter(|rule| rule.frontend.as_ref() == Some(&frontend.id));
        let Some(rule) = of_frontend.clone().find(|rule| rule.carries(protocol, port)) else {
            let mut offered: Vec<String> = balancer.rules_of(&frontend.id).map(offer).collect();
            if let Some(first) = of_frontend.next() {
                let ports = of_frontend.count() + 1;
                offered.push(format!("{ports} inbound NAT ports such as {}", first.frontend_port));
            }
            return Err(Refusal::NoRule {
                frontend: frontend.id.clone(),
                protocol: protocol.as_str(),
                port,
                offered,
            });
        };
        self.hops.push(Hop::Rule {
            id: rule.id.clone(),
            protocol: rule.protocol.clone(),
            frontend_port: rule.frontend_port,
            backend_port: rule.backend_port,
            floating_ip: rule.floating_ip,
        });
        let interface = rule.target.and_then(|index| self.network.interfaces.get(index));
        let Some((interface, address)) =
            interface.and_then(|interface| Some((interface, interface.address?)))
        else {
            return Err(Refusal::NoTarget { rule: rule.id.clone() });
        };
        let node = interface.node_name().to_owned();
        self.hops.push(Hop::Chosen { node, machine: interface.machine.clone(), address });
        Ok(Chosen { interface, address, floating_ip: rule.floating_ip, backend_port: rule.backend_port })
    }

    pub(super) fn deliver(&mut self, sender: Sender<'a>, delivery: &Delivery<'a>) -> Result<()> {
        let interface = delivery.interface;
        let node = interface.node_name().to_owned();
        let asked = self.pass(
            interface,
            &Flow {
                destination: delivery.destination,
                port: delivery.port,
                ..self.flow(sender, Some(interface))
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
