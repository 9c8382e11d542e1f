//! Security groups: which rule decides on a flow.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::Protocol;
use super::json::{ids_at, items, text_at};
use super::machine::Interface;
use super::network::Network;
use super::service_tag;

/// Where health probes come from; the service tag `AzureLoadBalancer`.
pub(super) const PROBE_SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(168, 63, 129, 16));
/// The same for IPv6.
pub(super) const PROBE_SOURCE_V6: IpAddr =
    IpAddr::V6(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x1234, 0x5678, 0x9abc));

#[derive(Debug)]
pub(super) struct SecurityGroup {
    pub id: ResourceId,
    /// All rules, default ones too, by priority.
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    name: String,
    priority: u32,
    inbound: bool,
    access: Access,
    /// `None` for any.
    protocol: Option<String>,
    source: Side,
    destination: Side,
    is_default: bool,
}

#[derive(Debug, Default)]
struct Side {
    prefixes: Vec<Prefix>,
    application_groups: Vec<ResourceId>,
    /// First and last.
    ports: Vec<(u16, u16)>,
}

/// What stands for addresses in a rule.
#[derive(Debug)]
enum Prefix {
    Any,
    Addresses(IpNet),
    Internet,
    VirtualNetwork,
    AzureLoadBalancer,
    /// Another service tag, in lower case.
    Tag(String),
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Let through.
    Allow,
    /// Dropped.
    Deny,
}

/// Which way a flow passes a security group, seen from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the machine.
    Inbound,
    /// Away from it.
    Outbound,
}

/// What a security group decided, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The security group.
    pub group: ResourceId,
    /// What it is attached to: a subnet or a network interface.
    pub attached_to: ResourceId,
    /// The deciding rule's name.
    pub rule: String,
    /// Its priority: lower numbers go first.
    pub priority: u32,
    /// Whether it is one of the rules that every group has.
    pub is_default: bool,
    /// The decision.
    pub access: Access,
    /// Which way the flow went.
    pub direction: Direction,
}

/// A flow as a security group sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow<'a> {
    pub source: IpAddr,
    pub source_port: u16,
    pub source_interface: Option<&'a Interface>,
    pub destination: IpAddr,
    pub port: u16,
    pub destination_interface: Option<&'a Interface>,
    pub protocol: Protocol,
}

impl SecurityGroup {
    pub fn read(id: ResourceId, document: &Value) -> Self {
        let mut rules: Vec<Rule> = items(document, "/properties/securityRules")
            .filter_map(|rule| Rule::read(rule, false))
            .chain(
                items(document, "/properties/defaultSecurityRules").filter_map(|rule| Rule::read(rule, true)),
            )
            .collect();
        if !rules.iter().any(|rule| rule.is_default) {
            rules.extend(default_rules());
        }
        rules.sort_by_key(|rule| rule.priority);
        Self { id, rules }
    }

    /// The first rule that matches.
    fn decide(
        &self,
        network: &Network,
        here: &Interface,
        flow: &Flow<'_>,
        direction: Direction,
    ) -> Option<&Rule> {
        self.rules.iter().filter(|rule| rule.inbound == (direction == Direction::Inbound)).find(|rule| {
            rule.protocol
                .as_ref()
                .is_none_or(|protocol| protocol.eq_ignore_ascii_case(flow.protocol.as_str()))
                && rule.destination.has_port(flow.port)
                && rule.source.has_port(flow.source_port)
                && rule.source.has(network, here, flow.source, flow.source_interface)
                && rule.destination.has(network, here, flow.destination, flow.destination_interface)
        })
    }
}

impl Network {
    /// The denial that a flow meets on its way in, if any.
    pub(super) fn denial(&self, here: &Interface, flow: &Flow<'_>) -> Option<Decision> {
        self.matching(here, flow, Direction::Inbound)
            .find(|(_, _, rule)| rule.access == Access::Deny)
            .map(|(attached_to, group, rule)| decision(attached_to, group, rule, Direction::Inbound))
    }

