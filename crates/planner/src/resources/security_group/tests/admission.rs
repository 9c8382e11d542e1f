//! The compiled rules of many Services admit exactly the packets that a naive list admits: one rule for each Service,
//! range, port and address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::{SecurityGroup, SecurityRuleProperties};
use ipnet::IpNet;
use proptest::prelude::*;
use serde_json::json;

use super::spelling::{Spelling, service, spelling};
use super::{absent, after, run, world};
use crate::order::tests::properties::cases;
use crate::order::tests::{Svc, cluster, security_group};
use crate::resources::security_group::intent::AccessIntent;
use crate::resources::security_group::rule::{destination_ports, items};

const NODES: [&str; 4] = ["10.0.1.10", "10.0.1.11", "fd00:1::10", "fd00:1::11"];

/// The source of a packet.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    Host(IpAddr),
    /// A host on the internet that this service tag includes, and no range.
    Tagged(&'static str),
    /// Azure's health probes.
    Probe,
}

#[derive(Debug, Clone)]
struct Packet {
    from: Source,
    to: IpAddr,
    protocol: &'static str,
    port: i32,
}

/// The virtual network is `10.0.0.0/8` and `fd00::/8`.
fn is_inside(host: IpAddr) -> bool {
    match host {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.octets()[0] == 0xfd,
    }
}

/// An item of a list of sources or destinations.
enum Item {
    Network(IpNet),
    Word(String),
}

impl Item {
    fn parse(text: &str) -> Self {
        let network = text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse::<IpNet>());
        network.map_or_else(|_| Self::Word(text.to_ascii_lowercase()), Self::Network)
    }
}

impl Source {
    fn is(&self, item: &Item) -> bool {
        match (item, self) {
            (Item::Network(network), Self::Host(host)) => network.contains(host),
            (Item::Network(_), _) => false,
            (Item::Word(word), _) if word == "*" => true,
            (Item::Word(word), Self::Host(host)) => word == "internet" && !is_inside(*host),
            (Item::Word(word), Self::Tagged(tag)) => word.eq_ignore_ascii_case(tag) || word == "internet",
            (Item::Word(word), Self::Probe) => word == "azureloadbalancer",
        }
    }

    /// Azure's default rules, which come after all others.
    fn is_let_in_by_default(&self) -> bool {
        match self {
            Self::Host(host) => is_inside(*host),
            Self::Tagged(_) => false,
            Self::Probe => true,
        }
    }
}

/// A security rule as Azure evaluates it.
struct Rule {
    priority: Option<i32>,
    protocol: String,
    from: Vec<Item>,
    to: Vec<Item>,
    /// `None` for all.
    ports: Option<BTreeSet<i32>>,
    allows: bool,
}

impl Rule {
    fn read(p: &SecurityRuleProperties) -> Self {
        let every_port =
            items(&p.destination_port_range, &p.destination_port_ranges).any(|range| range == "*");
        let ports = || destination_ports(p).unwrap().into_iter().collect();
        let from = items(&p.source_address_prefix, &p.source_address_prefixes);
        let to = items(&p.destination_address_prefix, &p.destination_address_prefixes);
        Self {
            priority: p.priority,
            protocol: p.protocol.as_ref().unwrap().as_str().to_ascii_lowercase(),
            from: from.map(Item::parse).collect(),
            to: to.map(Item::parse).collect(),
            ports: (!every_port).then(ports),
            allows: p.access.as_ref().unwrap().is("Allow"),
        }
    }

    fn fits(&self, packet: &Packet) -> bool {
        (self.protocol == "*" || self.protocol.eq_ignore_ascii_case(packet.protocol))
            && self.ports.as_ref().is_none_or(|ports| ports.contains(&packet.port))
            && self.to.iter().any(|item| Source::Host(packet.to).is(item))
            && self.from.iter().any(|item| packet.from.is(item))
    }
}

