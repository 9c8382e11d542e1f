//! The verdict of the oracle: whether a packet arrives, by which way, and why.

use std::fmt;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde::Serialize;

use super::first_packet::{Packet, Source};
use super::health::{MemberState, Members};
use super::outbound::{NoOutbound, OutboundMeans};
use super::route::Route;
use super::security_group::Decision;

/// The answer to one packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The packet.
    pub packet: Packet,
    /// Whether it reaches a running machine, or its destination outside of this Azure.
    pub arrives: bool,
    /// The way it took, as far as it came.
    pub hops: Vec<Hop>,
    /// Why it does not arrive.
    pub refusal: Option<Refusal>,
    sentence: String,
}

/// A station on the way of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Hop {
    /// The sending machine.
    Sender {
        /// Its name.
        node: String,
        /// Its private address.
        address: IpAddr,
    },
    /// The sender's private address was replaced on the way to the internet.
    OutboundAddress {
        /// The public address; `None` if Azure lends one that cannot be known beforehand.
        address: Option<IpAddr>,
        /// What gives it.
        means: OutboundMeans,
        /// How many connections to one destination it is good for; see [`super::Outbound::ports`].
        ports: Option<u32>,
    },
    /// The route that the packet took out of a subnet.
    Route {
        /// The route.
        route: Route,
    },
    /// A machine passed the packet on.
    Forwarded {
        /// Its name.
        node: String,
        /// Its private address.
        address: IpAddr,
    },
    /// The packet left this Azure.
    Outside {
        /// Where to.
        address: IpAddr,
        /// Whether the address is known to be of one of Azure's services.
        azures: bool,
    },
    /// The sender's own host answered.
    Platform {
        /// The service's name.
        service: &'static str,
    },
    /// The private endpoint that has the destination address.
    PrivateEndpoint {
        /// Its id.
        id: ResourceId,
        /// Its address.
        address: Option<IpAddr>,
    },
    /// The private link service behind an endpoint.
    PrivateLinkService {
        /// Its id.
        id: ResourceId,
        /// The address of the service that the packet bears as its source from here on.
        address: IpAddr,
        /// Whether a PROXY protocol header carries the real source.
        proxy_protocol: bool,
    },
    /// A resource that is no machine received the packet.
    Service {
        /// Its id.
        id: ResourceId,
    },
    /// The public IP that has the destination address.
    PublicAddress {
        /// Its id.
        id: ResourceId,
        /// Its address.
        address: IpAddr,
    },
    /// The frontend of a load balancer that has the destination address.
    Frontend {
        /// Its id.
        id: ResourceId,
        /// The load balancer.
        load_balancer: ResourceId,
        /// Its address.
        address: IpAddr,
        /// Whether only the virtual network reaches it.
        internal: bool,
    },
    /// The load balancing rule, or inbound NAT rule, for the port.
    Rule {
        /// Its id.
        id: ResourceId,
        /// Protocol as written in the rule.
        protocol: String,
        /// Port on the frontend; 0 for every port.
        frontend_port: u16,
        /// Port on the machine, used without floating IP.
        backend_port: u16,
        /// Whether the packet keeps its destination address and port.
        floating_ip: bool,
    },
    /// The health probe that the rule trusts.
    Probe {
        /// Its id.
        id: ResourceId,
        /// `Tcp`, `Http` or `Https`.
        protocol: String,
        /// Port on the machines.
        port: u16,
        /// The path of an HTTP probe.
        path: Option<String>,
    },
    /// The backend pool.
    Pool {
        /// Its id.
        id: ResourceId,
        /// All members as this rule sees them.
        members: Members,
    },
    /// The member chosen for this flow.
    Chosen {
        /// The machine's name.
        node: String,
        /// The machine, if known.
        machine: Option<ResourceId>,
        /// Its private address.
        address: IpAddr,
    },
    /// A security group that the packet passed or that stopped it.
    Security {
        /// What it decided.
        decision: Decision,
    },
    /// The machine that received the packet.
    Arrived {
        /// The machine's name.
        node: String,
        /// Its private address.
        address: IpAddr,
        /// The destination address that the packet bears on arrival.
        destination: IpAddr,
        /// The destination port that the packet bears on arrival.
        port: u16,
    },
}

