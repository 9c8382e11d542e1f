//! Compares a world with the expected result for a Service, without any code of the product: it reads Azure's
//! documents, the Service's status and events, and follows packets.

use std::net::IpAddr;

use azure_simulator::packet::{Hop, Network, Packet, Protocol};
use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;
use testkit::World;
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS};

use crate::expectation::{Expectation, Served};
use crate::rule::{self, IpFamily, Rule};

/// The finalizer which says that resources may exist for a Service.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// Azure's documents at one point in time, read once for many Services.
pub struct Moment<'a> {
    world: &'a World,
    network: Network,
    balancers: Vec<Value>,
    public_ips: Vec<Value>,
}

impl std::fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moment").finish_non_exhaustive()
    }
}

impl<'a> Moment<'a> {
    /// The current world.
    pub fn of(world: &'a World) -> Self {
        Self {
            world,
            network: Network::read(&world.azure),
            balancers: world.azure.documents_of_type(LOAD_BALANCERS),
            public_ips: world.azure.documents_of_type(PUBLIC_IPS).into_iter().map(with_group).collect(),
        }
    }

    /// The differences from the expected result; empty without any.
    pub fn judge(&self, key: &str, expectation: &Expectation) -> Vec<String> {
        let service = self.world.service(key);
        if service.is_null() {
            return vec!["the Service is not there".to_owned()];
        }
        match expectation {
            Expectation::Served(served) => self.judge_served(&service, served),
            Expectation::Refused { texts, by_azure } => self.judge_refused(&service, texts, *by_azure),
            Expectation::KeptAsItWas => self.judge_kept(&service),
            Expectation::Untouched => self.judge_untouched(&service),
            Expectation::Released => self.judge_released(&service),
        }
    }

    fn judge_untouched(&self, service: &Value) -> Vec<String> {
        let mut complaints = self.leftovers(service);
        let events = events(self.world, service);
        if !events.is_empty() {
            complaints.push(format!("it has events: {events:?}"));
        }
        if has_finalizer(service) {
            complaints.push("it got our finalizer".to_owned());
        }
        complaints
    }

    fn judge_kept(&self, service: &Value) -> Vec<String> {
        let events = events(self.world, service);
        let said = events.iter().any(|event| event.starts_with("Warning SyncLoadBalancerFailed"));
        if said { Vec::new() } else { vec![format!("no event says that it is refused: {events:#?}")] }
    }

    fn judge_released(&self, service: &Value) -> Vec<String> {
        let mut complaints = self.leftovers(service);
        if has_finalizer(service) {
            complaints.push("it still has our finalizer".to_owned());
        }
        complaints
    }

    fn judge_refused(&self, service: &Value, texts: &[String], by_azure: bool) -> Vec<String> {
        let mut complaints = if by_azure { Vec::new() } else { self.leftovers(service) };
        if !addresses(service).is_empty() {
            complaints.push("it has addresses".to_owned());
        }
        let events = events(self.world, service);
        let says = |event: &&String| {
            event.starts_with("Warning SyncLoadBalancerFailed")
                && texts.iter().all(|text| event.contains(text))
        };
        if !events.iter().any(|event| says(&event)) {
            complaints.push(format!("no event SyncLoadBalancerFailed says {texts:?}: {events:#?}"));
        }
        complaints
    }

    /// The resources of a Service that must not have any.
    fn leftovers(&self, service: &Value) -> Vec<String> {
        let mut complaints = Vec::new();
        let addresses = addresses(service);
        if !addresses.is_empty() {
            complaints.push(format!("it has the addresses {addresses:?}"));
        }
        let base = rule::base_name(service);
        for balancer in &self.balancers {
            for kind in ["frontendIPConfigurations", "loadBalancingRules", "probes"] {
                for part in rule::parts(balancer, kind) {
                    if part["name"].as_str().is_some_and(|name| name.starts_with(&base)) {
                        complaints.push(format!("load balancer {} has {}", balancer["name"], part["name"]));
                    }
                }
            }
        }
        for ip in &self.public_ips {
            if ip["name"].as_str().is_some_and(|name| name.contains(&base)) {
                complaints.push(format!("public IP {} was made for it", ip["name"]));
            }
        }
        complaints
    }

