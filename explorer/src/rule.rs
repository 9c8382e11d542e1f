//! Load-balancing rules in the notation of the corpus, and as in Azure.
//!
//! A line names a rule and then only what departs from the usual:
//!
//! ```text
//! TCP 80                                     floating IP, 4 minutes, TCP reset, probed by TCP at its node port
//! UDP 53                                     floating IP, 4 minutes, no probe
//! TCP 443 to node port, idle 30, no reset, by source
//! TCP 80, probe http /ready on node port every 10s x3
//! IPv6 TCP 80 to node port, no probe         one family alone; without it every family has the rule
//! ALL 0, probe tcp on node port of 80        high-availability ports
//! ```

use std::fmt;

use serde_json::Value;

/// An address family, as Services name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// The name in Services and public IPs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// The family of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.as_str() == word)
    }
}

/// The port that a probe uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbePort {
    /// The node port of this port of the Service.
    NodePortOf(u64),
    /// The health check node port of a Service with policy Local.
    HealthCheck,
    /// This very port.
    Number(u64),
}

/// A health probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// `tcp`, `http` or `https`.
    pub protocol: String,
    /// The path of HTTP requests.
    pub path: Option<String>,
    /// The port.
    pub port: ProbePort,
    /// The interval, in seconds.
    pub interval: u64,
    /// The number of answers that change a member's state.
    pub count: u64,
}

impl Probe {
    /// The default probe of a TCP port.
    pub fn usual(port: u64) -> Self {
        let port = ProbePort::NodePortOf(port);
        Self { protocol: "tcp".to_owned(), path: None, port, interval: 5, count: 2 }
    }

    /// kube-proxy's answer whether a node has endpoints of the Service.
    pub fn health_check() -> Self {
        let (protocol, path) = ("http".to_owned(), Some("/healthz".to_owned()));
        Self { protocol, path, port: ProbePort::HealthCheck, interval: 5, count: 2 }
    }
}

/// A load-balancing rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The family of its frontend.
    pub family: IpFamily,
    /// `TCP`, `UDP` or `ALL`.
    pub protocol: String,
    /// The port that clients use; 0 for all.
    pub port: u64,
    /// Whether it uses the node port instead of the same port.
    pub to_node_port: bool,
    /// Whether nodes see the frontend's address.
    pub floating: bool,
    /// Minutes until an idle flow is dropped.
    pub idle: u64,
    /// Whether both ends are reset then.
    pub reset: bool,
    /// Whether a client always reaches the same node.
    pub by_source: bool,
    /// The probe of nodes.
    pub probe: Option<Probe>,
}

impl Rule {
    /// The default rule of a port.
    pub fn usual(family: IpFamily, protocol: &str, port: u64) -> Self {
        Self {
            family,
            protocol: protocol.to_owned(),
            port,
            to_node_port: false,
            floating: true,
            idle: 4,
            reset: protocol != "UDP",
            by_source: false,
            probe: (protocol == "TCP").then(|| Probe::usual(port)),
        }
    }

    /// Parses a line; without a family it stands for a rule of each of `families`.
    ///
    /// # Errors
    /// The part that cannot be parsed.
    pub fn parse(line: &str, families: &[IpFamily]) -> Result<Vec<Self>, String> {
        let mut parts = line.split(", ");
        let mut words = parts.next().unwrap_or_default().split_whitespace().peekable();
        let family = words.peek().and_then(|word| IpFamily::parse(word));
        if family.is_some() {
            words.next();
        }
        let bad = |part: &str| format!("`{part}` in the rule `{line}` cannot be understood");
        let protocol = words.next().filter(|word| ["TCP", "UDP", "ALL"].contains(word));
        let protocol = protocol.ok_or_else(|| bad("the protocol"))?;
        let port = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| bad("the port"))?;
        let mut rule = Self::usual(IpFamily::V4, protocol, port);
        match words.collect::<Vec<_>>().join(" ").as_str() {
            "" => {}
            "to node port" => (rule.to_node_port, rule.floating) = (true, false),
            other => return Err(bad(other)),
        }
        for part in parts {
            match part.split_once(' ').unwrap_or((part, "")) {
                ("idle", minutes) => rule.idle = minutes.parse().map_err(|_| bad(part))?,
                ("no", "reset") => rule.reset = false,
                ("no", "probe") => rule.probe = None,
                ("not", "floating") => rule.floating = false,
                ("by", "source") => rule.by_source = true,
                ("probe", probe) => rule.probe = Some(parse_probe(probe, port).ok_or_else(|| bad(part))?),
                _ => return Err(bad(part)),
            }
        }
        let families = family.map_or_else(|| families.to_vec(), |family| vec![family]);
        Ok(families.into_iter().map(|family| Self { family, ..rule.clone() }).collect())
    }
}

