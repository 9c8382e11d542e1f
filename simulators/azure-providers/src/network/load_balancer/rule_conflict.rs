//! Conflicts between the rules of one load balancer: two of them must not claim the same traffic.

use std::collections::{BTreeMap, HashMap};

use azure_types::ResourceId;
use serde_json::Value;

use super::{balancer::Balancer, rule::number};
use azure_engine::document::{at, items, name, text};
use azure_engine::refusal::{Code, Refusal, Result};

/// Claimed ranges of ports by their first port: the last port, and the claiming rule.
type Ranges = BTreeMap<i64, (i64, ResourceId)>;

/// The claimed ports of the frontends.
#[derive(Default)]
struct Claims {
    /// By frontend and protocol.
    ranges: HashMap<(String, &'static str), Ranges>,
    /// Frontends of which one rule takes all ports.
    whole: HashMap<String, ResourceId>,
    /// Any rule of a frontend.
    any: HashMap<String, ResourceId>,
}

impl Claims {
    fn claim(&mut self, rule: &ResourceId, document: &Value, ports: (i64, i64)) -> Result<()> {
        let frontend = frontend(document);
        if let Some(other) = self.whole.get(&frontend) {
            return Err(same_frontend(other, rule));
        }
        for protocol in protocols(document) {
            let ranges = self.ranges.entry((frontend.clone(), protocol)).or_default();
            let before = ranges.range(..=ports.1).next_back();
            if let Some((_, (_, other))) = before.filter(|(_, (end, _))| *end >= ports.0) {
                return Err(same_frontend(other, rule));
            }
            ranges.insert(ports.0, (ports.1, rule.clone()));
        }
        self.any.entry(frontend).or_insert_with(|| rule.clone());
        Ok(())
    }

    fn claim_all(&mut self, rule: &ResourceId, document: &Value) -> Result<()> {
        let frontend = frontend(document);
        if let Some(other) = self.any.get(&frontend) {
            return Err(same_frontend(other, rule));
        }
        self.any.insert(frontend.clone(), rule.clone());
        self.whole.insert(frontend, rule.clone());
        Ok(())
    }
}

fn frontend(rule: &Value) -> String {
    text(rule, "properties/frontendIPConfiguration/id").unwrap_or_default().to_ascii_lowercase()
}

fn protocols(rule: &Value) -> &'static [&'static str] {
    match text(rule, "properties/protocol") {
        Some("Tcp") => &["Tcp"],
        Some("Udp") => &["Udp"],
        _ => &["Tcp", "Udp"],
    }
}

fn same_frontend(a: &ResourceId, b: &ResourceId) -> Refusal {
    let kind = |id: &ResourceId| {
        let parent = id.type_and_name_pairs().last().map_or("", |(kind, _)| *kind).to_owned();
        match parent.as_str() {
            "inboundNatRules" => "Inbound NAT rule",
            "inboundNatPools" => "Inbound NAT pool",
            _ => "Load balancing rule",
        }
    };
    let subject = match (kind(a), kind(b)) {
        (one, other) if one == other => format!("{one}s {a} and {b}"),
        (one, other) => format!("{one} {a} and {} {b}", other.to_lowercase()),
    };
    Code::azures(400, "RulesUseSameFrontendPortProtocolAndIPConfig").details(format_args!(
        "{subject} use the same frontend port, protocol and frontend IP configuration."
    ))
}

/// Checks the rules of one load balancer against each other.
pub(crate) fn check(balancer: &Balancer<'_>, properties: &Value) -> Result<()> {
    let mut claims = Claims::default();
    let mut by_backend: HashMap<(String, String, i64), ResourceId> = HashMap::new();
    for rule in items(properties, "loadBalancingRules") {
        let id = balancer.id.child("loadBalancingRules", name(rule));
        let protocol = text(rule, "properties/protocol").unwrap_or_default();
        if protocol == "All" {
            check_high_availability(
                balancer,
                &id,
                &frontend(rule),
                items(properties, "frontendIPConfigurations"),
            )?;
            claims.claim_all(&id, rule)?;
        } else {
            let port = number(rule, "frontendPort");
            claims.claim(&id, rule, (port, port))?;
        }
        let floating = at(rule, "properties/enableFloatingIP").and_then(Value::as_bool).unwrap_or_default();
        let Some(pool) = text(rule, "properties/backendAddressPool/id").filter(|_| !floating) else {
            continue;
        };
        let port = number(rule, "backendPort");
        let key = (pool.to_ascii_lowercase(), protocol.to_owned(), port);
        if let Some(other) = by_backend.insert(key, id.clone()) {
            return Err(Code::azures(400, "RulesUseSameBackendPortProtocolAndPool").details(format_args!(
                    "Load balancing rules {other} and {id} with floating IP disabled use the same protocol {protocol} and \
                     backend port {port}, and must not be used with the same backend address pool {pool}."
                )));
        }
    }
    for rule in items(properties, "inboundNatRules") {
        // Generated rules lie within their pool's range, which is claimed below.
        if super::inbound_nat_pool::is_generated(rule) {
            continue;
        }
        let range = match number(rule, "frontendPort") {
            0 => (number(rule, "frontendPortRangeStart"), number(rule, "frontendPortRangeEnd")),
            port => (port, port),
        };
        claims.claim(&balancer.id.child("inboundNatRules", name(rule)), rule, range)?;
    }
    for pool in items(properties, "inboundNatPools") {
        let range = (number(pool, "frontendPortRangeStart"), number(pool, "frontendPortRangeEnd"));
        claims.claim(&balancer.id.child("inboundNatPools", name(pool)), pool, range)?;
    }
    Ok(())
}

/// A rule for all ports and protocols needs an internal frontend of a standard balancer.
fn check_high_availability(
    balancer: &Balancer<'_>,
    rule: &ResourceId,
    frontend: &str,
    frontends: &[Value],
) -> Result<()> {
    let internal = frontends.iter().any(|candidate| {
        balancer.id.child("frontendIPConfigurations", name(candidate)).to_lower() == frontend
            && at(candidate, "properties/subnet").is_some()
    });
    let known = frontends.iter().any(|candidate| {
        balancer.id.child("frontendIPConfigurations", name(candidate)).to_lower() == frontend
    });
    // The reference check reports an absent frontend.
    if balancer.sku != "Basic" && (internal || !known) {
        return Ok(());
    }
    Err(Code::ours(400, "LoadBalancingRuleWithAllProtocolNotSupported").details(format_args!(
        "Rule {rule} with protocol All needs an internal frontend of a load balancer with sku Standard."
    )))
}
