//! Published addresses answer allowed clients, and no others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use azure_simulator::Azure;
use azure_simulator::packet::{Network, Packet, ProbeAnswers, Protocol, Source};
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;

use super::allowed_traffic::AllowedTraffic;
use super::services::{Services, key_of, list, published, text};
use crate::finding::Finding;
use crate::world::World;

/// Hosts on the internet, some of them in ranges that tests usually allow.
const STRANGERS: [&str; 5] = ["203.0.113.7", "198.51.100.20", "192.0.2.1", "2001:db8:1::7", "2001:db8:2::7"];

/// A host in the nodes' subnet that is not a machine.
const UNUSED_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 240, 255, 250));
/// The same with IPv6.
const UNUSED_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0x10, 0x240, 0, 0, 0, 0, 0xfffa));

/// The number of flows from one client that have to arrive: enough for several on each of a few machines.
const FLOWS: u16 = 4;

/// Ports, at least one of which no Service asks for.
const SPARE_PORTS: [u16; 8] = [9, 19, 109, 1009, 2009, 3009, 4009, 5009];

pub(super) fn check(
    world: &World,
    azure: &Azure,
    services: &Services,
    refused: &BTreeSet<String>,
) -> Vec<Finding> {
    let oracle = Oracle {
        serving_nodes: world.serving_nodes(),
        virtual_network: &world.shape.virtual_network,
        network: Network::read(azure),
        answers: CachedAnswers { answers: &world.answers, cached: Mutex::default() },
    };
    let mut sharers: BTreeMap<IpAddr, Vec<AllowedTraffic>> = BTreeMap::new();
    for service in &services.0 {
        for address in published(service) {
            sharers.entry(address).or_default().push(AllowedTraffic::of(service));
        }
    }
    let slices: Vec<Value> =
        world.kubernetes.list("EndpointSlice").into_iter().map(|slice| slice.value().clone()).collect();
    let mut findings = Vec::new();
    // A refused Service keeps what it had, whatever it asks for now.
    for service in services.0.iter().filter(|service| !refused.contains(&key_of(service))) {
        let allowed = AllowedTraffic::of(service);
        let additional =
            &service["metadata"]["annotations"]["service.beta.kubernetes.io/azure-additional-public-ips"];
        let is_of_others =
            |address: &IpAddr| text(additional).split(',').any(|item| item.trim().parse() == Ok(*address));
        for address in published(service).filter(|address| !is_of_others(address)) {
            let others = sharers.get(&address).map_or(&[][..], Vec::as_slice);
            let case = Case { service, allowed: &allowed, address, others };
            oracle.check(&case, &slices, &mut findings);
        }
    }
    findings
}

/// One published address of one Service.
struct Case<'a> {
    service: &'a Value,
    allowed: &'a AllowedTraffic,
    address: IpAddr,
    /// All Services that publish this address.
    others: &'a [AllowedTraffic],
}

struct Oracle<'a> {
    serving_nodes: BTreeSet<String>,
    virtual_network: &'a str,
    network: Network,
    answers: CachedAnswers<'a>,
}

/// A client that sends a packet, and whether the packet should arrive.
struct Client {
    source: Source,
    address: IpAddr,
    admitted: bool,
}

