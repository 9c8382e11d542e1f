//! Load balancers as the oracle reads them: frontends, rules, probes, pools.

use std::collections::HashMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::Protocol;
use super::inbound_nat::{self, NatRule};
use super::json::{address_at, flag_at, id_at, id_of, ids_at, is_updating, items, port_at, text_at};
use super::network::Network;
use super::outbound::OutboundRule;

#[derive(Debug)]
pub(crate) struct LoadBalancer {
    pub id: ResourceId,
    pub standard: bool,
    pub updating: bool,
    pub frontends: Vec<Frontend>,
    pub rules: Vec<Rule>,
    pub nat_rules: Vec<NatRule>,
    pub probes: Vec<Probe>,
    pub pools: Vec<Pool>,
    pub outbound: Vec<OutboundRule>,
}

#[derive(Debug)]
pub(crate) struct Frontend {
    pub id: ResourceId,
    pub address: Option<IpAddr>,
    pub public_address: Option<ResourceId>,
    /// In place of an address, for outbound traffic alone.
    pub public_prefix: Option<IpNet>,
    pub virtual_network: Option<ResourceId>,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub id: ResourceId,
    pub frontend: Option<ResourceId>,
    pub pools: Vec<ResourceId>,
    pub probe: Option<ResourceId>,
    /// `Tcp`, `Udp` or `All`, as written.
    pub protocol: String,
    pub frontend_port: u16,
    pub backend_port: u16,
    pub floating_ip: bool,
    pub distribution: Distribution,
    pub snat: bool,
}

/// What of a flow decides on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distribution {
    FiveTuple,
    SourceAndDestination,
    SourceDestinationAndProtocol,
}

#[derive(Debug)]
pub(crate) struct Probe {
    pub id: ResourceId,
    pub protocol: String,
    pub port: u16,
    pub path: Option<String>,
    /// New flows go to every member when no member answers.
    pub all_when_none: bool,
}

#[derive(Debug)]
pub(crate) struct Pool {
    pub id: ResourceId,
    pub members: Vec<Member>,
}

/// A place in a pool.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Index into the network's interfaces; `None` for an address that no interface has.
    pub interface: Option<usize>,
    pub address: Option<IpAddr>,
    /// Whether it joined by its interface, rather than by its address alone.
    pub by_interface: bool,
    pub admin_state: AdminState,
}

/// An operator's word on a member, which goes before the probe's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminState {
    /// The probe decides.
    #[default]
    None,
    /// Takes new flows whatever the probe says.
    Up,
    /// Takes no new flows.
    Down,
}

impl Rule {
    pub fn carries(&self, protocol: Protocol, port: u16) -> bool {
        carries(&self.protocol, protocol) && (self.is_every_port() || self.frontend_port == port)
    }

    /// A rule for every port of an internal frontend ("HA ports").
    pub fn is_every_port(&self) -> bool {
        self.frontend_port == 0
    }
}

/// Whether a protocol as written in a rule takes in another.
pub(super) fn carries(written: &str, protocol: Protocol) -> bool {
    written.eq_ignore_ascii_case("All") || written.eq_ignore_ascii_case(protocol.as_str())
}

impl LoadBalancer {
    /// `network` must hold public addresses, subnets and interfaces already.
    pub fn read(document: &Value, network: &Network) -> Option<Self> {
        let sku = text_at(document, "/sku/name").unwrap_or("Basic");
        let pools: Vec<Pool> = items(document, "/properties/backendAddressPools")
            .filter_map(|pool| Pool::read(pool, network))
            .collect();
        Some(Self {
            id: id_of(document)?,
            updating: is_updating(document),
            standard: !sku.eq_ignore_ascii_case("Basic"),
            frontends: items(document, "/properties/frontendIPConfigurations")
                .filter_map(|frontend| Frontend::read(frontend, network))
                .collect(),
            rules: items(document, "/properties/loadBalancingRules").filter_map(Rule::read).collect(),
            nat_rules: inbound_nat::read(document, &pools, network),
            probes: items(document, "/properties/probes").filter_map(Probe::read).collect(),
            pools,
            outbound: items(document, "/properties/outboundRules")
                .filter_map(|rule| {
                    Some(OutboundRule {
                        id: id_of(rule)?,
                        pool: id_at(rule, "/properties/backendAddressPool/id")?,
                        frontends: ids_at(rule, "/properties/frontendIPConfigurations"),
                        protocol: text_at(rule, "/properties/protocol").unwrap_or("All").to_owned(),
                        ports: rule
                            .pointer("/properties/allocatedOutboundPorts")
                            .and_then(Value::as_u64)
                            .and_then(|ports| ports.try_into().ok())
                            .unwrap_or_default(),
                    })
                })
                .collect(),
        })
    }

