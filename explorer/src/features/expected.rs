//! The expected result for a row.

use serde_json::{Value, json};

use super::factors::{FACTORS, is_internal, is_mistake, value};
use super::manifest::{ADDITIONAL, ALLOWED, NETWORK, NETWORK_V6, PATH, SINGLE, ports, private_address};
use crate::clients::Clients;
use crate::expectation::{Expectation, Served, Writes};
use crate::rule::{IpFamily, Probe, ProbePort, Rule};

/// The expected result for Service `number` with the features of a row.
pub fn expectation(row: &[usize], number: usize, key: &str) -> Expectation {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let (field, annotation) = (is("source-ranges", "none"), value(row, "allowed-ranges"));
    let contradicts = !field && ["networks", "core-annotation"].contains(&annotation);
    let refused = |text: &str| Expectation::Refused { texts: vec![text.to_owned()], by_azure: false };
    let families = families(row);
    let rules = rules(row, &families);
    // Azure only offers IPv4, and on external frontends only if packets arrive at the nodes' own addresses.
    let floats_outside = !is_internal(row) && is("floating-ip", "on");
    let unlinkable = !is("private-link-service", "no") && (floats_outside || families == [IpFamily::V6]);
    if let Some(factor) = (0..row.len()).find(|factor| is_mistake(*factor, row[*factor])) {
        let text = match FACTORS[factor].name {
            "idle-timeout" => "azure-load-balancer-tcp-idle-timeout",
            "public-ip" | "subnet" => "nowhere",
            _ => "azure-additional-public-ips",
        };
        // If there are several reasons, any may be named.
        return refused(if contradicts || rules.is_none() || unlinkable { "" } else { text });
    }
    if contradicts {
        return refused(if rules.is_none() || unlinkable { "" } else { "cannot set both" });
    }
    let Some(mut rules) = rules else { return refused(if unlinkable { "" } else { "node port" }) };
    if unlinkable {
        return refused("azure-pls-create");
    }
    rules.sort_by_key(ToString::to_string);
    let internal = is_internal(row);
    let mut warnings = hints(row, &families);
    if annotation == "invalid" {
        warnings.push("InvalidAllowedIPRanges".to_owned());
    }
    if !field && !is("service-tags", "none") {
        warnings.push("ConflictConfiguration".to_owned());
    }
    Expectation::Served(Box::new(Served {
        internal,
        rules,
        from: clients(row),
        addresses: addresses(row, number, &families),
        warnings,
        after_trouble: false,
        public_ip: public_ip(row, number, key, &families),
        writes: Writes::default(),
        families,
    }))
}

fn families(row: &[usize]) -> Vec<IpFamily> {
    match value(row, "families") {
        "IPv4" => vec![IpFamily::V4],
        "IPv6" => vec![IpFamily::V6],
        _ => vec![IpFamily::V4, IpFamily::V6],
    }
}

/// The warnings about annotations that have no effect.
fn hints(row: &[usize], families: &[IpFamily]) -> Vec<String> {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let of = |reason: &str, key: &str| format!("{reason}: annotation service.beta.kubernetes.io/{key}");
    let mut hints = Vec::new();
    if is("probe-protocol", "gopher") {
        hints.push(of("AnnotationValueIgnored", "azure-load-balancer-health-probe-protocol: `gopher`"));
    }
    if is("first-probe-protocol", "gopher") {
        let key = format!("port_{}_health-probe_protocol: `gopher`", ports(row)[0].2);
        hints.push(of("AnnotationValueIgnored", &key));
    }
    for (factor, key) in [
        ("mode", "azure-load-balancer-mode"),
        ("balancer-names", "azure-load-balancer-configurations"),
        ("shared-security-rule", "azure-shared-securityrule"),
    ] {
        if !is(factor, "none") {
            hints.push(of("AnnotationIgnored", key));
        }
    }
    let all_ports = is_internal(row) && is("high-availability-ports", "yes");
    if all_ports && !is("floating-ip", "on") && families.contains(&IpFamily::V4) {
        hints.push(of("AnnotationIgnored", "azure-disable-load-balancer-floating-ip"));
    }
    let in_vain = |family: &IpFamily| !is_internal(row) && is_of_prefix(row, *family, families);
    if value(row, "public-ip").starts_with("address") && families.iter().any(in_vain) {
        hints.push("AnnotationIgnored: the requested address".to_owned());
    }
    hints
}