/// What a packet that can be refused comes to.
pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Why a packet does not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Refusal {
    /// The sender is not there.
    #[error("there is no machine called {node}")]
    NoSuchSender {
        /// How it was called.
        node: String,
    },
    /// The sender's name is ambiguous.
    #[error("{name} may be any of {}; say which by its id", candidates.iter().map(ResourceId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// How it was called.
        name: String,
        /// The candidates, by id.
        candidates: Vec<ResourceId>,
    },
    /// The sender is off.
    #[error("the sender {node} does not run")]
    SenderOff {
        /// Its name.
        node: String,
    },
    /// The sender has no address of the destination's family.
    #[error("{sender} has no {family} address to send from")]
    WrongFamily {
        /// The sender.
        sender: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// Nothing has the destination address.
    #[error("nothing in this Azure has the address {address}")]
    NoSuchAddress {
        /// The address.
        address: IpAddr,
    },
    /// A public IP has the address, but nothing uses the public IP.
    #[error("public IP {name} has the address {address}, but is not attached to anything that takes packets in", name = public_address.name())]
    Unattached {
        /// The address.
        address: IpAddr,
        /// The public IP.
        public_address: ResourceId,
    },
    /// The address is private and the sender is outside.
    #[error("{address} is a private address, which the internet cannot reach")]
    PrivateAddress {
        /// The address.
        address: IpAddr,
    },
    /// The address is in a virtual network that the sender's has no connection with.
    #[error("{address} is in virtual network {there}, which {here} is not connected to", there = there.name(), here = here.name())]
    OtherVirtualNetwork {
        /// The address.
        address: IpAddr,
        /// The sender's virtual network.
        here: ResourceId,
        /// The destination's.
        there: ResourceId,
    },
    /// The frontend has no rule for the port.
    #[error(
        "frontend {name} has no rule for {protocol} port {port}; it has {offered}",
        name = frontend.name(), offered = list(offered)
    )]
    NoRule {
        /// The frontend.
        frontend: ResourceId,
        /// The protocol.
        protocol: &'static str,
        /// The port.
        port: u16,
        /// What the frontend has rules for, such as `TCP 80`.
        offered: Vec<String>,
    },
    /// The rule leads nowhere.
    #[error("the pool of rule {name} has no members", name = rule.name())]
    EmptyPool {
        /// The rule.
        rule: ResourceId,
    },
    /// No member takes new flows.
    #[error(
        "none of the {count} members behind rule {name} takes new connections: {states}",
        count = members.len(), name = rule.name(), states = states(members)
    )]
    NoHealthyMember {
        /// The rule.
        rule: ResourceId,
        /// The members, each with its reason.
        members: Members,
    },
    /// A security group denies it.
    #[error(
        "security rule {rule} (priority {priority}) of {group} denies it",
        rule = decision.rule, priority = decision.priority, group = decision.group.name()
    )]
    Denied {
        /// The decision.
        decision: Decision,
    },
    /// Standard addresses are closed until a security group opens them.
    #[error("{node} has no security group, and a standard public address admits nothing without one")]
    NoSecurityGroup {
        /// The machine.
        node: String,
    },
    /// The packet is sent to a machine that does not run.
    #[error("it is sent to {node} ({address}), which does not run")]
    MachineOff {
        /// The machine.
        node: String,
        /// Its private address.
        address: IpAddr,
    },
    /// An address of a pool, or a NAT rule's target, belongs to no machine.
    #[error("it is sent to {address}, which no machine has")]
    NoMachine {
        /// The address.
        address: IpAddr,
    },
    /// A user route drops it.
    #[error("{words} drops it", words = route.words())]
    BlackHole {
        /// The route.
        route: Route,
    },
    /// A route leads to a gateway, which does not exist.
    #[error("{words} leads to a gateway, which the virtual network does not have", words = route.words())]
    NoGateway {
        /// The route.
        route: Route,
    },
    /// A route leads to an address that no interface has.
    #[error("{words} leads to an address that nothing within reach has", words = route.words())]
    NoAppliance {
        /// The route.
        route: Route,
    },
    /// A machine would send or receive a packet with a foreign address.
    #[error(
        "the network interface of {node} has no IP forwarding, so packets that bear {address} are dropped"
    )]
    NotForwarding {
        /// The machine.
        node: String,
        /// The address that is not its own.
        address: IpAddr,
    },
    /// Routes lead in a circle.
    #[error("routes for {address} lead in a circle")]
    Loop {
        /// The destination.
        address: IpAddr,
    },
    /// Nothing gives the machine a public address.
    #[error("{node} cannot reach the internet: {why}")]
    NoOutbound {
        /// The machine.
        node: String,
        /// Why not.
        why: NoOutbound,
    },
    /// An internal frontend chose the sender itself.
    #[error("the internal load balancer chose the sender {node} itself, and such packets are dropped")]
    Hairpin {
        /// The machine.
        node: String,
    },
    /// The private endpoint's connection is not approved.
    #[error("the connection of private endpoint {name} is {status}, not Approved", name = endpoint.name())]
    EndpointNotApproved {
        /// The endpoint.
        endpoint: ResourceId,
        /// Its state.
        status: String,
    },
    /// The target of the private endpoint does not exist.
    #[error("private endpoint {name} leads to nothing that exists", name = endpoint.name())]
    EndpointLeadsNowhere {
        /// The endpoint.
        endpoint: ResourceId,
    },
    /// A client of a private endpoint sends to another address.
    #[error("{address} is not what private endpoint {name} leads to", name = endpoint.name())]
    NotBehindEndpoint {
        /// The endpoint.
        endpoint: ResourceId,
        /// The address asked for.
        address: IpAddr,
    },
    /// An inbound NAT rule has no machine to lead to.
    #[error("inbound NAT rule {name} leads to no machine", name = rule.name())]
    NoTarget {
        /// The rule.
        rule: ResourceId,
    },
}

