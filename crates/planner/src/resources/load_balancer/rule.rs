//! Load-balancing rules: which ones a Service needs, and their documents.

use azure_types::{LoadBalancingRule, LoadBalancingRuleProperties, ResourceId};

use crate::model::names::SHARED_PROBE;
use crate::model::{Cluster, Family};
use crate::outcome::{Change, Differences};
use crate::service::{NodeProbe, PortProbe, ProbeSpec, ServiceIntent, Transport};

/// A rule without the IDs of the resources that it connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSpec {
    /// The rule's name.
    pub name: String,
    /// `Tcp`, `Udp` or `All`.
    pub protocol: &'static str,
    /// The port that clients use; 0 with protocol `All` for all ports.
    pub frontend_port: i32,
    /// The port on the node.
    pub backend_port: i32,
    /// Whether the node sees the frontend's address as destination.
    pub floating_ip: bool,
    /// Whether both ends get a TCP reset at the idle timeout; absent if the protocol does not support it.
    pub tcp_reset: Option<bool>,
    /// Minutes until an idle flow is dropped.
    pub idle_timeout: i32,
    /// `Default` or `SourceIP`.
    pub distribution: &'static str,
    /// Whether nodes may not use the frontend for outgoing flows.
    pub disable_outbound_snat: bool,
    /// The name of the probe, if any.
    pub probe: Option<String>,
}

/// The rules and probes that one family of a Service needs on its load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DesiredRules {
    pub rules: Vec<RuleSpec>,
    pub probes: Vec<(String, ProbeSpec)>,
}

/// The rules and probes of one family.
pub(crate) fn desired(cluster: &Cluster, intent: &ServiceIntent, family: Family) -> DesiredRules {
    let naming = intent.naming();
    let mut desired = DesiredRules::default();
    let node_probe = match &intent.node_probe {
        NodeProbe::None => None,
        NodeProbe::Local(spec) => Some((naming.rule("TCP", spec.port, family), spec)),
        NodeProbe::Shared(spec) => Some((SHARED_PROBE.to_owned(), spec)),
    };
    let mut add_probe = |name: &str, spec: &ProbeSpec| {
        if !desired.probes.iter().any(|(present, _)| present == name) {
            desired.probes.push((name.to_owned(), spec.clone()));
        }
    };
    let arrival = intent.arrival(family);
    let base = |name: String| RuleSpec {
        name,
        protocol: "All",
        frontend_port: 0,
        backend_port: 0,
        floating_ip: arrival.is_floating(),
        tcp_reset: Some(intent.tcp_reset),
        idle_timeout: intent.idle_timeout,
        distribution: if intent.client_affinity { "SourceIP" } else { "Default" },
        disable_outbound_snat: cluster.config.disable_outbound_snat,
        probe: None,
    };

    if intent.ha_ports {
        let Some(first) = intent.ports.first() else { return desired };
        let mut rule = base(naming.rule(first.protocol.as_str(), first.port, family));
        let own = intent.ports.iter().find_map(|port| match &port.probe {
            PortProbe::Own(spec) => Some((rule.name.clone(), spec)),
            PortProbe::None | PortProbe::Node => None,
        });
        if let Some((name, spec)) = node_probe.or(own) {
            add_probe(&name, spec);
            rule.probe = Some(name);
        }
        desired.rules.push(rule);
        return desired;
    }

    for port in intent.ports.iter().filter(|port| port.has_rule) {
        let name = naming.rule(port.protocol.as_str(), port.port, family);
        let probe = match &port.probe {
            PortProbe::None => None,
            PortProbe::Node => node_probe.as_ref().map(|(name, spec)| (name.clone(), *spec)),
            PortProbe::Own(spec) => Some((name.clone(), spec)),
        };
        if let Some((name, spec)) = &probe {
            add_probe(name, spec);
        }
        let mut rule = base(name);
        rule.protocol = port.protocol.in_rule();
        rule.frontend_port = port.port;
        rule.backend_port = arrival.port(port.port, port.node_port);
        let has_reset = port.protocol == Transport::Tcp && cluster.sku().has_tcp_reset();
        rule.tcp_reset = has_reset.then_some(intent.tcp_reset);
        rule.probe = probe.map(|(name, _)| name);
        desired.rules.push(rule);
    }
    desired
}

/// The resources that a rule connects.
pub(crate) struct RuleReferences<'a> {
    pub frontend: &'a ResourceId,
    pub pool: &'a ResourceId,
    pub probe: Option<&'a ResourceId>,
}

impl RuleSpec {
    /// Applies the desired members to a rule; returns the changes.
    pub(crate) fn apply(&self, rule: &mut LoadBalancingRule, joined: &RuleReferences<'_>) -> Vec<Change> {
        let name = rule.name.clone().unwrap_or_default();
        let p = rule.properties.get_or_insert_default();
        let mut differences = Differences::default();
        differences.set_reference("frontend", &mut p.frontend_ip_configuration, Some(joined.frontend));
        if differences.set_reference("pool", &mut p.backend_address_pool, Some(joined.pool)) {
            // Azure returns the pool a second time as a list, which would contradict the new pool.
            p.rest.remove("backendAddressPools");
        }
        differences.set_reference("probe", &mut p.probe, joined.probe);
        differences.set_word("protocol", &mut p.protocol, self.protocol);
        differences.set("frontend port", &mut p.frontend_port, self.frontend_port);
        differences.set("backend port", &mut p.backend_port, self.backend_port);
        differences.set_switch("floating IP", &mut p.enable_floating_ip, self.floating_ip);
        // Azure's value for TCP resets counts only if the protocol supports them.
        if let Some(reset) = self.tcp_reset {
            differences.set_switch("TCP reset", &mut p.enable_tcp_reset, reset);
        }
        // A value that Azure does not return is assumed to be the one that was sent.
        if p.idle_timeout_in_minutes.is_some() {
            differences.set("idle timeout", &mut p.idle_timeout_in_minutes, self.idle_timeout);
        }
        differences.set_word("distribution", &mut p.load_distribution, self.distribution);
        let no_snat = self.disable_outbound_snat;
        differences.set_switch("outbound SNAT disabled", &mut p.disable_outbound_snat, no_snat);
        differences.into_changes(|difference| Change::RuleChanged { rule: name.clone(), difference })
    }

    /// The document of a new rule.
    pub(crate) fn document(&self, joined: &RuleReferences<'_>) -> LoadBalancingRule {
        let properties = LoadBalancingRuleProperties {
            enable_floating_ip: Some(self.floating_ip),
            enable_tcp_reset: self.tcp_reset,
            idle_timeout_in_minutes: Some(self.idle_timeout),
            disable_outbound_snat: Some(self.disable_outbound_snat),
            ..Default::default()
        };
        let mut rule = LoadBalancingRule {
            name: Some(self.name.clone()),
            properties: Some(properties),
            ..Default::default()
        };
        self.apply(&mut rule, joined);
        rule
    }
}