    fn judge_served(&self, service: &Value, served: &Served) -> Vec<String> {
        let mut complaints = Vec::new();
        let events = events(self.world, service);
        for wanted in &served.warnings {
            if !events.iter().any(|event| event.starts_with("Warning ") && event.contains(wanted)) {
                complaints.push(format!("no event says `{wanted}`: {events:#?}"));
            }
        }
        for event in events.iter().filter(|event| event.starts_with("Warning ")) {
            if !served.after_trouble && !served.warnings.iter().any(|wanted| event.contains(wanted)) {
                complaints.push(format!("a warning that nothing gives cause for: {event}"));
            }
        }
        if !has_finalizer(service) {
            complaints.push("it has no finalizer".to_owned());
        }
        let addresses = addresses(service);
        // They are in the order of the frontends, except that a recreated one comes last.
        let fit = if served.after_trouble { are_in_any_order } else { are };
        if !served.addresses.is_empty() && !fit(&addresses, &served.addresses) {
            complaints.push(format!("its addresses are {addresses:?}, not {:?}", served.addresses));
        }
        let base = rule::base_name(service);
        let mut rules = Vec::new();
        for balancer in &self.balancers {
            let of_it = rule::observed(service, balancer, &self.public_ips);
            let internal = balancer["name"].as_str().is_some_and(|name| name.ends_with("-internal"));
            if !of_it.is_empty() && internal != served.internal {
                complaints.push(format!("load balancer {} has rules of it", balancer["name"]));
            }
            for probe in orphans(balancer, &base) {
                complaints.push(format!("probe {probe} serves no rule"));
            }
            rules.extend(of_it);
        }
        let (found, wanted) = (lines(&rules), lines(&served.rules));
        if found != wanted {
            complaints.push(format!("its rules are\n{}\ninstead of\n{}", list(&found), list(&wanted)));
        }
        for (place, family) in served.families.iter().enumerate() {
            match addresses.iter().find(|address| is_of(**address, *family)) {
                Some(address) => complaints.extend(self.judge_packets(service, served, *family, *address)),
                None => complaints.push(format!("it has no {} address, number {place}", family.as_str())),
            }
        }
        if served.addresses.is_empty() && addresses.len() != served.families.len() {
            complaints.push(format!("it has the addresses {addresses:?}"));
        }
        if !served.public_ip.is_null() {
            let is_its_own = |ip: &&Value| {
                let has = ip["properties"]["ipAddress"].as_str().and_then(|text| text.parse().ok());
                has.is_some_and(|address: IpAddr| addresses.contains(&address))
            };
            let mine: Vec<&Value> = self.public_ips.iter().filter(is_its_own).collect();
            if !mine.iter().any(|ip| contains(ip, &served.public_ip)) {
                complaints.push(format!("its public IP does not hold {}: {mine:#?}", served.public_ip));
            }
        }
        complaints
    }

    fn judge_packets(&self, service: &Value, served: &Served, family: IpFamily, to: IpAddr) -> Vec<String> {
        let mut complaints = Vec::new();
        let from = &served.from[usize::from(family == IpFamily::V6)];
        let clients = from.packets(family, served.internal, &self.world.shape.virtual_network);
        let rules: Vec<&Rule> = served.rules.iter().filter(|rule| rule.family == family).collect();
        for rule in &rules {
            let (port, protocol) = match rule.protocol.as_str() {
                // Any port is suitable.
                "ALL" => (4711, Protocol::Udp),
                "UDP" => (rule.port, Protocol::Udp),
                _ => (rule.port, Protocol::Tcp),
            };
            let wanted = if rule.to_node_port { node_port(service, rule) } else { Some(port) };
            for client in &clients {
                let verdict = self.send(client.source.clone(), to, port, protocol);
                let arrived = verdict.hops.iter().find_map(|hop| match hop {
                    Hop::Arrived { port, .. } => Some(u64::from(*port)),
                    _ => None,
                });
                // Traffic through HA ports is not limited to the ports of access rules.
                if client.arrives && rule.protocol == "ALL" && !from.network {
                    continue;
                }
                if verdict.arrives != client.arrives {
                    let must = if client.arrives { "must arrive" } else { "must not arrive" };
                    complaints.push(format!("{must}: {}", verdict.sentence()));
                } else if client.arrives && arrived != wanted {
                    complaints.push(format!("must arrive at port {wanted:?}: {}", verdict.sentence()));
                }
            }
        }
        // A port that was not requested.
        let offered = |port: u64, protocol: &str| {
            rules
                .iter()
                .any(|rule| rule.protocol == "ALL" || (rule.port == port && rule.protocol == protocol))
        };
        for (port, protocol) in
            rules.iter().map(|rule| (rule.port, rule.protocol.as_str())).chain([(7, "TCP")])
        {
            let others = [(port, if protocol == "UDP" { "TCP" } else { "UDP" }), (port + 1, protocol)];
            for (port, protocol) in others {
                let sent = if protocol == "UDP" { Protocol::Udp } else { Protocol::Tcp };
                for client in
                    clients.iter().filter(|client| client.arrives && !offered(port, protocol)).take(1)
                {
                    let verdict = self.send(client.source.clone(), to, port, sent);
                    if verdict.arrives {
                        complaints.push(format!("this port was not requested: {}", verdict.sentence()));
                    }
                }
            }
        }
        complaints
    }

