//! Load balancers as the oracle reads them: frontends, rules, probes, pools.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::inbound_nat::NatRule;
use super::json::{flag_at, id_at, id_of, ids_at, port_at, text_at};
use super::protocol::Protocol;
use super::protocol::carries;

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

/// How a flow chooses its node.
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

/// A member of a pool.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Index into the network's interfaces; `None` for an address that no interface has.
    pub interface: Option<usize>,
    pub address: Option<IpAddr>,
    /// Whether it joined by its interface, rather than by its address alone.
    pub by_interface: bool,
    pub admin_state: AdminState,
}

/// An operator's state for a member, which overrides the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminState {
    /// The probe decides.
    #[default]
    None,
    /// Takes new flows whatever the probe's result.
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

impl LoadBalancer {
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
    pub fn is_internal(&self) -> bool {
        self.public_address.is_none() && self.public_prefix.is_none()
    }
}

impl Rule {
    pub(super) fn read(document: &Value) -> Option<Self> {
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
    pub(super) fn read(document: &Value) -> Option<Self> {
        Some(Self {
            id: id_of(document)?,
            protocol: text_at(document, "/properties/protocol")?.to_owned(),
            port: port_at(document, "/properties/port")?,
            path: text_at(document, "/properties/requestPath").map(str::to_owned),
            all_when_none: text_at(document, "/properties/noHealthyBackendsBehavior") == Some("AllProbedUp"),
        })
    }
}

/// An outbound rule of a load balancer.
#[derive(Debug)]
pub(crate) struct OutboundRule {
    pub id: ResourceId,
    pub pool: ResourceId,
    pub frontends: Vec<ResourceId>,
    /// `Tcp`, `Udp` or `All`, as written.
    pub protocol: String,
    /// Ports of each member; 0 leaves it to the size of the pool.
    pub ports: u32,
}