/// The rules in the order in which Azure evaluates them.
fn rules_of(group: &SecurityGroup) -> Vec<Rule> {
    let rules = group.properties.as_ref().unwrap().security_rules.as_ref().unwrap();
    let mut rules: Vec<Rule> =
        rules.iter().map(|rule| Rule::read(rule.properties.as_ref().unwrap())).collect();
    rules.sort_by_key(|rule| rule.priority);
    rules
}

/// Evaluates rules as Azure does: the first matching rule decides.
fn is_admitted(rules: &[Rule], packet: &Packet) -> bool {
    let first = rules.iter().find(|rule| rule.fits(packet));
    first.map_or_else(|| packet.from.is_let_in_by_default(), |rule| rule.allows)
}

/// A Service as in its manifest, and where its packets arrive.
struct Asking<'a> {
    service: &'a Svc,
    addresses: Vec<IpAddr>,
    ranges: Vec<IpNet>,
    tags: Vec<Item>,
    internal: bool,
    at_nodes: bool,
    has_invalid: bool,
    denies: bool,
}

impl<'a> Asking<'a> {
    fn of(service: &'a Svc) -> Self {
        let annotations = service.0.metadata.annotations.clone().unwrap_or_default();
        let annotation = |key: &str| {
            annotations.get(&format!("service.beta.kubernetes.io/{key}")).cloned().unwrap_or_default()
        };
        let published = service.0.status.load_balancer.ingress.iter();
        let ranges = service.0.spec.load_balancer_source_ranges.iter();
        Self {
            service,
            addresses: published.map(|ingress| ingress.ip.parse().unwrap()).collect(),
            ranges: ranges.map(|range| range.to_lowercase().parse().unwrap()).collect(),
            tags: annotation("azure-allowed-service-tags")
                .split(',')
                .filter(|tag| !tag.is_empty())
                .map(Item::parse)
                .collect(),
            internal: annotation("azure-load-balancer-internal") == "true",
            at_nodes: annotation("azure-disable-load-balancer-floating-ip") == "true",
            has_invalid: !annotation("azure-allowed-ip-ranges").is_empty(),
            denies: annotation("azure-deny-all-except-load-balancer-source-ranges") == "true",
        }
    }

    /// Whether packets for an address of this family arrive at the frontend's address.
    fn floats(&self, v6: bool) -> bool {
        !(self.at_nodes || (v6 && self.internal))
    }

    /// Whether a packet arrives at the Service, and so is its to judge.
    fn is_for(&self, packet: &Packet) -> bool {
        let v6 = packet.to.is_ipv6();
        if self.floats(v6) { self.addresses.contains(&packet.to) } else { is_node(packet.to) }
    }

    fn has_port(&self, packet: &Packet) -> bool {
        let floats = self.floats(packet.to.is_ipv6());
        self.service.0.spec.ports.iter().any(|port| {
            let number = if floats { port.port } else { port.node_port };
            port.protocol.eq_ignore_ascii_case(packet.protocol) && number == packet.port
        })
    }

    fn allows(&self, packet: &Packet) -> bool {
        let of_family = |range: &&IpNet| range.addr().is_ipv6() == packet.to.is_ipv6();
        let mut mine = self.ranges.iter().filter(of_family);
        let everybody = self.tags.is_empty()
            && mine.clone().next().is_none()
            && !self.has_invalid
            && (self.ranges.iter().any(|range| range.prefix_len() == 0)
                || (self.ranges.is_empty() && !self.internal));
        self.is_for(packet)
            && self.has_port(packet)
            && (self.tags.iter().any(|tag| packet.from.is(tag))
                || mine.any(|range| packet.from.is(&Item::Network(*range)))
                || (everybody && packet.from.is(&Item::Word("internet".to_owned()))))
    }

    /// Denies all other traffic at its own addresses. At nodes, where others are reached, too, it denies only its own
    /// traffic, except probes.
    fn denies(&self, packet: &Packet) -> bool {
        let probes = packet.from == Source::Probe && packet.protocol == "Tcp";
        (self.has_invalid || (self.denies && !self.ranges.is_empty()))
            && self.is_for(packet)
            && (self.floats(packet.to.is_ipv6()) || (self.has_port(packet) && !probes))
    }
}

