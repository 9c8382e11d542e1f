//! Health probes: which ones a Service needs, and their documents.

use k8s::{Service, ServicePort};

use super::annotations::Annotations;
use crate::model::annotation_keys::{self as keys, full_key, port_key};
use crate::model::limits::MAX_PROBE_SECONDS;
use crate::outcome::Refusal;

/// The node port of a port, for a feature that requires one.
pub(crate) fn node_port(port: &ServicePort, needed_by: &'static str) -> Result<i32, Refusal> {
    if port.node_port > 0 {
        return Ok(port.node_port);
    }
    Err(Refusal::NoNodePort { port: port.port, needed_by })
}

/// The path that kube-proxy answers on the health check node port.
const LOCAL_PATH: &str = "/healthz";

/// The default interval, in seconds.
const DEFAULT_INTERVAL: i32 = 5;

/// The default number of consecutive answers that change a member's state.
const DEFAULT_THRESHOLD: i32 = 2;

/// Azure's minimum interval, in seconds.
const MIN_INTERVAL: i32 = 5;

/// Azure's minimum threshold.
const MIN_THRESHOLD: i32 = 2;

/// A probe without its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSpec {
    /// `Tcp`, `Http` or `Https`.
    pub protocol: &'static str,
    /// The port that is probed on each node.
    pub port: i32,
    /// The path that `Http` and `Https` request.
    pub path: Option<String>,
    /// The interval, in seconds.
    pub interval: i32,
    /// The number of consecutive answers that change a member's state.
    pub threshold: i32,
}

/// The probe for a node as a whole, not for one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeProbe {
    /// No probe.
    None,
    /// kube-proxy's answer whether the node has endpoints of this Service.
    Local(ProbeSpec),
    /// The one probe of all Services with traffic policy Cluster.
    Shared(ProbeSpec),
}

/// How the health of one port is determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PortProbe {
    /// Not probed.
    None,
    /// By the probe of the node.
    Node,
    /// By a probe of its own.
    Own(ProbeSpec),
}

/// The interval and threshold of the probe of `port`: from the port's own keys, then the Service's, then the defaults.
fn timing(annotations: Annotations<'_>, port: i32) -> Result<(i32, i32), Refusal> {
    let read = |own: &str, general: &str, what: &'static str, minimum: i32| {
        let own = annotations.at_least(&port_key(port, own), what, minimum)?;
        own.map_or_else(|| annotations.at_least(general, what, minimum), |own| Ok(Some(own)))
    };
    let interval = read(keys::PORT_PROBE_INTERVAL, keys::PROBE_INTERVAL, "interval", MIN_INTERVAL)?
        .unwrap_or(DEFAULT_INTERVAL);
    let threshold = read(keys::PORT_PROBE_COUNT, keys::PROBE_COUNT, "num-of-probe", MIN_THRESHOLD)?
        .unwrap_or(DEFAULT_THRESHOLD);
    if i64::from(interval) * i64::from(threshold) >= MAX_PROBE_SECONDS {
        return Err(Refusal::ProbeTooSlow { port, interval, threshold });
    }
    Ok((interval, threshold))
}

/// The probe of kube-proxy's health check node port.
pub(crate) fn local(service: &Service, port: i32) -> Result<ProbeSpec, Refusal> {
    let (interval, threshold) = timing(Annotations(service), port)?;
    Ok(ProbeSpec { protocol: "Http", port, path: Some(LOCAL_PATH.to_owned()), interval, threshold })
}

/// The shared probe.
pub(crate) fn shared(port: u16, path: &str) -> ProbeSpec {
    ProbeSpec {
        protocol: "Http",
        port: i32::from(port),
        path: Some(path.to_owned()),
        interval: DEFAULT_INTERVAL,
        threshold: DEFAULT_THRESHOLD,
    }
}

impl ProbeSpec {
    /// Replaces HTTPS by TCP: load balancers of SKU Basic do not support HTTPS probes.
    pub(crate) fn without_tls(&mut self) {
        if self.protocol == "Https" {
            self.protocol = "Tcp";
            self.path = None;
        }
    }
}

/// Whether a port disables its probe.
pub(crate) fn is_disabled(service: &Service, port: i32) -> bool {
    Annotations(service).flag(&port_key(port, keys::NO_PROBE_RULE))
}

/// The key by which a port chooses the port of its probe.
fn probe_port_key(port: i32) -> String {
    port_key(port, keys::PORT_PROBE_PORT)
}

/// Whether a port chooses the port of its probe.
pub(crate) fn has_own_port(service: &Service, port: i32) -> bool {
    Annotations(service).get(&probe_port_key(port)).is_some()
}

/// The probe of one TCP port.
pub(crate) fn own(service: &Service, port: &ServicePort) -> Result<ProbeSpec, Refusal> {
    let annotations = Annotations(service);
    let (interval, threshold) = timing(annotations, port.port)?;
    let word = annotations
        .get(&port_key(port.port, keys::PORT_PROBE_PROTOCOL))
        .or(port.app_protocol.as_deref())
        .or_else(|| annotations.get(keys::PROBE_PROTOCOL))
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let protocol = match word.as_str() {
        "http" => "Http",
        "https" => "Https",
        _ => "Tcp",
    };
    let path = (protocol != "Tcp").then(|| {
        annotations
            .get(&port_key(port.port, keys::PORT_PROBE_PATH))
            .or_else(|| annotations.get(keys::PROBE_PATH))
            .unwrap_or("/")
            .to_owned()
    });
    Ok(ProbeSpec { protocol, port: asked_port(service, port)?, path, interval, threshold })
}

fn asked_port(service: &Service, port: &ServicePort) -> Result<i32, Refusal> {
    let key = probe_port_key(port.port);
    let node_port = |of: &ServicePort| node_port(of, "the health probe");
    let Some(value) = Annotations(service).get(&key) else { return node_port(port) };
    let value = value.trim();
    let ports = &service.spec.ports;
    if let Some(named) = ports.iter().find(|p| !p.name.is_empty() && p.name.eq_ignore_ascii_case(value)) {
        return node_port(named);
    }
    let Ok(number) = value.parse::<i64>() else {
        return Err(Refusal::ProbePortNotFound { key: full_key(&key), value: value.to_owned() });
    };
    match (ports.iter().find(|p| i64::from(p.port) == number), u16::try_from(number)) {
        (Some(same), _) => node_port(same),
        (None, Ok(asked @ 1..)) => Ok(i32::from(asked)),
        _ => Err(Refusal::ProbePortOutOfRange { key: full_key(&key), value: number }),
    }
}
