//! Security rules: names, hashes and the two spellings of lists.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use azure_types::{SecurityRule, SecurityRuleProperties, Word};
use ipnet::IpNet;

use crate::model::{Family, MIN_PRIORITY};
use crate::service::security_rule::{MANAGED_PREFIX, PROTOCOLS, port_list};
use crate::service::{Traffic, WantedRule};

/// Azure's highest priority.
const LAST_PRIORITY: i32 = 4096;

/// Azure's value for all ports.
const ALL_PORTS: &str = "*";

/// Every source.
pub(super) fn any_source() -> BTreeSet<String> {
    BTreeSet::from(["*".to_owned()])
}

/// Whether a rule is one that controller managers write.
pub(super) fn is_managed(rule: &SecurityRule) -> bool {
    let name = rule.name.as_deref().unwrap_or_default().to_ascii_lowercase();
    let priority = rule.properties.as_ref().and_then(|p| p.priority).unwrap_or_default();
    name.starts_with(MANAGED_PREFIX) && (MIN_PRIORITY..=LAST_PRIORITY).contains(&priority)
}

/// A prefix in its normal spelling, for comparisons. Azure may store `203.0.113.7/32` as `203.0.113.7`, IPv6 in any of
/// its forms, and service tags in its own case.
pub(super) fn normal(prefix: &str) -> String {
    match parse(prefix) {
        Some(network) if network.prefix_len() == network.max_prefix_len() => network.addr().to_string(),
        Some(network) => network.trunc().to_string(),
        None => prefix.to_ascii_lowercase(),
    }
}

/// A network; an address counts as a network of one address.
fn parse(prefix: &str) -> Option<IpNet> {
    prefix.parse::<IpAddr>().map(IpNet::from).or_else(|_| prefix.parse()).ok()
}

/// The largest prefix that is expanded to its addresses, in host bits.
const MAX_SPREAD_BITS: u8 = 12;

/// The maximum number of addresses that the prefixes of one rule are expanded to. No cluster has more nodes, so no rule
/// of the cluster exceeds it.
const MAX_SPREAD: usize = 8192;

/// Expands prefixes to their addresses; a prefix that is too large is kept as it is.
pub(super) fn spread<'a>(prefixes: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for prefix in prefixes {
        let size =
            |network: &IpNet| 1 << (network.max_prefix_len() - network.prefix_len()).min(MAX_SPREAD_BITS + 1);
        let network = parse(prefix).filter(|network| {
            size(network) <= 1 << MAX_SPREAD_BITS && all.len() + size(network) <= MAX_SPREAD
        });
        match network {
            None => drop(all.insert(normal(prefix))),
            Some(IpNet::V4(network)) => {
                let (first, last) = (u32::from(network.network()), u32::from(network.broadcast()));
                all.extend((first..=last).map(|bits| Ipv4Addr::from(bits).to_string()));
            }
            Some(IpNet::V6(network)) => {
                let (first, last) = (u128::from(network.network()), u128::from(network.broadcast()));
                all.extend((first..=last).map(|bits| Ipv6Addr::from(bits).to_string()));
            }
        }
    }
    all
}

/// The smallest set of prefixes that stands for exactly these destinations (LB-414).
pub(super) fn gathered(destinations: &BTreeSet<String>) -> BTreeSet<String> {
    let (networks, others): (Vec<_>, Vec<_>) =
        destinations.iter().map(|one| parse(one).ok_or_else(|| one.clone())).partition(Result::is_ok);
    let networks = IpNet::aggregate(&networks.into_iter().flatten().collect());
    let readable = networks.into_iter().flat_map(|network| {
        let longest = network.max_prefix_len() - MAX_SPREAD_BITS;
        let parts = network.subnets(network.prefix_len().max(longest));
        parts.map_or_else(|_| vec![network], Iterator::collect)
    });
    let spelled = readable.map(|network| normal(&network.to_string()));
    spelled.chain(others.into_iter().filter_map(Result::err)).collect()
}