    /// What the security groups around an interface say, in the order in which they are asked: the
    /// subnet's first on the way in, the interface's first on the way out. Ends with the first
    /// denial. Empty when no group is attached.
    pub(super) fn decisions(&self, here: &Interface, flow: &Flow<'_>, direction: Direction) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (attached_to, group, rule) in self.matching(here, flow, direction) {
            decisions.push(decision(attached_to, group, rule, direction));
            if rule.access == Access::Deny {
                break;
            }
        }
        decisions
    }

    /// The deciding rule of each group around an interface, in the order of asking.
    fn matching<'a>(
        &'a self,
        here: &'a Interface,
        flow: &'a Flow<'_>,
        direction: Direction,
    ) -> impl Iterator<Item = (&'a ResourceId, &'a SecurityGroup, &'a Rule)> {
        let of_subnet = here.subnet.as_ref().zip(here.found.subnet_group.as_deref());
        let of_interface = here.found.interface_group.as_deref().map(|group| (&here.interface, group));
        let mut order = [of_subnet, of_interface];
        if direction == Direction::Outbound {
            order.reverse();
        }
        order.into_iter().flatten().filter_map(move |(attached_to, group)| {
            Some((attached_to, group, group.decide(self, here, flow, direction)?))
        })
    }

    /// What the tag `VirtualNetwork` stands for at an interface: its network, those connected to it,
    /// and the prefixes of user routes in its subnet, a default route among them.
    fn is_in_virtual_network(&self, here: &Interface, address: IpAddr) -> bool {
        let routes = here.found.subnet.as_deref().map_or(&[] as &[_], |subnet| &subnet.routes);
        self.is_in_address_space(here.virtual_network(), address)
            || routes.iter().any(|route| route.is_users() && route.prefix.contains(&address))
    }

    /// Whether a tag of Azure's services has an address. Public IPs of this Azure are in its cloud.
    fn is_in_service_tag(&self, tag: &str, address: IpAddr) -> bool {
        let (base, region) = tag.split_once('.').map_or((tag, None), |(base, region)| (base, Some(region)));
        let ours = || {
            self.public_at(address)
                .is_some_and(|public| region.is_none_or(|region| region.eq_ignore_ascii_case(&public.region)))
        };
        (base == "azurecloud" && !self.service_tags.contains_key(tag) && ours())
            || service_tag::prefixes(&self.service_tags, tag).iter().any(|prefix| prefix.contains(&address))
    }
}

fn decision(attached_to: &ResourceId, group: &SecurityGroup, rule: &Rule, direction: Direction) -> Decision {
    Decision {
        group: group.id.clone(),
        attached_to: attached_to.clone(),
        rule: rule.name.clone(),
        priority: rule.priority,
        is_default: rule.is_default,
        access: rule.access,
        direction,
    }
}

impl Rule {
    fn read(document: &Value, is_default: bool) -> Option<Self> {
        let is = |pointer: &str, word: &str| {
            text_at(document, pointer).is_some_and(|text| text.eq_ignore_ascii_case(word))
        };
        Some(Self {
            name: text_at(document, "/name")?.to_owned(),
            priority: document.pointer("/properties/priority")?.as_u64()?.try_into().ok()?,
            inbound: is("/properties/direction", "Inbound"),
            access: if is("/properties/access", "Allow") { Access::Allow } else { Access::Deny },
            protocol: Some(text_at(document, "/properties/protocol")?.to_owned()).filter(|name| name != "*"),
            source: Side::read(document, "source"),
            destination: Side::read(document, "destination"),
            is_default,
        })
    }
}