/// The allowed clients. The families are separate, because ranges of one family have no effect on the other.
fn clients(row: &[usize]) -> [Clients; 2] {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let internal = is_internal(row);
    let mut ranges: Vec<&str> = match value(row, "source-ranges") {
        "network" => vec![NETWORK],
        "single-address" => vec![SINGLE],
        "everybody" => vec!["0.0.0.0/0"],
        "both-families" => vec![NETWORK, NETWORK_V6],
        "overlapping" => vec![NETWORK],
        _ => vec![],
    };
    match value(row, "allowed-ranges") {
        "networks" => ranges.extend(ALLOWED),
        "core-annotation" => ranges.push(ALLOWED[0]),
        _ => {}
    }
    let tags: Vec<&str> = match value(row, "service-tags") {
        "one" => vec!["AzureFrontDoor.Backend"],
        "two-in-other-case" => vec!["AzureFrontDoor.Backend", "AzureKeyVault.WestEurope"],
        _ => vec![],
    };
    let invalid = is("allowed-ranges", "invalid");
    let rules = is("security-rules", "yes");
    let denies = rules && (invalid || (is("deny-all", "yes") && !ranges.is_empty()));
    [false, true].map(|v6| {
        let mut clients = Clients { network: internal && !denies, ..Clients::default() };
        if !rules {
            return clients;
        }
        let mine: Vec<&str> = ranges.iter().copied().filter(|range| range.contains(':') == v6).collect();
        let everybody = ranges.iter().any(|range| range.ends_with("/0"));
        let unrestricted = ranges.is_empty() && !internal;
        clients.anyone = mine.iter().any(|range| range.ends_with("/0"))
            || (tags.is_empty() && mine.is_empty() && !invalid && (unrestricted || everybody));
        clients.ranges = mine.iter().filter_map(|range| range.parse().ok()).collect();
        clients.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        clients
    })
}

/// The rules; `None` if a required node port is missing.
fn rules(row: &[usize], families: &[IpFamily]) -> Option<Vec<Rule>> {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let (internal, node_ports) = (is_internal(row), !is("node-ports", "no"));
    let all_ports = internal && is("high-availability-ports", "yes");
    let first = ports(row)[0].2;
    let mut rules = Vec::new();
    for family in families {
        let common = |rule: &mut Rule| {
            rule.idle = value(row, "idle-timeout").parse().unwrap_or(4);
            rule.reset = rule.protocol != "UDP" && is("tcp-reset", "on");
            rule.by_source = is("affinity", "ClientIP");
        };
        if all_ports {
            let mut rule = Rule::usual(*family, "ALL", 0);
            common(&mut rule);
            rule.floating = *family == IpFamily::V4;
            // The first port for which a probe is possible is used.
            let own = ports(row).into_iter().find_map(|(_, protocol, port)| {
                let wanted = protocol == "TCP" && !(port == first && is("first-port", "no-probe"));
                wanted.then(|| own_probe(row, port, first))?.filter(|probe| can_be_asked(probe, node_ports))
            });
            rule.probe = if is("policy", "Local") { Some(local_probe(row)) } else { own };
            rules.push(rule);
            continue;
        }
        for (_, protocol, port) in ports(row) {
            if port == first && is("first-port", "no-rule") {
                continue;
            }
            let mut rule = Rule::usual(*family, protocol, port);
            common(&mut rule);
            let floats = is("floating-ip", "on") && !(internal && *family == IpFamily::V6);
            (rule.floating, rule.to_node_port) = (floats, !floats);
            let names_probe_port = port == first && !is("probe-port", "none");
            rule.probe = if port == first && is("first-port", "no-probe") {
                None
            } else if protocol == "UDP" {
                is("policy", "Local").then(|| local_probe(row))
            } else if is("policy", "Local") && !names_probe_port {
                Some(local_probe(row))
            } else {
                own_probe(row, port, first)
            };
            let probe_fails = rule.probe.as_ref().is_some_and(|probe| !can_be_asked(probe, node_ports));
            if !node_ports && (rule.to_node_port || probe_fails) {
                return None;
            }
            rules.push(rule);
        }
    }
    Some(rules)
}