/// The protocol of an observed rule in the spelling of managed rules.
pub(super) fn known_protocol(protocol: &str) -> Option<&'static str> {
    PROTOCOLS.into_iter().find(|known| known.eq_ignore_ascii_case(protocol))
}

/// Destination or source ports as sorted, disjoint ranges that are not adjacent: `*` is every port, and `80-81` equals
/// `80` and `81`. `None` if an item is not a port range.
fn port_ranges<'a>(items: impl Iterator<Item = &'a str>) -> Option<Vec<(u16, u16)>> {
    let port = |text: &str| text.trim().parse::<u16>().ok();
    let range = |item: &str| match item.split_once('-') {
        _ if item == "*" => Some((0, u16::MAX)),
        None => port(item).map(|port| (port, port)),
        Some((first, last)) => Some((port(first)?, port(last)?)).filter(|(first, last)| first <= last),
    };
    let mut ranges = items.map(range).collect::<Option<Vec<_>>>()?;
    ranges.sort_unstable();
    ranges.dedup_by(|next, merged| {
        let touches = next.0 <= merged.1.saturating_add(1);
        if touches {
            merged.1 = merged.1.max(next.1);
        }
        touches
    });
    Some(ranges)
}

/// The destination ports of a rule, one by one. `None` if it is for all ports or its ports cannot be parsed.
pub(super) fn destination_ports(properties: &SecurityRuleProperties) -> Option<BTreeSet<i32>> {
    let listed = items(&properties.destination_port_range, &properties.destination_port_ranges);
    let ranges = port_ranges(listed).filter(|ranges| *ranges != [(0, u16::MAX)])?;
    Some(ranges.into_iter().flat_map(|(first, last)| i32::from(first)..=i32::from(last)).collect())
}

/// The family of a destination.
pub(super) fn family_of(destination: &str) -> Family {
    if destination.contains(':') { Family::V6 } else { Family::V4 }
}

/// The items of a list that Azure stores in a singular or in a plural member.
pub(super) fn items<'a>(
    single: &'a Option<String>,
    plural: &'a Option<Vec<String>>,
) -> impl Iterator<Item = &'a str> {
    single.iter().chain(plural.iter().flatten()).map(String::as_str).filter(|item| !item.is_empty())
}

/// Sets a list of prefixes: one in the singular member, several in the plural one. Leaves both unchanged if they
/// already mean the same, whatever their spelling; unchanged items keep their spelling. Returns whether anything
/// changed.
pub(super) fn set_prefixes(
    single: &mut Option<String>,
    plural: &mut Option<Vec<String>>,
    wanted: &BTreeSet<String>,
) -> bool {
    let mut current: BTreeMap<String, String> =
        items(single, plural).map(|item| (normal(item), item.to_owned())).collect();
    let wanted: BTreeMap<String, &String> = wanted.iter().map(|item| (normal(item), item)).collect();
    if current.keys().eq(wanted.keys()) {
        return false;
    }
    let spelled = wanted.into_iter().map(|(key, item)| current.remove(&key).unwrap_or_else(|| item.clone()));
    let mut list: Vec<String> = spelled.collect();
    list.sort();
    if list.len() == 1 {
        *single = list.pop();
        *plural = None;
    } else {
        *single = None;
        *plural = Some(list);
    }
    true
}

/// Sets a list of port ranges: `*` in the singular member, ports in the plural one. Leaves both unchanged if they
/// already mean the same ports. Returns whether anything changed.
fn set_ports(single: &mut Option<String>, plural: &mut Option<Vec<String>>, wanted: &[String]) -> bool {
    let current = port_ranges(items(single, plural));
    if current.is_some() && current == port_ranges(wanted.iter().map(String::as_str)) {
        return false;
    }
    if let [all] = wanted
        && all == ALL_PORTS
    {
        *single = Some(all.clone());
        *plural = None;
    } else {
        *single = None;
        *plural = Some(wanted.to_vec());
    }
    true
}