/// Parses `http /path on node port every 10s x3`.
fn parse_probe(text: &str, own: u64) -> Option<Probe> {
    let (what, place) = text.split_once(" on ")?;
    let (protocol, path) = what.split_once(' ').unwrap_or((what, ""));
    let mut probe = Probe {
        protocol: protocol.to_owned(),
        path: (!path.is_empty()).then(|| path.to_owned()),
        ..Probe::usual(own)
    };
    let mut place: Vec<&str> = place.split_whitespace().collect();
    if let Some(count) = place.last().and_then(|word| word.strip_prefix('x')) {
        probe.count = count.parse().ok()?;
        place.pop();
    }
    if let [rest @ .., "every", interval] = place.as_slice() {
        probe.interval = interval.strip_suffix('s')?.parse().ok()?;
        place = rest.to_vec();
    }
    probe.port = match place.as_slice() {
        ["node", "port"] => ProbePort::NodePortOf(own),
        ["node", "port", "of", port] => ProbePort::NodePortOf(port.parse().ok()?),
        ["health", "check", "port"] => ProbePort::HealthCheck,
        ["port", port] => ProbePort::Number(port.parse().ok()?),
        _ => return None,
    };
    Some(probe)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::usual(self.family, &self.protocol, self.port);
        write!(f, "{} {} {}", self.family.as_str(), self.protocol, self.port)?;
        if self.to_node_port {
            f.write_str(" to node port")?;
        }
        if self.floating == self.to_node_port {
            f.write_str(if self.floating { ", floating" } else { ", not floating" })?;
        }
        if self.idle != usual.idle {
            write!(f, ", idle {}", self.idle)?;
        }
        if self.reset != usual.reset {
            f.write_str(if self.reset { ", reset" } else { ", no reset" })?;
        }
        if self.by_source {
            f.write_str(", by source")?;
        }
        match &self.probe {
            probe if *probe == usual.probe => Ok(()),
            None => f.write_str(", no probe"),
            Some(probe) => {
                write!(f, ", probe {}", probe.protocol)?;
                if let Some(path) = &probe.path {
                    write!(f, " {path}")?;
                }
                match probe.port {
                    ProbePort::NodePortOf(port) if port == self.port => f.write_str(" on node port")?,
                    ProbePort::NodePortOf(port) => write!(f, " on node port of {port}")?,
                    ProbePort::HealthCheck => f.write_str(" on health check port")?,
                    ProbePort::Number(port) => write!(f, " on port {port}")?,
                }
                if probe.interval != 5 {
                    write!(f, " every {}s", probe.interval)?;
                }
                if probe.count != 2 {
                    write!(f, " x{}", probe.count)?;
                }
                Ok(())
            }
        }
    }
}

/// The prefix of the names of everything that a Service owns (LB-001).
pub fn base_name(service: &Value) -> String {
    let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
    let mut name = format!("a{}", uid.replace('-', ""));
    name.truncate(32);
    name
}

/// The parts of one kind of a load balancer.
pub fn parts<'a>(balancer: &'a Value, kind: &str) -> &'a [Value] {
    balancer["properties"][kind].as_array().map_or(&[], Vec::as_slice)
}

fn referred<'a>(balancer: &'a Value, kind: &str, reference: &Value) -> Option<&'a Value> {
    let id = reference["id"].as_str()?;
    parts(balancer, kind).iter().find(|part| part["id"].as_str().is_some_and(|i| i.eq_ignore_ascii_case(id)))
}