    fn send(
        &self,
        from: azure_simulator::packet::Source,
        to: IpAddr,
        port: u64,
        protocol: Protocol,
    ) -> azure_simulator::packet::Verdict {
        let packet = Packet::new(from, to, u16::try_from(port).unwrap_or_default(), protocol);
        self.network.trace(&self.world.answers, &packet)
    }
}

/// The addresses in a Service's status.
pub fn addresses(service: &Value) -> Vec<IpAddr> {
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array();
    let ips = ingress.into_iter().flatten().filter_map(|entry| entry["ip"].as_str());
    ips.filter_map(|ip| ip.parse().ok()).collect()
}

/// The events on this Service object, not on an earlier one of the same name, as `Type Reason: message`.
pub fn events(world: &World, service: &Value) -> Vec<String> {
    let namespace = service["metadata"]["namespace"].as_str().unwrap_or_default();
    let events = world.kubernetes.list_in("Event", namespace);
    let mine = events.iter().filter(|event| {
        event["involvedObject"]["uid"].as_str().is_some_and(|uid| service["metadata"]["uid"] == uid)
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    mine.map(|e| format!("{} {}: {}", text(&e["type"]), text(&e["reason"]), text(&e["message"]))).collect()
}

/// Whether a Service has the finalizer of load balancers.
pub fn has_finalizer(service: &Value) -> bool {
    service["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

/// A document with its resource group as a member, so that expectations may name it.
fn with_group(mut document: Value) -> Value {
    let id = document["id"].as_str().and_then(|id| id.parse::<ResourceId>().ok());
    document["resource group"] = id.as_ref().and_then(ResourceId::group_name).into();
    document
}

fn is_of(address: IpAddr, family: IpFamily) -> bool {
    address.is_ipv4() == (family == IpFamily::V4)
}

fn are(addresses: &[IpAddr], wanted: &[String]) -> bool {
    addresses.len() == wanted.len()
        && addresses.iter().zip(wanted).all(|(address, wanted)| fits(address, wanted))
}

fn fits(address: &IpAddr, wanted: &str) -> bool {
    wanted.parse() == Ok(*address) || wanted.parse::<IpNet>().is_ok_and(|range| range.contains(address))
}

fn are_in_any_order(addresses: &[IpAddr], wanted: &[String]) -> bool {
    let mut left = addresses.to_vec();
    // Single addresses before ranges.
    let mut wanted: Vec<&String> = wanted.iter().collect();
    wanted.sort_by_key(|wanted| wanted.parse::<IpAddr>().is_err());
    let mut take = |wanted: &str| {
        let found = left.iter().position(|address| fits(address, wanted));
        found.map(|at| left.remove(at)).is_some()
    };
    wanted.into_iter().all(|wanted| take(wanted)) && left.is_empty()
}

fn lines(rules: &[Rule]) -> Vec<String> {
    let mut lines: Vec<String> = rules.iter().map(ToString::to_string).collect();
    lines.sort();
    lines
}

fn list(lines: &[String]) -> String {
    if lines.is_empty() {
        return "  (none)".to_owned();
    }
    lines.iter().map(|line| format!("  - {line}")).collect::<Vec<_>>().join("\n")
}

fn node_port(service: &Value, rule: &Rule) -> Option<u64> {
    let ports = service["spec"]["ports"].as_array()?;
    let same =
        ports.iter().find(|port| port["port"] == rule.port && port["protocol"] == rule.protocol.as_str());
    same?["nodePort"].as_u64()
}

/// The probes of a Service that no rule refers to.
fn orphans(balancer: &Value, base: &str) -> Vec<String> {
    let rules = rule::parts(balancer, "loadBalancingRules");
    let used = |probe: &Value| {
        rules.iter().any(|rule| {
            let reference = rule["properties"]["probe"]["id"].as_str();
            reference.zip(probe["id"].as_str()).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
        })
    };
    let mine = rule::parts(balancer, "probes")
        .iter()
        .filter(|probe| probe["name"].as_str().is_some_and(|name| name.starts_with(base)) && !used(probe));
    mine.filter_map(|probe| probe["name"].as_str().map(str::to_owned)).collect()
}

/// Whether a document contains a pattern: members of objects, items of lists.
fn contains(document: &Value, pattern: &Value) -> bool {
    match (document, pattern) {
        (Value::Object(document), Value::Object(pattern)) => pattern.iter().all(|(name, wanted)| {
            document.get(name).map_or(wanted.is_null(), |found| contains(found, wanted))
        }),
        (Value::Array(document), Value::Array(pattern)) => {
            pattern.iter().all(|wanted| document.iter().any(|found| contains(found, wanted)))
        }
        (Value::String(document), Value::String(pattern)) => document.eq_ignore_ascii_case(pattern),
        _ => document == pattern,
    }
}