fn is_node(address: IpAddr) -> bool {
    NODES.iter().any(|node| node.parse() == Ok(address))
}

fn naive(services: &[Asking<'_>], packet: &Packet) -> bool {
    services.iter().any(|service| service.allows(packet))
        || (packet.from.is_let_in_by_default() && !services.iter().any(|service| service.denies(packet)))
}

/// The first and the last address of a network, and their outside neighbours.
fn borders(network: IpNet) -> Vec<IpAddr> {
    let beside = |address: IpAddr, up: bool| match address {
        IpAddr::V4(v4) => IpAddr::from(
            (if up { v4.to_bits().wrapping_add(1) } else { v4.to_bits().wrapping_sub(1) }).to_be_bytes(),
        ),
        IpAddr::V6(v6) => IpAddr::from(
            (if up { v6.to_bits().wrapping_add(1) } else { v6.to_bits().wrapping_sub(1) }).to_be_bytes(),
        ),
    };
    let (first, last) = (network.network(), network.broadcast());
    vec![first, last, beside(first, false), beside(last, true)]
}

/// Packets from every relevant source to every used address and port, and one unused neighbour of each.
fn packets(services: &[Asking<'_>]) -> Vec<Packet> {
    let strangers =
        ["198.51.100.7", "2001:db8:9::7", "10.0.9.9", "fd00:9::9"].map(|host| host.parse().unwrap());
    let borders = services.iter().flat_map(|service| service.ranges.clone()).flat_map(borders);
    let hosts = strangers.into_iter().chain(borders).map(Source::Host);
    let tags = ["AzureCloud", "Storage.WestUS"].map(Source::Tagged);
    let sources: Vec<Source> = hosts.chain(tags).chain([Source::Probe]).collect();
    let nodes = NODES.iter().map(|node| node.parse().unwrap());
    let targets: Vec<IpAddr> =
        services.iter().flat_map(|service| service.addresses.clone()).chain(nodes).collect();
    let ports = services.iter().flat_map(|service| &service.service.0.spec.ports);
    let mut ports: Vec<i32> = ports.flat_map(|port| [port.port, port.node_port]).chain([7]).collect();
    ports.sort_unstable();
    ports.dedup();
    let mut packets = Vec::new();
    for from in &sources {
        for to in &targets {
            if matches!(from, Source::Host(host) if host.is_ipv6() != to.is_ipv6()) {
                continue;
            }
            for port in &ports {
                for protocol in ["Tcp", "Udp"] {
                    packets.push(Packet { from: from.clone(), to: *to, protocol, port: *port });
                }
            }
        }
    }
    packets
}

fn addresses(number: usize, shares: bool) -> [String; 2] {
    let number = if shares { 0 } else { number };
    [format!("20.0.0.{}", number + 1), format!("2001:db8::{}", number + 1)]
}

fn named(service: &Svc, number: usize, invalid: bool, shares: bool) -> Svc {
    let name = format!("{}1", ["a", "b", "c"][number]);
    let service = service.clone().change(|s| {
        s.metadata.name = Some(name.clone());
        s.metadata.uid = Some(name.clone());
        for port in &mut s.spec.ports {
            port.node_port += 1000 * i32::try_from(number).unwrap();
        }
    });
    let service = if invalid { service.annotate("azure-allowed-ip-ranges", "bad") } else { service };
    let addresses = addresses(number, shares);
    service.published(&addresses.each_ref().map(String::as_str))
}

fn present(service: &Svc) -> AccessIntent {
    let published = &service.0.status.load_balancer.ingress;
    AccessIntent::Present {
        service: service.intent(&cluster()),
        addresses: published.iter().map(|ingress| ingress.ip.parse().unwrap()).collect(),
        node_addresses: NODES.iter().map(|node| node.parse().unwrap()).collect(),
    }
}

fn apply(
    group: SecurityGroup,
    batch: &[AccessIntent],
    services: &[&Svc],
    spelling: &Spelling,
) -> SecurityGroup {
    let planned = run(&group, batch, &world(services));
    assert_eq!(planned.refused, []);
    spelling.store(after(&group, &planned))
}

proptest! {
    #![proptest_config(cases(256))]

    /// LB-460: holds whatever Services existed before, change or leave, and however Azure spells what it stores.
    #[test]
    fn lb_460_compiled_rules_admit_what_a_naive_list_admits(
        before in prop::collection::vec((service(), prop::bool::weighted(0.1)), 3),
        now in prop::collection::vec((service(), prop::bool::weighted(0.1)), 3),
        shares in any::<bool>(),
        how_many in 0..4_usize,
        spelling in spelling(),
    ) {
        let of = |all: &[(Svc, bool)]| -> Vec<Svc> {
            let all = all.iter().enumerate();
            all.map(|(number, (service, invalid))| named(service, number, *invalid, shares && number < 2)).collect()
        };
        let (before, now) = (of(&before), of(&now));
        let all: Vec<&Svc> = before.iter().collect();
        let batch: Vec<AccessIntent> = before.iter().map(present).collect();
        let group = apply(security_group(json!([])), &batch, &all, &spelling);

        // Some change and the others leave, all in one batch.
        let services: Vec<&Svc> = now[..how_many.min(3)].iter().collect();
        let mut batch: Vec<AccessIntent> = services.iter().map(|service| present(service)).collect();
        for (number, service) in before.iter().enumerate().skip(services.len()) {
            let addresses = addresses(number, shares && number < 2);
            batch.push(absent(&service.clone().deleting(), &addresses.each_ref().map(String::as_str)));
        }
        let group = apply(group, &batch, &services, &spelling);

        let asking: Vec<Asking<'_>> = services.iter().map(|service| Asking::of(service)).collect();
        let rules = rules_of(&group);
        for packet in packets(&asking) {
            prop_assert_eq!(
                is_admitted(&rules, &packet), naive(&asking, &packet), "{:?}\n{:#?}", packet, crate::resources::security_group::tests::told(&group)
            );
        }
    }
}

/// The property is not vacuous: in most cases there are rules of both kinds, and packets that they allow and deny
/// although Azure's default rules would not.
#[test]
fn most_cases_have_packets_that_rules_decide() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let drawing = (prop::collection::vec((service(), prop::bool::weighted(0.1)), 3), 0..4_usize);
    let (drawn, mut counts) = (200, [0; 4]);
    for _ in 0..drawn {
        let (now, how_many) = proptest::strategy::ValueTree::current(&drawing.new_tree(&mut runner).unwrap());
        let now: Vec<Svc> =
            now.iter().enumerate().map(|(n, (one, invalid))| named(one, n, *invalid, false)).collect();
        let services: Vec<&Svc> = now[..how_many.min(3)].iter().collect();
        let batch: Vec<AccessIntent> = services.iter().map(|service| present(service)).collect();
        let empty = security_group(json!([]));
        let rules = rules_of(&after(&empty, &run(&empty, &batch, &world(&services))));
        let asking: Vec<Asking<'_>> = services.iter().map(|service| Asking::of(service)).collect();
        let packets = packets(&asking);
        let let_in = |p: &&Packet| is_admitted(&rules, p) && !p.from.is_let_in_by_default();
        let kept_out = |p: &&Packet| !is_admitted(&rules, p) && p.from.is_let_in_by_default();
        for (count, holds) in counts.iter_mut().zip([
            !rules.is_empty(),
            packets.len() > 100,
            packets.iter().any(|packet| let_in(&packet)),
            packets.iter().any(|packet| kept_out(&packet)),
        ]) {
            *count += usize::from(holds);
        }
    }
    let shares = counts.map(|count| count * 100 / drawn);
    assert!(shares.iter().zip([60, 70, 60, 40]).all(|(share, least)| *share >= least), "{shares:?}");
}