impl Side {
    fn read(rule: &Value, side: &str) -> Self {
        // One value in the singular member or several in the plural one.
        let both = |singular: &str, plural: &str| -> Vec<String> {
            text_at(rule, &format!("/properties/{side}{singular}"))
                .into_iter()
                .chain(items(rule, &format!("/properties/{side}{plural}")).filter_map(Value::as_str))
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let prefixes = both("AddressPrefix", "AddressPrefixes");
        let ports = both("PortRange", "PortRanges");
        Self {
            prefixes: prefixes.iter().map(|text| Prefix::parse(text)).collect(),
            application_groups: ids_at(rule, &format!("/properties/{side}ApplicationSecurityGroups")),
            ports: ports.iter().filter_map(|text| port_range(text)).collect(),
        }
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }

    fn has(
        &self,
        network: &Network,
        here: &Interface,
        address: IpAddr,
        interface: Option<&Interface>,
    ) -> bool {
        self.prefixes.iter().any(|prefix| prefix.has(network, here, address))
            || interface.is_some_and(|interface| {
                self.application_groups.iter().any(|group| interface.application_groups.contains(group))
            })
    }
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    if text == "*" {
        return Some((0, u16::MAX));
    }
    match text.split_once('-') {
        Some((first, last)) => Some((first.trim().parse().ok()?, last.trim().parse().ok()?)),
        None => text.trim().parse().ok().map(|port| (port, port)),
    }
}

impl Prefix {
    fn parse(text: &str) -> Self {
        if let Ok(addresses) = text.parse::<IpNet>() {
            return Self::Addresses(addresses);
        }
        if let Ok(one) = text.parse::<IpAddr>() {
            return Self::Addresses(one.into());
        }
        match text.to_ascii_lowercase().as_str() {
            "*" => Self::Any,
            "internet" => Self::Internet,
            "virtualnetwork" => Self::VirtualNetwork,
            "azureloadbalancer" => Self::AzureLoadBalancer,
            other => Self::Tag(other.to_owned()),
        }
    }

    fn has(&self, network: &Network, here: &Interface, address: IpAddr) -> bool {
        let is_probe_source = address == PROBE_SOURCE || address == PROBE_SOURCE_V6;
        match self {
            Self::Any => true,
            Self::Addresses(addresses) => addresses.contains(&address),
            Self::AzureLoadBalancer => is_probe_source,
            Self::VirtualNetwork => !is_probe_source && network.is_in_virtual_network(here, address),
            Self::Internet => {
                !is_probe_source
                    && !is_private(address)
                    && !network.is_in_address_space(here.virtual_network(), address)
            }
            Self::Tag(tag) => network.is_in_service_tag(tag, address),
        }
    }
}

/// Whether an address is one that the internet does not carry.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            // 100.64.0.0/10 is for the networks of providers, and some clusters' pods.
            let shared = matches!(address.octets(), [100, 64..=127, ..]);
            address.is_private() || shared || address.is_loopback() || address.is_link_local()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// Whether the internet carries packets for an address: not for private ones, nor for those that are
/// set aside for benchmarks and examples, from which simulated public addresses come.
pub(super) fn is_carried(address: IpAddr) -> bool {
    let set_aside = match address {
        IpAddr::V4(address) => matches!(address.octets(), [198, 18 | 19, ..]) || address.is_unspecified(),
        IpAddr::V6(address) => matches!(address.segments(), [0x2001, 0xdb8, ..]) || address.is_unspecified(),
    };
    !is_private(address) && !set_aside
}

/// The rules that every group has ("Azure network security groups overview").
fn default_rules() -> Vec<Rule> {
    let table = [
        ("AllowVnetInBound", 65000, true, Access::Allow, "VirtualNetwork", "VirtualNetwork"),
        ("AllowAzureLoadBalancerInBound", 65001, true, Access::Allow, "AzureLoadBalancer", "*"),
        ("DenyAllInBound", 65500, true, Access::Deny, "*", "*"),
        ("AllowVnetOutBound", 65000, false, Access::Allow, "VirtualNetwork", "VirtualNetwork"),
        ("AllowInternetOutBound", 65001, false, Access::Allow, "*", "Internet"),
        ("DenyAllOutBound", 65500, false, Access::Deny, "*", "*"),
    ];
    let side = |prefix: &str| Side {
        prefixes: vec![Prefix::parse(prefix)],
        ports: vec![(0, u16::MAX)],
        ..Side::default()
    };
    table
        .into_iter()
        .map(|(name, priority, inbound, access, source, destination)| Rule {
            name: name.to_owned(),
            priority,
            inbound,
            access,
            protocol: None,
            source: side(source),
            destination: side(destination),
            is_default: true,
        })
        .collect()
}