impl Oracle<'_> {
    fn check(&self, case: &Case<'_>, slices: &[Value], findings: &mut Vec<Finding>) {
        let alone = case.others.len() == 1;
        // Any Service on a shared address that denies all else does so for all Services on it.
        let denied_by_others = !alone && case.others.iter().any(AllowedTraffic::denies_all_else);
        let answers = self.has_endpoints(case, slices) && !case.allowed.own_probes && !denied_by_others;
        let clients = self.clients(case);
        for client in &clients {
            for (protocol, port) in &case.allowed.ports {
                if client.admitted && answers && !case.allowed.without_rules {
                    findings.extend(self.must_arrive(case, client, *protocol, *port));
                }
                if !client.admitted && alone {
                    findings.extend(self.must_not_arrive(case, client, *protocol, *port));
                }
            }
            let is_used = |port: &u16| case.others.iter().any(|one| one.ports.iter().any(|(_, p)| p == port));
            let spare = SPARE_PORTS.iter().find(|port| !is_used(port));
            if let Some(port) = spare.filter(|_| !case.others.iter().any(|one| one.all_ports)) {
                for protocol in [Protocol::Tcp, Protocol::Udp] {
                    findings.extend(self.must_not_arrive(case, client, protocol, *port));
                }
            }
        }
    }

    /// The clients to try: strangers, hosts of the allowed ranges, and one inside the network.
    fn clients(&self, case: &Case<'_>) -> Vec<Client> {
        let family = |host: &IpAddr| host.is_ipv4() == case.address.is_ipv4();
        let mut clients = Vec::new();
        let strangers = STRANGERS.iter().filter_map(|host| host.parse().ok());
        let of_ranges = case.allowed.ranges().iter().filter_map(|range| range.hosts().next());
        for host in strangers.chain(of_ranges).filter(family) {
            if is_private(host) {
                continue;
            }
            // Private addresses are not reachable from the internet.
            let admitted = if case.allowed.internal { Some(false) } else { case.allowed.admits(host) };
            if let Some(admitted) = admitted {
                clients.push(Client { source: Source::internet(host), address: host, admitted });
            }
        }
        if case.allowed.internal {
            let host = if case.address.is_ipv4() { UNUSED_V4 } else { UNUSED_V6 };
            let source = Source::virtual_network(self.virtual_network, host);
            let admitted = case.allowed.admits_inside(host);
            clients.push(Client { source, address: host, admitted });
        }
        clients
    }

    fn must_arrive(
        &self,
        case: &Case<'_>,
        client: &Client,
        protocol: Protocol,
        port: u16,
    ) -> Option<Finding> {
        let packet = Packet::new(client.source.clone(), case.address, port, protocol);
        let verdicts = (0..FLOWS).map(|flow| {
            let packet = packet.clone().with_source_port(40_000 + flow);
            self.network.trace(&self.answers, &packet)
        });
        let lost = verdicts.into_iter().find(|verdict| !verdict.arrives)?;
        Some(Finding::Unreachable {
            service: key_of(case.service),
            from: client.address,
            to: case.address,
            port,
            protocol,
            why: lost.sentence().to_owned(),
        })
    }

    fn must_not_arrive(
        &self,
        case: &Case<'_>,
        client: &Client,
        protocol: Protocol,
        port: u16,
    ) -> Option<Finding> {
        let packet = Packet::new(client.source.clone(), case.address, port, protocol);
        self.network.trace(&self.answers, &packet).arrives.then(|| Finding::Open {
            service: key_of(case.service),
            from: client.address,
            to: case.address,
            port,
            protocol,
        })
    }

    /// Whether there is a running machine in a pool that accepts the Service's traffic.
    fn has_endpoints(&self, case: &Case<'_>, slices: &[Value]) -> bool {
        let name = text(&case.service["metadata"]["name"]);
        let namespace = text(&case.service["metadata"]["namespace"]);
        let ready: BTreeSet<&str> = slices
            .iter()
            .filter(|slice| {
                let labels = &slice["metadata"]["labels"];
                text(&slice["metadata"]["namespace"]) == namespace
                    && text(&labels["kubernetes.io/service-name"]) == name
            })
            .flat_map(|slice| list(slice, "/endpoints"))
            .filter(|endpoint| endpoint["conditions"]["ready"] != false)
            .map(|endpoint| text(&endpoint["nodeName"]))
            .collect();
        let local = case.service["spec"]["externalTrafficPolicy"] == "Local";
        let takes = |node: &String| if local { ready.contains(node.as_str()) } else { !ready.is_empty() };
        self.serving_nodes.iter().any(takes)
    }
}

/// Whether the address is not routed on the internet.
fn is_private(host: IpAddr) -> bool {
    match host {
        IpAddr::V4(host) => {
            host.is_private() || host.is_loopback() || host.is_link_local() || host.is_unspecified()
        }
        IpAddr::V6(host) => host.is_unique_local() || host.is_loopback() || host.is_unspecified(),
    }
}

/// A probe: machine, address, port, path.
type Probe = (ResourceId, IpAddr, u16, Option<String>);

/// Cached answers to probes: hundreds of Services probe the same machines in the same way.
struct CachedAnswers<'a> {
    answers: &'a dyn ProbeAnswers,
    cached: Mutex<HashMap<Probe, bool>>,
}

impl ProbeAnswers for CachedAnswers<'_> {
    fn answers(
        &self,
        machine: &ResourceId,
        at: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool {
        let key = (machine.clone(), at, port, path.map(str::to_owned));
        if let Some(answer) = self.cached.lock().get(&key) {
            return *answer;
        }
        let answer = self.answers.answers(machine, at, protocol, port, path);
        self.cached.lock().insert(key, answer);
        answer
    }
}