impl Verdict {
    /// The private address of the machine that the packet arrived at, or was sent to.
    pub(super) fn member(&self) -> Option<IpAddr> {
        self.hops.iter().rev().find_map(|hop| match hop {
            Hop::Arrived { address, .. } | Hop::Chosen { address, .. } => Some(*address),
            _ => None,
        })
    }

    pub(super) fn new(packet: &Packet, hops: Vec<Hop>, refusal: Option<Refusal>) -> Self {
        let sentence = sentence(packet, &hops, refusal.as_ref());
        Self { packet: packet.clone(), arrives: refusal.is_none(), hops, refusal, sentence }
    }

    /// A sentence about what happened.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// The machine that the packet arrived at.
    pub fn node(&self) -> Option<&str> {
        self.hops.iter().find_map(|hop| match hop {
            Hop::Arrived { node, .. } => Some(node.as_str()),
            _ => None,
        })
    }

    /// The decisions of the security groups, in order.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.hops.iter().filter_map(|hop| match hop {
            Hop::Security { decision } => Some(decision),
            _ => None,
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

fn sentence(packet: &Packet, hops: &[Hop], refusal: Option<&Refusal>) -> String {
    let sender = match &packet.from {
        Source::Internet { address } => address.to_string(),
        Source::Node { node } => node.clone(),
        Source::Pod { address } => format!("pod {address}"),
        Source::VirtualNetwork { network, address } => format!("{address} in {network}"),
        Source::PrivateEndpoint { endpoint } => format!("a client of private endpoint {endpoint}"),
    };
    let mut text = format!("{} from {sender} to {} ", packet.protocol, endpoint(packet.to, packet.port));
    match (refusal, hops.last()) {
        (Some(refusal), _) => text.push_str(&format!("does not arrive: {refusal}.")),
        (None, Some(Hop::Arrived { node, address, destination, port })) => {
            text.push_str(&format!("arrives at {node} ({address})"));
            if destination != address {
                text.push_str(&format!(", still addressed to {}", endpoint(*destination, *port)));
            } else if *port != packet.port {
                text.push_str(&format!(" on port {port}"));
            }
            text.push('.');
        }
        (None, Some(Hop::Outside { azures: true, .. })) => text.push_str("leaves for a service of Azure."),
        (None, Some(Hop::Outside { .. })) => text.push_str("leaves for the internet."),
        (None, Some(Hop::Platform { service })) => {
            text.push_str(&format!("is answered by the machine's own host: {service}."));
        }
        (None, Some(Hop::Service { id })) => text.push_str(&format!("arrives at {}.", id.name())),
        (None, _) => text.push_str("arrives."),
    }
    let way: Vec<String> = hops.iter().filter_map(station).collect();
    if !way.is_empty() {
        text.push_str(&format!(" Way: {}.", way.join(", ")));
    }
    text
}

/// A hop in a few words, unless the rest of the sentence says it already.
fn station(hop: &Hop) -> Option<String> {
    Some(match hop {
        Hop::Sender { .. }
        | Hop::Chosen { .. }
        | Hop::Arrived { .. }
        | Hop::Probe { .. }
        | Hop::Outside { .. }
        | Hop::Platform { .. }
        | Hop::Service { .. } => return None,
        Hop::Route { route } => match route.next_hop {
            // Azure's own routes within a network and to the internet say nothing new.
            super::NextHop::VirtualNetwork | super::NextHop::Internet if !route.is_users() => return None,
            _ => route.words(),
        },
        Hop::Forwarded { node, address } => format!("passed on by {node} ({address})"),
        Hop::PrivateEndpoint { id, .. } => format!("private endpoint {}", id.name()),
        Hop::PrivateLinkService { id, address, .. } => {
            format!("private link service {} as {address}", id.name())
        }
        Hop::OutboundAddress { address: Some(address), means, .. } => {
            format!("outbound address {address} by {}", means.words())
        }
        Hop::OutboundAddress { address: None, means, .. } => {
            format!("an outbound address of Azure's choice by {}", means.words())
        }
        Hop::PublicAddress { id, .. } => format!("public IP {}", id.name()),
        Hop::Frontend { id, load_balancer, internal, .. } => format!(
            "{} frontend {} of {}",
            if *internal { "internal" } else { "public" },
            id.name(),
            load_balancer.name()
        ),
        Hop::Rule { id, .. } => format!("rule {}", id.name()),
        Hop::Pool { id, members } => {
            let taking = members.iter().filter(|member| member.health.takes_flows()).count();
            format!("pool {} ({taking} of {} take connections)", id.name(), members.len())
        }
        Hop::Security { decision } => {
            format!("security rule {} ({}) of {}", decision.rule, decision.priority, decision.group.name())
        }
    })
}

fn endpoint(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

fn list(offered: &[String]) -> String {
    if offered.is_empty() {
        "no rules at all".to_owned()
    } else {
        format!("rules for {}", offered.join(", "))
    }
}

fn states(members: &[MemberState]) -> String {
    const MAX_NAMED: usize = 5;
    let mut words: Vec<String> = members
        .iter()
        .take(MAX_NAMED)
        .map(|member| format!("{} {}", member.node, member.health.words()))
        .collect();
    if members.len() > MAX_NAMED {
        words.push(format!("and {} more", members.len() - MAX_NAMED));
    }
    words.join("; ")
}