fn family_of(frontend: &Value, public_ips: &[Value]) -> IpFamily {
    let properties = &frontend["properties"];
    let version = match properties["publicIPAddress"]["id"].as_str() {
        Some(id) => {
            let same = |ip: &&Value| ip["id"].as_str().is_some_and(|other| other.eq_ignore_ascii_case(id));
            public_ips.iter().find(same).map(|ip| &ip["properties"]["publicIPAddressVersion"])
        }
        None => Some(&properties["privateIPAddressVersion"]),
    };
    if version.is_some_and(|version| version == "IPv6") { IpFamily::V6 } else { IpFamily::V4 }
}

/// The rules that a load balancer has for a Service, with the targets.
pub fn observed(service: &Value, balancer: &Value, public_ips: &[Value]) -> Vec<Rule> {
    let base = base_name(service);
    let mut rules = Vec::new();
    for rule in parts(balancer, "loadBalancingRules") {
        if !rule["name"].as_str().is_some_and(|name| name.starts_with(&base)) {
            continue;
        }
        let properties = &rule["properties"];
        let number = |member: &str| properties[member].as_u64().unwrap_or_default();
        let flag = |member: &str| properties[member].as_bool().unwrap_or_default();
        let frontend = referred(balancer, "frontendIPConfigurations", &properties["frontendIPConfiguration"]);
        let probe = referred(balancer, "probes", &properties["probe"]);
        rules.push(Rule {
            family: frontend.map_or(IpFamily::V4, |frontend| family_of(frontend, public_ips)),
            protocol: properties["protocol"].as_str().unwrap_or_default().to_ascii_uppercase(),
            port: number("frontendPort"),
            to_node_port: number("backendPort") != number("frontendPort"),
            floating: flag("enableFloatingIP"),
            idle: number("idleTimeoutInMinutes"),
            reset: flag("enableTcpReset"),
            by_source: properties["loadDistribution"] == "SourceIP",
            probe: probe.map(|probe| observed_probe(service, number("frontendPort"), &probe["properties"])),
        });
    }
    rules.sort_by_key(ToString::to_string);
    rules
}

fn observed_probe(service: &Value, frontend_port: u64, probe: &Value) -> Probe {
    let asked = probe["port"].as_u64().unwrap_or_default();
    let empty = Vec::new();
    let ports = service["spec"]["ports"].as_array().unwrap_or(&empty);
    let own = ports.iter().filter(|port| port["nodePort"] == asked).filter_map(|port| port["port"].as_u64());
    let own: Vec<u64> = own.collect();
    let port = if service["spec"]["healthCheckNodePort"] == asked {
        ProbePort::HealthCheck
    } else if own.contains(&frontend_port) {
        ProbePort::NodePortOf(frontend_port)
    } else {
        own.first().map_or(ProbePort::Number(asked), |port| ProbePort::NodePortOf(*port))
    };
    Probe {
        protocol: probe["protocol"].as_str().unwrap_or_default().to_ascii_lowercase(),
        path: probe["requestPath"].as_str().filter(|path| !path.is_empty()).map(str::to_owned),
        port,
        interval: probe["intervalInSeconds"].as_u64().unwrap_or_default(),
        count: probe["probeThreshold"].as_u64().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_again_what_it_was_read_from() {
        for line in [
            "IPv4 TCP 80",
            "IPv6 UDP 53",
            "IPv4 TCP 443 to node port, idle 30, no reset, by source",
            "IPv4 TCP 80, probe http /ready on node port every 10s x3",
            "IPv4 TCP 80, probe tcp on node port of 443",
            "IPv4 UDP 53, probe http /healthz on health check port",
            "IPv4 TCP 80, no probe",
            "IPv6 ALL 0, not floating, probe tcp on port 10256",
        ] {
            let rules = Rule::parse(line, &[IpFamily::V4]).unwrap();
            assert_eq!(rules.iter().map(ToString::to_string).collect::<Vec<_>>(), [line]);
        }
        assert_eq!(Rule::parse("TCP 80", &[IpFamily::V4, IpFamily::V6]).unwrap().len(), 2);
        assert!(Rule::parse("TCP 80, probe http", &[IpFamily::V4]).unwrap_err().contains("`probe http`"));
    }
}