fn set_word(member: &mut Option<Word>, value: &str) -> bool {
    if member.as_ref().is_some_and(|word| word.is(value)) {
        return false;
    }
    *member = Some(Word::from(value));
    true
}

fn assert_rule(
    properties: &mut SecurityRuleProperties,
    protocol: &str,
    access: &str,
    sources: &BTreeSet<String>,
    ports: &[String],
) -> bool {
    let p = properties;
    let mut changed = set_word(&mut p.protocol, protocol);
    changed |= set_word(&mut p.access, access);
    changed |= set_word(&mut p.direction, "Inbound");
    changed |= set_prefixes(&mut p.source_address_prefix, &mut p.source_address_prefixes, sources);
    changed |= set_ports(&mut p.source_port_range, &mut p.source_port_ranges, &[ALL_PORTS.to_owned()]);
    changed |= set_ports(&mut p.destination_port_range, &mut p.destination_port_ranges, ports);
    changed
}

impl WantedRule {
    /// Sets everything of a rule except its destinations and priority to what is desired. Returns whether anything
    /// changed.
    pub fn assert(&self, properties: &mut SecurityRuleProperties) -> bool {
        let access = if self.denies { "Deny" } else { "Allow" };
        match &self.traffic {
            Some(Traffic { protocol, sources, ports, .. }) => {
                assert_rule(properties, protocol, access, sources, &port_list(ports))
            }
            None => assert_rule(properties, "*", access, &any_source(), &[ALL_PORTS.to_owned()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each difference counts, whichever others there are.
    #[test]
    fn every_set_of_differences_is_a_change() {
        let right: SecurityRuleProperties = serde_json::from_value(json!({
            "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "sourceAddressPrefix": "Internet",
            "sourcePortRange": "*", "destinationPortRange": "80",
        }))
        .unwrap();
        let edits: [fn(&mut SecurityRuleProperties); 6] = [
            |p| p.protocol = Some("Udp".into()),
            |p| p.access = None,
            |p| p.direction = Some("Outbound".into()),
            |p| p.source_address_prefix = Some("10.0.0.0/8".into()),
            |p| p.source_port_range = Some("1".into()),
            |p| p.destination_port_range = Some("81".into()),
        ];
        let sources = BTreeSet::from(["Internet".to_owned()]);
        for set in 0..1_u32 << edits.len() {
            let mut properties = right.clone();
            edits
                .iter()
                .enumerate()
                .filter(|(at, _)| set & (1 << at) != 0)
                .for_each(|(_, edit)| edit(&mut properties));
            let mut assert = || assert_rule(&mut properties, "Tcp", "Allow", &sources, &["80".to_owned()]);
            assert_eq!((assert(), assert()), (set != 0, false), "{set:b}");
        }
    }

    #[test]
    fn ports_are_sorted_disjoint_ranges() {
        for (items, expected) in [
            (&["80"][..], Some(&[(80, 80)][..])),
            (&["81", "80"], Some(&[(80, 81)])),
            (&["80-81", "82-90", "92"], Some(&[(80, 90), (92, 92)])),
            (&["80-90", "85"], Some(&[(80, 90)])),
            (&["85", "80-90", "84-95"], Some(&[(80, 95)])),
            (&["80-80"], Some(&[(80, 80)])),
            (&["*"], Some(&[(0, u16::MAX)])),
            (&["65535", "1"], Some(&[(1, 1), (65535, 65535)])),
            (&[" 80 - 81 "], Some(&[(80, 81)])),
            (&[], Some(&[])),
            (&["81-80"], None),
            (&["80", "http"], None),
            (&["65536"], None),
        ] {
            assert_eq!(port_ranges(items.iter().copied()).as_deref(), expected, "{items:?}");
        }
    }
}