    pub fn probe(&self, id: &ResourceId) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.id == *id)
    }

    pub fn pool(&self, id: &ResourceId) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.id == *id)
    }

    /// The rules of a frontend, in the order of the document.
    pub fn rules_of<'a>(&'a self, frontend: &'a ResourceId) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| rule.frontend.as_ref() == Some(frontend))
    }
}

impl Frontend {
    fn read(document: &Value, network: &Network) -> Option<Self> {
        let public_address = id_at(document, "/properties/publicIPAddress/id");
        let address = match &public_address {
            Some(id) => {
                network.public_addresses.iter().find(|known| known.id == *id).and_then(|known| known.address)
            }
            None => address_at(document, "/properties/privateIPAddress"),
        };
        let subnet = id_at(document, "/properties/subnet/id");
        let virtual_network = subnet
            .and_then(|subnet| network.subnets.get(&subnet))
            .map(|subnet| subnet.virtual_network.clone());
        let public_prefix = id_at(document, "/properties/publicIPPrefix/id")
            .and_then(|prefix| network.public_prefixes.get(&prefix).copied());
        Some(Self { id: id_of(document)?, address, public_address, public_prefix, virtual_network })
    }

    pub fn is_internal(&self) -> bool {
        self.public_address.is_none() && self.public_prefix.is_none()
    }
}

impl Rule {
    fn read(document: &Value) -> Option<Self> {
        let mut pools = ids_at(document, "/properties/backendAddressPools");
        if let Some(pool) = id_at(document, "/properties/backendAddressPool/id")
            && !pools.contains(&pool)
        {
            pools.insert(0, pool);
        }
        Some(Self {
            id: id_of(document)?,
            frontend: id_at(document, "/properties/frontendIPConfiguration/id"),
            pools,
            probe: id_at(document, "/properties/probe/id"),
            protocol: text_at(document, "/properties/protocol")?.to_owned(),
            frontend_port: port_at(document, "/properties/frontendPort")?,
            backend_port: port_at(document, "/properties/backendPort").unwrap_or_default(),
            floating_ip: flag_at(document, "/properties/enableFloatingIP"),
            distribution: match text_at(document, "/properties/loadDistribution") {
                Some("SourceIP") => Distribution::SourceAndDestination,
                Some("SourceIPProtocol") => Distribution::SourceDestinationAndProtocol,
                _ => Distribution::FiveTuple,
            },
            snat: !flag_at(document, "/properties/disableOutboundSnat"),
        })
    }
}

impl Probe {
    fn read(document: &Value) -> Option<Self> {
        Some(Self {
            id: id_of(document)?,
            protocol: text_at(document, "/properties/protocol")?.to_owned(),
            port: port_at(document, "/properties/port")?,
            path: text_at(document, "/properties/requestPath").map(str::to_owned),
            all_when_none: text_at(document, "/properties/noHealthyBackendsBehavior") == Some("AllProbedUp"),
        })
    }
}

impl Pool {
    fn read(document: &Value, network: &Network) -> Option<Self> {
        let id = id_of(document)?;
        let pool_network = id_at(document, "/properties/virtualNetwork/id");
        let mut members: Vec<Member> = network
            .interfaces
            .iter()
            .enumerate()
            .filter(|(_, interface)| interface.pools.contains(&id))
            .map(|(index, interface)| Member {
                interface: Some(index),
                address: interface.address,
                by_interface: true,
                admin_state: AdminState::None,
            })
            .collect();
        let by_interface: HashMap<usize, usize> =
            members.iter().enumerate().filter_map(|(at, member)| Some((member.interface?, at))).collect();
        for entry in items(document, "/properties/loadBalancerBackendAddresses") {
            let admin_state = match text_at(entry, "/properties/adminState") {
                Some("Up") => AdminState::Up,
                Some("Down") => AdminState::Down,
                _ => AdminState::None,
            };
            let of_interface = id_at(entry, "/properties/networkInterfaceIPConfiguration/id");
            let address = address_at(entry, "/properties/ipAddress");
            let here = id_at(entry, "/properties/virtualNetwork/id").or_else(|| {
                let subnet = id_at(entry, "/properties/subnet/id")?;
                network.subnets.get(&subnet).map(|subnet| subnet.virtual_network.clone())
            });
            let here = here.or_else(|| pool_network.clone());
            let index = of_interface
                .and_then(|configuration| network.interface_of(&configuration))
                .or_else(|| network.interface_at(address?, here.as_ref()));
            // Azure shows members that joined by their interface as entries too: one member, once.
            match index.and_then(|index| by_interface.get(&index)).and_then(|at| members.get_mut(*at)) {
                Some(member) => member.admin_state = admin_state,
                None if address.is_some() => {
                    members.push(Member { interface: index, address, by_interface: false, admin_state });
                }
                None => {}
            }
        }
        Some(Self { id, members })
    }
}