fn can_be_asked(probe: &Probe, node_ports: bool) -> bool {
    node_ports || !matches!(probe.port, ProbePort::NodePortOf(_))
}

/// kube-proxy's answer. Annotations for the first port do not apply to the probed port.
fn local_probe(row: &[usize]) -> Probe {
    if value(row, "health-check-port") == "chosen-and-timed" {
        return Probe { interval: 9, count: 5, ..Probe::health_check() };
    }
    let (interval, count) = timing_of_all(row);
    Probe { interval, count, ..Probe::health_check() }
}

/// The default interval and count for ports.
fn timing_of_all(row: &[usize]) -> (u64, u64) {
    match value(row, "probe-timing") {
        "10s-x3" => (10, 2),
        "x4-of-all" => (5, 4),
        _ => (5, 2),
    }
}

/// Protocol and path of the first port's own probe.
pub(super) fn first_probe(row: &[usize]) -> (&'static str, &'static str) {
    let protocol = match value(row, "first-probe-protocol") {
        "none" => probe_of_all(row).0,
        "HTTP" => "http",
        _ => "tcp",
    };
    let path = match value(row, "first-probe-path") {
        "none" => probe_of_all(row).1,
        path => path,
    };
    (protocol, path)
}

/// The default protocol and path for ports.
fn probe_of_all(row: &[usize]) -> (&'static str, &'static str) {
    let word = if value(row, "app-protocol") == "http" { "http" } else { value(row, "probe-protocol") };
    let protocol = match word {
        "http" => "http",
        "HTTPS" => "https",
        _ => "tcp",
    };
    (protocol, if value(row, "probe-path") == PATH { PATH } else { "/" })
}

fn own_probe(row: &[usize], port: u64, first: u64) -> Option<Probe> {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let is_first = port == first;
    let (protocol, path) = if is_first { first_probe(row) } else { probe_of_all(row) };
    let (interval, count) = timing_of_all(row);
    Some(Probe {
        protocol: protocol.to_owned(),
        path: (protocol != "tcp").then(|| path.to_owned()),
        port: if is_first && is("probe-port", "10256") {
            ProbePort::Number(10256)
        } else {
            ProbePort::NodePortOf(port)
        },
        interval: if is_first && is("first-probe-interval", "7") { 7 } else { interval },
        count: if is_first && is("probe-timing", "10s-x3") { 3 } else { count },
    })
}

/// Whether an annotation in this form counts for a family: the plain key is IPv4's, and also IPv6's if that is the only
/// family.
fn counts(word: &str, family: IpFamily, families: &[IpFamily]) -> bool {
    match word.rsplit_once("by-") {
        Some((_, "plain-key")) => family == IpFamily::V4 || families.len() == 1,
        Some(_) => family == IpFamily::V6,
        None => true,
    }
}

/// Whether a family's new public IPs should come from a prefix.
fn is_of_prefix(row: &[usize], family: IpFamily, families: &[IpFamily]) -> bool {
    let prefix = value(row, "prefix");
    prefix != "no" && counts(prefix, family, families)
}

/// Whether a family names an existing public IP, which internal load balancers do not use.
fn is_named(row: &[usize], family: IpFamily, families: &[IpFamily]) -> bool {
    let public_ip = value(row, "public-ip");
    !is_internal(row) && public_ip.starts_with("named") && counts(public_ip, family, families)
}

