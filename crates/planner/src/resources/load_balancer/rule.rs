//! Load-balancing rules: which ones a Service needs, and their documents.

use azure_types::{LoadBalancingRule, LoadBalancingRuleProperties, ResourceId, SubResource, Word};

use crate::model::names::SHARED_PROBE;
use crate::model::words::or_none;
use crate::model::{Cluster, Family};
use crate::outcome::{Change, Difference};
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
pub(crate) struct Desired {
    pub rules: Vec<RuleSpec>,
    pub probes: Vec<(String, ProbeSpec)>,
}

/// The rules and probes of one family.
pub(crate) fn desired(cluster: &Cluster, intent: &ServiceIntent, family: Family) -> Desired {
    let naming = intent.naming();
    let mut desired = Desired::default();
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
        let has_reset = port.protocol == Transport::Tcp && cluster.config.uses_standard_load_balancer();
        rule.tcp_reset = has_reset.then_some(intent.tcp_reset);
        rule.probe = probe.map(|(name, _)| name);
        desired.rules.push(rule);
    }
    desired
}

/// The resources that a rule connects.
pub(crate) struct Joined<'a> {
    pub frontend: &'a ResourceId,
    pub pool: &'a ResourceId,
    pub probe: Option<&'a ResourceId>,
}

impl RuleSpec {
    /// Applies the desired members to a rule; returns the changes.
    pub(crate) fn apply(&self, rule: &mut LoadBalancingRule, joined: &Joined<'_>) -> Vec<Change> {
        let name = rule.name.clone().unwrap_or_default();
        let properties = rule.properties.get_or_insert_default();
        let mut changes = Vec::new();
        let mut note = |member: &'static str, from: String, to: String| {
            let difference = Difference { member, from, to };
            changes.push(Change::RuleChanged { rule: name.clone(), difference });
        };
        let mut refer =
            |what: &'static str, member: &mut Option<SubResource>, wanted: Option<&ResourceId>| {
                let old = member.as_ref().and_then(|reference| reference.id.as_ref());
                if old == wanted {
                    return false;
                }
                note(what, or_none(old.map(ResourceId::name)), or_none(wanted.map(ResourceId::name)));
                *member = wanted.cloned().map(SubResource::to);
                true
            };
        refer("frontend", &mut properties.frontend_ip_configuration, Some(joined.frontend));
        if refer("pool", &mut properties.backend_address_pool, Some(joined.pool)) {
            // Azure returns the pool a second time as a list, which would contradict the new pool.
            properties.rest.remove("backendAddressPools");
        }
        refer("probe", &mut properties.probe, joined.probe);

        if !properties.protocol.as_ref().is_some_and(|word| word.is(self.protocol)) {
            note("protocol", or_none(properties.protocol.as_ref()), self.protocol.to_owned());
            properties.protocol = Some(Word::from(self.protocol));
        }
        if properties.frontend_port != Some(self.frontend_port) {
            note("frontend port", or_none(properties.frontend_port), self.frontend_port.to_string());
            properties.frontend_port = Some(self.frontend_port);
        }
        if properties.backend_port != Some(self.backend_port) {
            note("backend port", or_none(properties.backend_port), self.backend_port.to_string());
            properties.backend_port = Some(self.backend_port);
        }
        if properties.enable_floating_ip.unwrap_or_default() != self.floating_ip {
            note("floating IP", on(properties.enable_floating_ip), on(Some(self.floating_ip)));
            properties.enable_floating_ip = Some(self.floating_ip);
        }
        // Azure's value for TCP resets counts only if the protocol supports them.
        if let Some(reset) = self.tcp_reset
            && properties.enable_tcp_reset.unwrap_or_default() != reset
        {
            note("TCP reset", on(properties.enable_tcp_reset), on(Some(reset)));
            properties.enable_tcp_reset = Some(reset);
        }
        // A value that Azure does not return is assumed to be the one that was sent.
        if properties.idle_timeout_in_minutes.is_some_and(|minutes| minutes != self.idle_timeout) {
            note("idle timeout", or_none(properties.idle_timeout_in_minutes), self.idle_timeout.to_string());
            properties.idle_timeout_in_minutes = Some(self.idle_timeout);
        }
        if !properties.load_distribution.as_ref().is_some_and(|word| word.is(self.distribution)) {
            note(
                "distribution",
                or_none(properties.load_distribution.as_ref()),
                self.distribution.to_owned(),
            );
            properties.load_distribution = Some(Word::from(self.distribution));
        }
        if properties.disable_outbound_snat.unwrap_or_default() != self.disable_outbound_snat {
            let old = on(properties.disable_outbound_snat);
            note("outbound SNAT disabled", old, on(Some(self.disable_outbound_snat)));
            properties.disable_outbound_snat = Some(self.disable_outbound_snat);
        }
        changes
    }

    /// The document of a new rule.
    pub(crate) fn document(&self, joined: &Joined<'_>) -> LoadBalancingRule {
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

fn on(value: Option<bool>) -> String {
    if value.unwrap_or_default() { "on".to_owned() } else { "off".to_owned() }
}
