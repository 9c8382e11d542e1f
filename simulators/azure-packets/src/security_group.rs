//! Security groups: the rule that decides on a flow.

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use super::json::{ids_at, items, text_at};

/// The source of health probes; the service tag `AzureLoadBalancer`.
pub(super) const PROBE_SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(168, 63, 129, 16));
/// The same for IPv6.
pub(super) const PROBE_SOURCE_V6: IpAddr =
    IpAddr::V6(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x1234, 0x5678, 0x9abc));

#[derive(Debug)]
pub(super) struct SecurityGroup {
    pub id: ResourceId,
    /// All rules, default ones too, by priority.
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) priority: u32,
    pub(super) inbound: bool,
    pub(super) access: Access,
    /// `None` for any.
    pub(super) protocol: Option<String>,
    pub(super) source: Side,
    pub(super) destination: Side,
    pub(super) is_default: bool,
}

#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) prefixes: Vec<Prefix>,
    pub(super) application_groups: Vec<ResourceId>,
    /// First and last.
    pub(super) ports: Vec<(u16, u16)>,
}

/// Sources or destinations of a rule.
#[derive(Debug)]
pub(super) enum Prefix {
    Any,
    Addresses(IpNet),
    Internet,
    VirtualNetwork,
    AzureLoadBalancer,
    /// Another service tag, in lower case.
    Tag(String),
}

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Let through.
    Allow,
    /// Dropped.
    Deny,
}

/// The direction of a flow, seen from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the machine.
    Inbound,
    /// Away from it.
    Outbound,
}

/// The decision of a security group, with its rule.
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

    pub(super) fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|(first, last)| (*first..=*last).contains(&port))
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