/// Whether a family gets the address that it requests: for external Services, a prefix for new ones wins.
fn asks_for_address(row: &[usize], family: IpFamily, families: &[IpFamily]) -> bool {
    let from_prefix = !is_internal(row) && is_of_prefix(row, family, families);
    value(row, "public-ip").starts_with("address") && !from_prefix
}

/// Whether a Service requests certain addresses or public IPs of one of its families, whatever the result.
pub(crate) fn is_pinned(row: &[usize]) -> bool {
    let families = families(row);
    let public_ip = value(row, "public-ip");
    public_ip.starts_with("address")
        || (public_ip.starts_with("named") && families.iter().any(|one| counts(public_ip, *one, &families)))
}

/// The same, for addresses that can exist on load balancers of its flavor: the name of a public IP has no effect on
/// internal ones.
pub(crate) fn is_pinned_where_it_arrives(row: &[usize]) -> bool {
    is_pinned(row) && (!is_internal(row) || value(row, "public-ip").starts_with("address"))
}

fn addresses(row: &[usize], number: usize, families: &[IpFamily]) -> Vec<String> {
    let internal = is_internal(row);
    let mut addresses: Vec<String> = families
        .iter()
        .map(|family| {
            let v6 = *family == IpFamily::V6;
            let asks = asks_for_address(row, *family, families) || is_named(row, *family, families);
            let any = match (v6, internal, value(row, "subnet")) {
                (false, true, "second") => "10.241.0.0/16",
                (false, true, _) => "10.240.0.0/16",
                (true, true, "second") => "fd00:10:240:1::/64",
                (true, true, _) => "fd00:10:240::/64",
                (false, false, _) => "0.0.0.0/0",
                (true, false, _) => "::/0",
            };
            match (asks, internal, v6) {
                (false, ..) => any.to_owned(),
                (true, true, _) => private_address(row, number, v6),
                (true, false, false) => format!("<address of own-{number}-kept>"),
                (true, false, true) => format!("<address of own-six-{number}-kept>"),
            }
        })
        .collect();
    if value(row, "additional-addresses") == "one" {
        addresses.push(ADDITIONAL.to_owned());
    }
    addresses
}

/// Members that the public IP must contain if it was created for the Service, and must not contain if it existed
/// before.
fn public_ip(row: &[usize], number: usize, key: &str, families: &[IpFamily]) -> Value {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    if is_internal(row) {
        return Value::Null;
    }
    let group = if is("resource-group", "other") { "other" } else { "cluster" };
    let is_new =
        |family: &&IpFamily| !is_named(row, **family, families) && !asks_for_address(row, **family, families);
    let Some(new) = families.iter().find(is_new) else {
        return json!({"resource group": group, "tags": {"owner": "somebody", "k8s-azure-service": null, "team": null}});
    };
    let mut ip = json!({"resource group": group, "tags": {"k8s-azure-service": key}, "properties": {}});
    if is("pip-tags", "some") {
        ip["tags"]["team"] = "web".into();
        ip["tags"]["unit"] = "7".into();
    }
    if is("ip-tags", "some") {
        ip["properties"]["ipTags"] = json!([{"ipTagType": "FirstPartyUsage", "tag": "/Sql"}]);
    }
    if is("dns-label", "some") {
        ip["tags"]["k8s-azure-dns-label-service"] = key.into();
        ip["properties"]["dnsSettings"] = json!({"domainNameLabel": format!("contoso-{number}")});
    }
    ip["properties"]["publicIPAddressVersion"] = new.as_str().into();
    if is_of_prefix(row, *new, families) {
        let which = if *new == IpFamily::V6 { "six" } else { "four" };
        ip["properties"]["publicIPPrefix"] = json!({"id": format!("<id of prefix-{number}-{which}>")});
    }
    ip
}
