//! Security groups: which rule decides on a flow.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::Protocol;
use super::json::{ids_at, items, text_at};
use super::network::{Interface, Network};

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
    protocol: String,
    source: Side,
    destination: Side,
    is_default: bool,
}

#[derive(Debug, Default)]
struct Side {
    /// Prefixes, addresses, tags, `*`, as written.
    prefixes: Vec<String>,
    application_groups: Vec<ResourceId>,
    ports: Vec<String>,
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
            (rule.protocol == "*" || rule.protocol.eq_ignore_ascii_case(flow.protocol.as_str()))
                && rule.destination.has_port(flow.port)
                && rule.source.has_port(flow.source_port)
                && rule.source.has(network, here, flow.source, flow.source_interface)
                && rule.destination.has(network, here, flow.destination, flow.destination_interface)
        })
    }
}

impl Network {
    /// What the security groups around an interface say, in the order in which they are asked: the
    /// subnet's first on the way in, the interface's first on the way out. Ends with the first
    /// denial. Empty when no group is attached.
    pub(super) fn decisions(&self, here: &Interface, flow: &Flow<'_>, direction: Direction) -> Vec<Decision> {
        let of_subnet =
            here.subnet.as_ref().zip(self.subnet_of(here).and_then(|subnet| subnet.group.as_ref()));
        let of_interface = here.group.as_ref().map(|group| (&here.interface, group));
        let mut order = [of_subnet, of_interface];
        if direction == Direction::Outbound {
            order.reverse();
        }
        let mut decisions = Vec::new();
        for (attached_to, id) in order.into_iter().flatten() {
            let Some(group) = self.groups.get(id) else { continue };
            let Some(rule) = group.decide(self, here, flow, direction) else { continue };
            decisions.push(Decision {
                group: group.id.clone(),
                attached_to: attached_to.clone(),
                rule: rule.name.clone(),
                priority: rule.priority,
                is_default: rule.is_default,
                access: rule.access,
                direction,
            });
            if rule.access == Access::Deny {
                break;
            }
        }
        decisions
    }

    /// Whether an address belongs to the virtual network of an interface or to one connected to it.
    fn is_in_virtual_network(&self, here: &Interface, address: IpAddr) -> bool {
        let Some(network) = self.virtual_network_of(here).and_then(|id| self.virtual_networks.get(id)) else {
            return false;
        };
        let peers = network.peers.iter().filter_map(|peer| self.virtual_networks.get(peer));
        std::iter::once(network)
            .chain(peers)
            .flat_map(|network| &network.prefixes)
            .any(|prefix| prefix.contains(&address))
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
            protocol: text_at(document, "/properties/protocol")?.to_owned(),
            source: Side::read(document, "source"),
            destination: Side::read(document, "destination"),
            is_default,
        })
    }
}

impl Side {
    fn read(rule: &Value, side: &str) -> Self {
        // One value in the singular member or several in the plural one.
        let both = |singular: &str, plural: &str| {
            text_at(rule, &format!("/properties/{side}{singular}"))
                .into_iter()
                .chain(items(rule, &format!("/properties/{side}{plural}")).filter_map(Value::as_str))
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
                .collect()
        };
        Self {
            prefixes: both("AddressPrefix", "AddressPrefixes"),
            application_groups: ids_at(rule, &format!("/properties/{side}ApplicationSecurityGroups")),
            ports: both("PortRange", "PortRanges"),
        }
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|range| match range.split_once('-') {
            _ if range == "*" => true,
            Some((first, last)) => {
                let bounds = first.trim().parse().ok().zip(last.trim().parse().ok());
                bounds.is_some_and(|(first, last): (u16, u16)| (first..=last).contains(&port))
            }
            None => range.trim().parse() == Ok(port),
        })
    }

    fn has(
        &self,
        network: &Network,
        here: &Interface,
        address: IpAddr,
        interface: Option<&Interface>,
    ) -> bool {
        self.prefixes.iter().any(|prefix| matches(network, here, prefix, address))
            || interface.is_some_and(|interface| {
                self.application_groups.iter().any(|group| interface.application_groups.contains(group))
            })
    }
}

fn matches(network: &Network, here: &Interface, prefix: &str, address: IpAddr) -> bool {
    if prefix == "*" {
        return true;
    }
    if let Ok(prefix) = prefix.parse::<IpNet>() {
        return prefix.contains(&address);
    }
    if let Ok(one) = prefix.parse::<IpAddr>() {
        return one == address;
    }
    let is_probe_source = address == PROBE_SOURCE || address == PROBE_SOURCE_V6;
    if prefix.eq_ignore_ascii_case("AzureLoadBalancer") {
        return is_probe_source;
    }
    if prefix.eq_ignore_ascii_case("VirtualNetwork") {
        return !is_probe_source && network.is_in_virtual_network(here, address);
    }
    if prefix.eq_ignore_ascii_case("Internet") {
        return !is_probe_source && !is_private(address) && !network.is_in_virtual_network(here, address);
    }
    network
        .service_tags
        .get(&prefix.to_ascii_lowercase())
        .is_some_and(|prefixes| prefixes.iter().any(|prefix| prefix.contains(&address)))
}

/// Whether an address is one that the internet does not carry.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private() || address.is_loopback() || address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// The rules that every group has (`spec/arm-wire.md`, 9.4).
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
        prefixes: vec![prefix.to_owned()],
        ports: vec!["*".to_owned()],
        ..Side::default()
    };
    table
        .into_iter()
        .map(|(name, priority, inbound, access, source, destination)| Rule {
            name: name.to_owned(),
            priority,
            inbound,
            access,
            protocol: "*".to_owned(),
            source: side(source),
            destination: side(destination),
            is_default: true,
        })
        .collect()
}
