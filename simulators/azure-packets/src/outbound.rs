//! Outbound connections: the public source address of a machine's packets to the internet, and its number of
//! connections to one destination at a time.
//!
//! The order in which Azure decides: a NAT gateway of the subnet, the machine's own public IP, an outbound rule, a load
//! balancing rule that lends its frontend, and last an address of Azure's choice for machines without any of these.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;

use super::balancer::{LoadBalancer, Member};
use super::machine::Interface;
use super::network::Network;
use super::protocol::{Protocol, carries};

/// How a machine's packets leave for the internet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outbound {
    /// The means.
    pub means: OutboundMeans,
    /// The possible addresses; empty if they cannot be known beforehand.
    pub addresses: Vec<IpAddr>,
    /// SNAT ports: connections to one destination address and port at a time. Those of a NAT gateway are
    /// shared by all machines of its subnets; `None` where the machine has an address for itself.
    pub ports: Option<u32>,
}

/// What gives a machine its public address for outbound connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum OutboundMeans {
    /// A NAT gateway of its subnet.
    NatGateway {
        /// The gateway.
        id: ResourceId,
    },
    /// A public IP of its own.
    PublicAddress {
        /// The public IP.
        id: ResourceId,
    },
    /// An outbound rule of a load balancer.
    OutboundRule {
        /// The rule.
        id: ResourceId,
    },
    /// A load balancing rule without `disableOutboundSnat`.
    LoadBalancingRule {
        /// The rule.
        id: ResourceId,
    },
    /// Default outbound access: an address of Azure's choice.
    DefaultAccess,
}

impl OutboundMeans {
    /// A short description.
    pub(super) fn words(&self) -> String {
        match self {
            Self::NatGateway { id } => format!("NAT gateway {}", id.name()),
            Self::PublicAddress { id } => format!("its own public IP {}", id.name()),
            Self::OutboundRule { id } => format!("outbound rule {}", id.name()),
            Self::LoadBalancingRule { id } => format!("load balancing rule {}", id.name()),
            Self::DefaultAccess => "default outbound access".to_owned(),
        }
    }
}

/// Why a machine cannot reach the internet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum NoOutbound {
    /// A machine behind a standard load balancer gets no address by default.
    #[error("it is behind load balancer {name}, which lends it no public address", name = load_balancer.name())]
    BehindBalancer {
        /// The load balancer.
        load_balancer: ResourceId,
    },
    /// `defaultOutboundAccess` of the subnet is false.
    #[error("its subnet {name} gives no default outbound access", name = subnet.name())]
    PrivateSubnet {
        /// The subnet.
        subnet: ResourceId,
    },
    /// Machines of flexible scale sets get no address by default.
    #[error("machines of a flexible scale set get no default outbound access")]
    FlexibleScaleSet,
    /// There is no default outbound access by IPv6.
    #[error("nothing lends it a public IPv6 address")]
    NoIpv6,
}

/// SNAT ports of one public address, by Azure's documents.
const PORTS_OF_BALANCER_ADDRESS: u32 = 64_000;
const PORTS_OF_GATEWAY_ADDRESS: u32 = 64_512;
/// The most addresses that a NAT gateway uses, by Azure's documents.
const MAX_GATEWAY_ADDRESSES: usize = 16;

/// (largest pool size, ports that each member gets by default).
const DEFAULT_PORTS: [(usize, u32); 6] =
    [(50, 1024), (100, 512), (200, 256), (400, 128), (800, 64), (1000, 32)];

impl Network {
    /// How packets of a machine's interface leave for the internet. Balancers lend addresses for the
    /// protocols of their rules alone.
    ///
    /// # Errors
    ///
    /// Why they cannot.
    pub(super) fn outbound(&self, interface: &Interface, protocol: Protocol) -> Result<Outbound, NoOutbound> {
        let ipv4 = interface.address.is_none_or(|own| own.is_ipv4());
        let wants = |address: &IpAddr| address.is_ipv4() == ipv4;
        let subnet = interface.targets.subnet.as_deref();
        if let Some(gateway) = subnet.and_then(|subnet| subnet.gateway.as_ref()) {
            let single =
                gateway.addresses.iter().filter_map(|id| self.public_address(id)?.address).filter(wants);
            let ranges = gateway.prefixes.iter().filter_map(|id| self.public_prefixes.get(id));
            let addresses: Vec<IpAddr> = single
                .chain(ranges.filter(|range| wants(&range.addr())).flat_map(addresses_of))
                .take(MAX_GATEWAY_ADDRESSES)
                .collect();
            if !addresses.is_empty() {
                let ports = PORTS_OF_GATEWAY_ADDRESS.saturating_mul(addresses.len() as u32);
                let means = OutboundMeans::NatGateway { id: gateway.id.clone() };
                return Ok(Outbound { means, addresses, ports: Some(ports) });
            }
        }
        let own = interface.public_address.as_ref().and_then(|id| self.public_address(id));
        if let Some((id, address)) = own.and_then(|own| Some((&own.id, own.address.filter(wants)?))) {
            let means = OutboundMeans::PublicAddress { id: id.clone() };
            return Ok(Outbound { means, addresses: vec![address], ports: None });
        }
        let by_rule =
            self.balancers.iter().find_map(|balancer| self.by_outbound_rule(balancer, interface, protocol));
        let lent = || {
            self.balancers.iter().find_map(|balancer| self.by_balancing_rule(balancer, interface, protocol))
        };
        if let Some(outbound) = by_rule.or_else(lent) {
            return Ok(outbound);
        }
        // A member that joined by address alone keeps default outbound access.
        let joined = |balancer: &&LoadBalancer| {
            let mut members = balancer.pools.iter().flat_map(|pool| &pool.members);
            members.any(|member| member.by_interface && self.is_interface(member, interface))
        };
        let behind = self.balancers.iter().filter(|balancer| balancer.standard).find(joined);
        if let Some(balancer) = behind {
            return Err(NoOutbound::BehindBalancer { load_balancer: balancer.id.clone() });
        }
        if !ipv4 {
            return Err(NoOutbound::NoIpv6);
        }
        if interface.machine_state().is_some_and(|machine| machine.flexible) {
            return Err(NoOutbound::FlexibleScaleSet);
        }
        match (&interface.subnet, subnet) {
            (Some(id), Some(subnet)) if !subnet.default_outbound => {
                Err(NoOutbound::PrivateSubnet { subnet: id.clone() })
            }
            _ => Ok(Outbound { means: OutboundMeans::DefaultAccess, addresses: Vec::new(), ports: None }),
        }
    }

    fn by_outbound_rule(
        &self,
        balancer: &LoadBalancer,
        interface: &Interface,
        protocol: Protocol,
    ) -> Option<Outbound> {
        let ipv4 = interface.address.is_none_or(|own| own.is_ipv4());
        let rule = balancer.outbound.iter().find(|rule| {
            carries(&rule.protocol, protocol)
                && self.is_member(interface, balancer, &rule.pool)
                && !self.lent_by(balancer, &rule.frontends, ipv4).is_empty()
        })?;
        let addresses = self.lent_by(balancer, &rule.frontends, ipv4);
        let ports = match rule.ports {
            0 => default_ports(balancer.pool(&rule.pool).map_or(0, |pool| pool.members.len())),
            ports => ports.min(PORTS_OF_BALANCER_ADDRESS.saturating_mul(addresses.len() as u32)),
        };
        let means = OutboundMeans::OutboundRule { id: rule.id.clone() };
        Some(Outbound { means, addresses, ports: Some(ports) })
    }

    fn by_balancing_rule(
        &self,
        balancer: &LoadBalancer,
        interface: &Interface,
        protocol: Protocol,
    ) -> Option<Outbound> {
        let ipv4 = interface.address.is_none_or(|own| own.is_ipv4());
        // All frontends of rules that lend theirs are used; each gives the ports of the pool's size.
        let rules: Vec<_> = balancer
            .rules
            .iter()
            .filter(|rule| {
                rule.snat
                    && carries(&rule.protocol, protocol)
                    && rule.pools.iter().any(|pool| self.is_member(interface, balancer, pool))
            })
            .collect();
        let mut frontends: Vec<ResourceId> = rules.iter().filter_map(|rule| rule.frontend.clone()).collect();
        frontends.dedup();
        let addresses = self.lent_by(balancer, &frontends, ipv4);
        let first = rules.iter().find(|rule| {
            rule.frontend
                .as_ref()
                .is_some_and(|id| !self.lent_by(balancer, std::slice::from_ref(id), ipv4).is_empty())
        })?;
        let members =
            first.pools.iter().filter_map(|pool| balancer.pool(pool)).map(|pool| pool.members.len()).sum();
        let means = OutboundMeans::LoadBalancingRule { id: first.id.clone() };
        let ports = default_ports(members).saturating_mul(addresses.len() as u32);
        Some(Outbound { means, addresses, ports: Some(ports) })
    }

    /// The public addresses of frontends, of one family, each once.
    fn lent_by(&self, balancer: &LoadBalancer, frontends: &[ResourceId], ipv4: bool) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        for id in frontends {
            let frontend = balancer.frontends.iter().find(|known| known.id == *id);
            let Some(frontend) = frontend.filter(|frontend| !frontend.is_internal()) else { continue };
            let of_prefix = frontend.public_prefix.iter().flat_map(addresses_of);
            for address in frontend.address.into_iter().chain(of_prefix) {
                if address.is_ipv4() == ipv4 && !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        addresses
    }

    fn is_member(&self, interface: &Interface, balancer: &LoadBalancer, pool: &ResourceId) -> bool {
        balancer
            .pool(pool)
            .is_some_and(|pool| pool.members.iter().any(|member| self.is_interface(member, interface)))
    }

    fn is_interface(&self, member: &Member, interface: &Interface) -> bool {
        let of_member = member.interface.and_then(|index| self.interfaces.get(index));
        of_member.is_some_and(|member| member.id == interface.id)
    }
}

/// The addresses of a public prefix, as many as a gateway or frontend uses.
fn addresses_of(prefix: &IpNet) -> impl Iterator<Item = IpAddr> + use<> {
    let single = prefix.subnets(prefix.max_prefix_len()).into_iter().flatten();
    single.map(|one| one.addr()).take(MAX_GATEWAY_ADDRESSES)
}

fn default_ports(members: usize) -> u32 {
    DEFAULT_PORTS.iter().find(|(most, _)| members <= *most).map_or(32, |(_, ports)| *ports)
}
